"""Conventions with a name for every step: the program's own, transformers', PyTorch's, TransformerLens, llama.cpp."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping

import numpy as np

from tui_transformer.diagnosis.naming.words import kind, read_table, spelled
from tui_transformer.engine.axis import shape_of
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Embed, LayerNorm, Linear, NormOfSum, Project, RmsNorm, Rotate, Scale, Unembed
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.weight_table import Stored
from tui_transformer.records import dataclass


@dataclass(frozen=True, eq=False)
class Target:
    """The step that a name of a dump stands for.

    Attributes:
        steps: The step; others after it are taken where the values are theirs and not those of the first.
        head: The head that it holds, where it holds one alone.
        columns: The columns of it that are the step's, where it holds several steps side by side.
        paired: Columns i and i + d_k/2 of a head may lie side by side, as in GGUF files.
        order: Of the columns of a head, where each is in the file of the model, if that has them in another order.
        scale: The step is these values times so much, or these values.
        offset: The step is these values plus so much, or these values.
        note: What the name was taken for, where that is not plain.
        unless: Another name; where the dump has that, this one holds something else.
    """

    steps: tuple[str, ...]
    head: int | None = None
    columns: Host | None = None
    paired: bool = False
    order: Host | None = None
    scale: float = 1.0
    offset: Host | None = None
    note: str = ""
    unless: str = ""


Table = Mapping[str, tuple[Target, ...]]
"""Names, in the spelling of `spelled`, and what they stand for; a fused matrix stands for several steps."""

Named = Iterator[tuple[str, Target | tuple[Target, ...]]]
Convention = Callable[[Model, Program], Named]
"""Gives names in any spelling; the first that gives a name a meaning keeps it."""

TABLES = read_table("conventions.toml")


def table_of(names: Named) -> Table:
    """The names of a convention in one spelling."""
    table: dict[str, tuple[Target, ...]] = {}
    for name, targets in names:
        table.setdefault(spelled(name), targets if isinstance(targets, tuple) else (targets,))
    return table


LATER = ("scores", "scaled", "capped", "biased", "masked")
"""Steps between the product of queries and keys and the softmax: a name may stand for a later one."""


def canonical(_: Model, program: Program) -> Named:
    """Every step and alias, with `value/` in front or without."""
    for name in program.names:
        place, part = name.rpartition(".")[::2]
        after = LATER[LATER.index(part) :] if part in LATER and place else ()
        target = Target(present(program, name, *(f"{place}.{later}" for later in after)))
        yield name, target
        yield f"value/{name}", target


HIDDEN = ("hidden_states", "hidden_state", "hidden", "all_hidden_states", "hiddens")
ATTENTION = ("attentions", "attention", "attn", "attention_weights", "all_attentions", "attention_probs")
LOGITS = ("logits", "prediction_logits", "lm_logits")
PROBABILITIES = ("probabilities", "probs", "output_probs")


def outputs(_: Model, program: Program) -> Named:
    """Tuples by index, the last hidden state, logits."""
    every = stacks(program)
    for stack in every:
        prefixes = [f"{stack.name}_", *([""] if len(every) == 1 or stack.name == "encoder" else [])]
        for i in range(stack.layers + 1):
            entrance = (stack.entrance, f"{stack.embedding}embedding.tokens") if i == 0 else (stack.before(i),)
            steps = (f"{stack.name}.norm", stack.before(i)) if i == stack.layers else entrance
            hidden = Target(present(program, *steps))
            yield from ((f"{prefix}{name}.{i}", hidden) for prefix in prefixes for name in HIDDEN)
            weights = Target(present(program, f"{stack.name}.{i}.self_attention.weights"))
            yield from ((f"{prefix}{name}.{i}", weights) for prefix in prefixes for name in ATTENTION)
        yield f"{stack.name}_last_hidden_state", hidden
        if stack is every[-1]:
            yield "last_hidden_state", hidden
    for i in range(every[-1].layers if every else 0):
        target = Target(present(program, f"decoder.{i}.cross_attention.weights"))
        yield from ((f"cross_{name}.{i}", target) for name in ATTENTION)
    yield from ((name, Target(last_logits(program))) for name in LOGITS)
    yield from ((name, Target(present(program, "output.probabilities"))) for name in PROBABILITIES)
    yield "loss", Target(present(program, "loss"))


def transformer_lens(_: Model, program: Program) -> Named:
    """Hooks of the whole model and of every block.

    Versions before 4 have `hook_normalized` behind γ and β, and no `hook_out` for that.
    """
    for stack in stacks(program)[-1:]:
        for name, steps in named_steps(program, stack, TABLES["transformerlens"]):
            replaced = name.replace("hook_normalized", "hook_out")
            yield name, Target(steps, unless=replaced if replaced != name else "")


PAIRED = frozenset({"Qcur", "Kcur", "q", "k"})
"""Tensors whose columns may be in the order of GGUF files."""


def ggml(_: Model, program: Program) -> Named:
    """Tensors of the graph of llama.cpp, with the number of the layer behind a dash."""
    for stack in stacks(program)[-1:]:
        for name, steps in named_steps(program, stack, TABLES["ggml"]):
            yield name, Target(steps, paired=name.partition("-")[0] in PAIRED)


def named_steps(program: Program, stack: Stack, table: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of a table for every layer of a stack, and the steps among its own that the program has."""
    logits = " ".join(last_logits(program))
    for pattern, steps in table.items():
        for i in range(stack.layers) if "{i}" in pattern else (0,):
            layer = f"{stack.name}.{i}"
            pre = "gate" if f"{layer}.feed_forward.gate" in program.by_name else "hidden"
            own = steps.format(
                layer=layer, stack=stack.name, before=stack.before(i), pre=f"{layer}.feed_forward.{pre}", logits=logits
            )
            yield pattern.format(i=i), present(program, *own.split())


def present(program: Program, *steps: str) -> tuple[str, ...]:
    """The steps among these that a program has, under their own names."""
    own = (program.aliases.get(step, step) for step in steps)
    return tuple(dict.fromkeys(step for step in own if step in program.by_name))


def last_logits(program: Program) -> tuple[str, ...]:
    """The logits that the probabilities are of, and what they were before they were capped, back to the product."""
    names: list[str] = []
    step = program.by_name.get("output.probabilities")
    while step is not None and step.name != "output.logits" and step.inputs[0].startswith("output."):
        step = program.by_name.get(step.inputs[0])
        names += [] if step is None else [step.name]
    return tuple(names) or present(program, "output.logits")


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder of a program; names of its embedding begin with `embedding`: "" or "decoder."."""

    name: str
    layers: int
    embedding: str

    @property
    def entrance(self) -> str:
        """The rows that enter layer 0."""
        return f"{self.embedding}embedding.output"

    def before(self, i: int) -> str:
        """The rows that enter a layer; those that leave the last, where i is the number of layers."""
        return f"{self.name}.{i - 1}.output" if i else self.entrance


def stacks(program: Program) -> list[Stack]:
    """The stacks of a program, in order."""
    counts: dict[str, int] = {}
    for step in program.steps:
        parts = step.name.split(".")
        if len(parts) > 2 and parts[0] in ("encoder", "decoder") and parts[1].isdigit():
            counts[parts[0]] = max(counts.get(parts[0], 0), int(parts[1]) + 1)
    prefix = "decoder." if len(counts) > 1 else ""
    return [Stack(name, count, prefix if name == "decoder" else "") for name, count in counts.items()]


# Paths of PyTorch modules, as hooks and transformers' debugger name them: `model.layers.0.self_attn.q_proj`. A module
# that has a weight is named after it, so that the names come from the family's own table of tensors; the modules around
# them, and those without weights, follow from these.

WEIGHTED = (Linear, Project, Embed, LayerNorm, RmsNorm, NormOfSum, Unembed)
"""Operations that are what a module computes, and not more."""

INSIDE = {"self_attention": "query", "cross_attention": "query", "feed_forward": "hidden"}
"""Sublayers, and a step whose tensors lie in one module with those of the output."""

HEADS = ("lm_head", "embed_out", "cls", "cls.predictions", "generator_lm_head", "vocab_projector")


def modules(model: Model, program: Program) -> Named:
    """Module paths in the spelling of the file, with and without what is in front of all of them."""
    for path, targets in _paths(model, program).items():
        words = spelled(path).split(".")
        for start in range(min(2, len(words) - 1) + 1):
            if not any(word.isdigit() for word in words[: start + 1] if start):
                yield ".".join(words[start:]), targets
    for stack in stacks(program):  # torch.nn's own layers
        cross = bool(present(program, f"{stack.name}.0.cross_attention.norm"))
        for path, steps in named_steps(program, stack, TABLES["torch"]):
            if steps and (cross or not path.endswith("norm3")):
                yield f"{stack.name}.{path}", Target(steps[:1])
                yield path, Target(steps[:1])


def _paths(model: Model, program: Program) -> dict[str, tuple[Target, ...]]:
    def scale(step: str) -> float:
        """By what that is multiplied which the module of a step leaves."""
        op, before = program.by_name[step].op, program.by_name.get("output.scaled")
        if step == "output.logits" and before is not None and isinstance(before.op, Scale):
            return before.op.factor
        if isinstance(op, Unembed) and model.has_decoder:
            return 1.0  # T5 multiplies what enters
        return op.scale if isinstance(op, Unembed | Embed) else 1.0

    stored = _stored(model, program)
    modules = {step: place.name.rpartition(".")[0] for step, place in stored.items()}
    own: dict[str, list[Target]] = {}
    for step, place in stored.items():
        targets = own.setdefault(modules[step], [])
        if not any(target.steps == (step,) for target in targets):
            columns, is_fused = _columns(place, program, step)
            targets.append(Target((step,), columns=columns if is_fused else None, scale=scale(step)))
    paths = {path: tuple(targets) for path, targets in own.items()}
    for path, step in _containers(program, modules):
        paths.setdefault(path, (Target((step,), scale=scale(step)),))
    bias = "output.logits.bias"
    offset = None
    if bias in program.weights:
        offset = np.array(model.backend.to_host(model.weights.get(bias, program.shape(bias))))
    if logits := present(program, "output.logits"):
        for path in HEADS:
            paths.setdefault(path, (Target(logits, scale=scale(logits[0]), offset=offset),))
    return paths


def _stored(model: Model, program: Program, among: Container[str] | None = None) -> dict[str, Stored]:
    """Where the weight of every step, or of those among some, is in a file: the step by its own name."""
    tensors: frozenset[str] = getattr(getattr(model.weights.file, "tensors", None), "names", frozenset())
    places: dict[str, Stored] = {}
    for name in program.weights:
        step, _, part = name.rpartition(".")
        if among is not None and step not in among:
            continue
        if part == "weight" and step in program.by_name and isinstance(program.by_name[step].op, WEIGHTED):
            try:
                places[step] = model.family.weights.stored(model.config, name, tensors)
            except (KeyError, ValueError, IndexError, InputError):
                continue
    return places


def _columns(place: Stored, program: Program, step: str) -> tuple[Host | None, bool]:
    """The columns of a matrix that are the step's, in its order, and whether there are others beside them."""
    shape = shape_of(program.weights[f"{step}.weight"])
    rows, out = min(3, shape[0]), shape[-1]  # all rows are alike, and many would take long to put in order
    sublayer = step.rpartition(".")[0]
    projections = (f"{sublayer}.{part}.weight" for part in ("query", "key", "value"))
    together = sum(shape_of(program.weights[name])[-1] for name in projections if name in program.weights)
    for width in (out, 2 * out, 3 * out, together):  # the last where query, key and value have different widths
        cells = np.broadcast_to(np.arange(width), (rows, width))  # each holds the number of its column
        for stored in (cells.T, cells):
            try:
                taken: Host = np.asarray(place.make(place.take(stored)))
            except (ValueError, IndexError, AttributeError):
                continue
            if taken.shape == (rows, out) and bool((taken == taken[:1]).all()):
                return taken[0], width != out
    return None, False


def orders(model: Model, program: Program) -> dict[str, Host]:
    """Of queries and keys that have the columns of a head in another order than the file: where each is there."""
    found: dict[str, Host] = {}
    of_kind: dict[str, Host | None] = {}  # one for all layers
    turned = {kind(step.inputs[0].removesuffix("_norm")) for step in program.steps if isinstance(step.op, Rotate)}
    among = {step.name for step in program.steps if kind(step.name) in turned}  # in layers that turn none too
    for step, place in _stored(model, program, among).items():
        own = kind(step)
        if own not in of_kind:
            heads, _, width = program.by_name[step].shape
            columns, _ = _columns(place, program, step)
            plain = np.arange(width)
            order = plain if columns is None else columns.reshape(heads, width)[0] - columns[:width].min()
            of_kind[own] = order if (np.sort(order) == plain).all() and (order != plain).any() else None
        if (order := of_kind[own]) is not None:
            found |= dict.fromkeys((step, f"{step}_norm", f"{step}_rotated"), order)
    return found


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
