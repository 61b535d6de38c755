"""Paths of PyTorch modules, as hooks and transformers' debugger name them: `model.layers.0.self_attn.q_proj`.

A module that has a weight is named after it, so that the names come from the family's own table of tensors; the
modules around them, and those without weights, follow from these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tui_transformer.diagnosis.naming.conventions import TABLES, Table, Target, named_steps, present, stacks
from tui_transformer.diagnosis.naming.words import spelled
from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Embed, LayerNorm, Linear, NormOfSum, Project, RmsNorm, Unembed
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.weight_table import Stored

WEIGHTED = (Linear, Project, Embed, LayerNorm, RmsNorm, NormOfSum, Unembed)
"""Operations that are what a module computes, and not more."""

INSIDE = {"self_attention": "query", "cross_attention": "query", "feed_forward": "hidden"}
"""Sublayers, and a step whose tensors lie in one module with those of the output."""

HEADS = ("lm_head", "embed_out", "cls", "cls.predictions", "generator_lm_head", "vocab_projector")


def modules(model: Model, program: Program) -> Table:
    """Module paths in the spelling of the file, with and without what is in front of all of them."""
    by_path: dict[str, tuple[Target, ...]] = {}
    for path, targets in _paths(model, program).items():
        words = spelled(path).split(".")
        for start in range(min(2, len(words) - 1) + 1):
            if not any(word.isdigit() for word in words[: start + 1] if start):
                by_path.setdefault(".".join(words[start:]), targets)
    for stack in stacks(program):  # torch.nn's own layers
        cross = bool(present(program, f"{stack.name}.0.cross_attention.norm"))
        for path, steps in named_steps(program, stack, TABLES["torch"]):
            if steps and (cross or not path.endswith("norm3")):
                by_path.setdefault(spelled(f"{stack.name}.{path}"), (Target(steps[:1]),))
                by_path.setdefault(spelled(path), (Target(steps[:1]),))
    return by_path


def _paths(model: Model, program: Program) -> dict[str, tuple[Target, ...]]:
    """Every module path that follows from the tensors of the weights."""

    def scale(step: str) -> float:
        op = program.by_name[step].op
        return op.scale if isinstance(op, Embed) else 1.0

    stored = _stored(model, program)
    modules = {step: place.name.rpartition(".")[0] for step, place in stored.items()}
    own: dict[str, list[Target]] = {}
    for step, place in stored.items():
        targets = own.setdefault(modules[step], [])
        if not any(target.steps == (step,) for target in targets):
            targets.append(Target((step,), columns=_columns(place, program, step), scale=scale(step)))
    paths = {path: tuple(targets) for path, targets in own.items()}
    for path, step in _containers(program, modules):
        paths.setdefault(path, (Target((step,), scale=scale(step)),))
    bias = "output.logits.bias"
    offset = np.array(model.weights.get(bias, program.shape(bias))) if bias in program.weights else None
    if logits := present(program, "output.logits"):
        for path in HEADS:
            paths.setdefault(path, (Target(logits, offset=offset),))
    return paths


def _stored(model: Model, program: Program) -> dict[str, Stored]:
    """Where the weight of every step is in a file: the step by its own name."""
    tensors: frozenset[str] = getattr(getattr(model.weights.file, "tensors", None), "names", frozenset())
    places: dict[str, Stored] = {}
    for name in program.weights:
        step, _, part = name.rpartition(".")
        if part == "weight" and step in program.by_name and isinstance(program.by_name[step].op, WEIGHTED):
            try:
                places[step] = model.family.weights.stored(model.config, name, tensors)
            except (KeyError, ValueError, IndexError, InputError):
                continue
    return places


def _columns(place: Stored, program: Program, step: str) -> Host | None:
    """The columns of a fused matrix that are the step's, in its order; None where the matrix is its own."""
    shape = shape_of(program.weights[f"{step}.weight"])
    rows, out = shape[0], shape[-1]
    sublayer = step.rpartition(".")[0]
    projections = (f"{sublayer}.{part}.weight" for part in ("query", "key", "value"))
    together = sum(shape_of(program.weights[name])[-1] for name in projections if name in program.weights)
    for width in (out, 2 * out, 3 * out, together):  # the last where query, key and value have different widths
        cells = np.broadcast_to(np.arange(width), (rows, width))  # each holds the number of its column
        for stored in (cells.T, cells):
            try:
                taken: Host = np.asarray(place.take(stored))
            except (ValueError, IndexError, AttributeError):
                continue
            if taken.shape == (rows, out) and bool((taken == taken[:1]).all()):
                columns: Host = taken[0]
                return None if width == out else columns
    return None


def _containers(program: Program, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Modules around others: attention and feed-forward, whole layers, the embedding, and activations."""
    for stack in stacks(program):
        for i in range(stack.layers):
            yield from _of_layer(program, f"{stack.name}.{i}", i, paths)
    for stack in stacks(program):
        for part in ("tokens", "positions"):
            for step in present(program, f"{stack.embedding}embedding.{part}"):
                yield from ((f"{prefix}{stack.name}.embed_{part}", step) for prefix in ("", "model."))
    embedding = paths.get("embedding.tokens", "").rpartition(".")[0]
    around = [embedding, f"{embedding}.dropout"] if embedding.endswith("embeddings") else []
    for step in present(program, "embedding.output"):
        yield from ((path, step) for path in (*around, "transformer.drop", "gpt_neox.emb_dropout"))


def _of_layer(program: Program, layer: str, i: int, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The module of a layer, which its tensors begin with, and those in it."""
    own = (f"{path}." for step, path in paths.items() if step.startswith(f"{layer}."))
    root = next((match[1] for path in own if (match := re.match(rf"(.*?\.?\w+\.{i})\.", path))), "")
    for sublayer, first in INSIDE.items():
        output = f"{layer}.{sublayer}.output"
        one, other = paths.get(f"{layer}.{sublayer}.{first}", ""), paths.get(output, "")
        shared = one.rpartition(".")[0]
        if shared not in ("", root) and shared == other.rpartition(".")[0]:
            yield from ((shared, step) for step in present(program, output))
    if not root:
        return
    bert = "attention.output" in paths.get(f"{layer}.self_attention.output", "")
    for name, inside in (*TABLES["around"].items(), *(TABLES["around_bert"].items() if bert else ())):
        for step in present(program, f"{layer}.{name}"):
            yield from ((f"{root}.{module}", step) for module in inside.split())
    yield from ((root, step) for step in present(program, f"{layer}.output"))
    for number, sublayer in enumerate(dict.fromkeys(s.sublayer for s in program.steps if s.layer == layer)):
        for path, part in ((f"{root}.layer.{number}", "residual"), (f"{root}.layer.{number}.dropout", "output")):
            yield from ((path, step) for step in present(program, f"{sublayer}.{part}"))
