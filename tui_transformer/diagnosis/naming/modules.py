"""Paths of PyTorch modules, as hooks and transformers' debugger name them: `model.layers.0.self_attn.q_proj`.

A module that has a weight is named after it, so that the names come from the family's own table of tensors; the
modules around them, and those without weights, follow from these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tui_transformer.diagnosis.naming.phrases import Table, Target, present, spelled, stacks
from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Embed, LayerNorm, Linear, NormOfSum, Project, RmsNorm, Unembed
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.weight_table import Stored

TORCH = {
    "self_attn": "self_attention.output",
    "self_attn.out_proj": "self_attention.output",
    "multihead_attn": "cross_attention.output",
    "linear1": "feed_forward.hidden",
    "activation": "feed_forward.activation",
    "linear2": "feed_forward.output",
    "norm1": "self_attention.norm",
}
"""Modules of `torch.nn.TransformerEncoderLayer` and `TransformerDecoderLayer` → steps of a layer."""

WEIGHTED = (Linear, Project, Embed, LayerNorm, RmsNorm, NormOfSum, Unembed)
"""Operations that are what a module computes, and not more."""

INSIDE = (
    ("self_attention.output", "self_attention.query", "self_attention.output"),
    ("cross_attention.output", "cross_attention.query", "cross_attention.output"),
    ("feed_forward.output", "feed_forward.hidden", "feed_forward.output"),
)
"""Two steps whose tensors lie in one module, and the step that leaves it."""

AROUND = {
    **{
        f"{module}{act}": ("feed_forward.activation",)
        for module in ("", "mlp.", "ffn.", "intermediate.", "feed_forward.")
        for act in ("act", "act_fn", "activation", "activation_fn", "intermediate_act_fn", "gelu_impl")
    },
    **dict.fromkeys(
        ("attention.output.dropout", "attn.resid_dropout", "self_attn.dropout"), ("self_attention.output",)
    ),
    **dict.fromkeys(("output.dropout", "mlp.dropout", "ffn.dropout"), ("feed_forward.output",)),
    **dict.fromkeys(("attention.self.dropout", "attn.attn_dropout", "attention.dropout"), ("self_attention.weights",)),
    "layer.1.DenseReluDense.act": ("feed_forward.activation",),
    "layer.2.DenseReluDense.act": ("feed_forward.activation",),
}
"""Modules of a layer, by their path after its number, and what leaves them, where the program has it."""

AROUND_BERT = {
    "attention.self": ("self_attention.concat",),
    "attention.output": ("self_attention.norm",),
    "attention": ("self_attention.norm",),
    "intermediate": ("feed_forward.activation",),
    "output": ("feed_forward.norm",),
}
"""The same where the output of an attention has a module with its norm in it, as in BERT."""


def modules(model: Model, program: Program) -> Table:
    """Module paths in the spelling of the file, with and without what is in front of all of them."""
    by_path: dict[str, tuple[Target, ...]] = {}
    for path, targets in _paths(model, program).items():
        words = spelled(path).split(".")
        for start in range(min(2, len(words) - 1) + 1):
            if not any(word.isdigit() for word in words[: start + 1] if start):
                by_path.setdefault(".".join(words[start:]), targets)
    for path, step in _torch(program):
        by_path.setdefault(spelled(path), (Target((step,)),))
    return by_path


def _paths(model: Model, program: Program) -> dict[str, tuple[Target, ...]]:
    """Every module path that follows from the tensors of the weights."""
    stored = _stored(model, program)
    own: dict[str, list[Target]] = {}
    for step, place in stored.items():
        columns = _columns(place, program, step)
        path = place.name.rpartition(".")[0]
        if not any(target.steps == (step,) for target in own.setdefault(path, [])):
            own[path].append(Target((step,), columns=columns, scale=_scale(program, step)))
    paths = {path: tuple(targets) for path, targets in own.items()}
    for path, step in _containers(program, {step: place.name.rpartition(".")[0] for step, place in stored.items()}):
        paths.setdefault(path, (Target((step,), scale=_scale(program, step)),))
    logits = present(program, "output.logits")
    bias = "output.logits.bias"
    offset = np.array(model.weights.get(bias, program.shape(bias))) if bias in program.weights else None
    for path in ("lm_head", "embed_out", "cls", "cls.predictions", "generator_lm_head", "vocab_projector"):
        if logits:
            paths.setdefault(path, (Target(logits, offset=offset),))
    return paths


def _scale(program: Program, step: str) -> float:
    op = program.by_name[step].op
    return op.scale if isinstance(op, Embed) else 1.0


def _stored(model: Model, program: Program) -> dict[str, Stored]:
    """Where the weight of every step is in a file: the step by its own name."""
    file = model.weights.file
    tensors: frozenset[str] = getattr(getattr(file, "tensors", None), "names", frozenset())
    places: dict[str, Stored] = {}
    for name in program.weights:
        step, _, kind = name.rpartition(".")
        if kind != "weight" or step not in program.by_name or not isinstance(program.by_name[step].op, WEIGHTED):
            continue
        try:
            places[step] = model.family.weights.stored(model.config, name, tensors)
        except (KeyError, ValueError, IndexError, InputError):
            continue
    return places


def _columns(place: Stored, program: Program, step: str) -> Host | None:
    """The columns of a fused matrix that are the step's, in its order; None where the matrix is its own."""
    rows, out = shape_of(program.weights[f"{step}.weight"])[0], shape_of(program.weights[f"{step}.weight"])[-1]
    for times in (1, 2, 3):
        for stored_out_first in (True, False):
            taken = _taken(place, rows, out * times, stored_out_first=stored_out_first)
            if taken is not None and taken.shape == (rows, out):
                return None if times == 1 else taken[0]
    return _uneven(place, program, step)


def _taken(place: Stored, rows: int, out: int, *, stored_out_first: bool) -> Host | None:
    """Of a matrix whose cells hold the number of their column, what a step takes; None where it does not fit."""
    cells = np.broadcast_to(np.arange(out), (rows, out))
    try:
        taken: Host = place.take(cells.T if stored_out_first else cells)
    except (ValueError, IndexError, AttributeError):
        return None
    same: Host = np.asarray(taken)
    return same if same.ndim == 2 and bool((same == same[:1]).all()) else None


def _uneven(place: Stored, program: Program, step: str) -> Host | None:
    """The same where query, key and value have different widths."""
    sublayer = step.rpartition(".")[0]
    widths = [
        shape_of(axes)[-1]
        for name, axes in program.weights.items()
        if name.rpartition(".")[0].rpartition(".")[0] == sublayer
        and name.endswith(("query.weight", "key.weight", "value.weight"))
    ]
    rows, out = shape_of(program.weights[f"{step}.weight"])
    for stored_out_first in (True, False):
        taken = _taken(place, rows, sum(widths), stored_out_first=stored_out_first)
        if taken is not None and taken.shape == (rows, out):
            columns: Host = taken[0]
            return columns
    return None


def _containers(program: Program, paths: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Modules around others: attention and feed-forward, whole layers, the embedding, and activations."""
    for stack in stacks(program):
        for i in range(stack.layers):
            layer = f"{stack.name}.{i}"
            root = _root(layer, i, paths)
            for first, second, leaves in INSIDE:
                one, other = paths.get(f"{layer}.{first}", ""), paths.get(f"{layer}.{second}", "")
                shared = one.rpartition(".")[0]
                if shared not in ("", root) and shared == other.rpartition(".")[0]:
                    yield from ((shared, step) for step in present(program, f"{layer}.{leaves}"))
            if root:
                yield from ((root, step) for step in present(program, f"{layer}.output"))
                bert = "attention.output" in paths.get(f"{layer}.self_attention.output", "")
                for module, steps in (AROUND | (AROUND_BERT if bert else {})).items():
                    inner = present(program, *(f"{layer}.{step}" for step in steps))
                    yield from ((f"{root}.{module}", step) for step in inner)
                for number, sublayer in enumerate(
                    dict.fromkeys(step.sublayer for step in program.steps if step.layer == layer)
                ):
                    for step in present(program, f"{sublayer}.residual"):
                        yield f"{root}.layer.{number}", step
                    for step in present(program, f"{sublayer}.output"):
                        yield f"{root}.layer.{number}.dropout", step
    for stack in stacks(program):
        for part in ("tokens", "positions"):
            for step in present(program, f"{stack.embedding}embedding.{part}"):
                yield from ((f"{prefix}{stack.name}.embed_{part}", step) for prefix in ("", "model."))
    embedding = paths.get("embedding.tokens", "").rpartition(".")[0]
    if embedding.endswith("embeddings"):
        for step in present(program, "embedding.output"):
            yield from ((path, step) for path in (embedding, f"{embedding}.dropout"))
    for step in present(program, "embedding.output"):
        yield from ((path, step) for path in ("transformer.drop", "gpt_neox.emb_dropout"))


def _root(layer: str, i: int, paths: dict[str, str]) -> str:
    """The module of a layer: what its tensors begin with, up to its number."""
    for step, path in paths.items():
        if step.startswith(f"{layer}.") and (match := re.match(rf"(.*?\.?\w+\.{i})\.", f"{path}.")):
            return match[1]
    return ""


def _torch(program: Program) -> Iterator[tuple[str, str]]:
    for stack in stacks(program):
        cross = bool(present(program, f"{stack.name}.0.cross_attention.norm"))
        norms = (
            {"norm2": "cross_attention.norm", "norm3": "feed_forward.norm"} if cross else {"norm2": "feed_forward.norm"}
        )
        for i in range(stack.layers):
            for path, step in (TORCH | norms).items():
                for target in present(program, f"{stack.name}.{i}.{step}"):
                    yield f"{stack.name}.layers.{i}.{path}", target
                    yield f"layers.{i}.{path}", target
            for target in present(program, f"{stack.name}.{i}.output"):
                yield f"{stack.name}.layers.{i}", target
                yield f"layers.{i}", target
