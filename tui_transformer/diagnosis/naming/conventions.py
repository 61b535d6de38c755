"""Conventions with a name for every step: the program's own, transformers' outputs, TransformerLens, llama.cpp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tui_transformer.diagnosis.naming.words import read_table, spelled
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.model import Model


@dataclass(frozen=True, eq=False)
class Target:
    """The step that a name of a dump stands for.

    Attributes:
        steps: The step; others after it are taken where the values are theirs and not those of the first.
        head: The head that it holds, where it holds one alone.
        columns: The columns of it that are the step's, where it holds several steps side by side.
        paired: Columns i and i + d_k/2 of a head may lie side by side, as in GGUF files.
        scale: The step is these values times so much, or these values.
        offset: The step is these values plus so much, or these values.
        note: What the name was taken for, where that is not plain.
        unless: Another name; where the dump has that, this one holds something else.
    """

    steps: tuple[str, ...]
    head: int | None = None
    columns: Host | None = None
    paired: bool = False
    scale: float = 1.0
    offset: Host | None = None
    note: str = ""
    unless: str = ""


Table = Mapping[str, tuple[Target, ...]]
"""Names, in the spelling of `spelled`, and what they stand for; a fused matrix stands for several steps."""

Convention = Callable[[Model, Program], Table]
TABLES = read_table("conventions.toml")


def _for_program(names: Callable[[Program], Iterable[tuple[str, Target]]]) -> Convention:
    """A convention whose names follow from the program; the first that gives a name a meaning keeps it."""

    def convention(_: Model, program: Program) -> Table:
        by_name: dict[str, tuple[Target, ...]] = {}
        for name, target in names(program):
            by_name.setdefault(spelled(name), (target,))
        return by_name

    return convention


LATER = ("scores", "scaled", "capped", "biased", "masked")
"""Steps between the product of queries and keys and the softmax: a name may stand for a later one."""


@_for_program
def canonical(program: Program) -> Iterator[tuple[str, Target]]:
    """Every step and alias, with `value/` in front or without."""
    for name in program.names:
        place, _, part = name.rpartition(".")
        after = LATER[LATER.index(part) :] if part in LATER and place else ()
        target = Target(present(program, name, *(f"{place}.{later}" for later in after)))
        yield name, target
        yield f"value/{name}", target


HIDDEN = ("hidden_states", "hidden_state", "hidden", "all_hidden_states", "hiddens")
ATTENTION = ("attentions", "attention", "attn", "attention_weights", "all_attentions", "attention_probs")
LOGITS = ("logits", "prediction_logits", "lm_logits")
PROBABILITIES = ("probabilities", "probs", "output_probs")


@_for_program
def outputs(program: Program) -> Iterator[tuple[str, Target]]:
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


@_for_program
def transformer_lens(program: Program) -> Iterator[tuple[str, Target]]:
    """Hooks of the whole model and of every block.

    Versions before 4 have `hook_normalized` behind γ and β, and no `hook_out` for that.
    """
    for stack in stacks(program)[-1:]:
        for name, steps in named_steps(program, stack, TABLES["transformerlens"]):
            replaced = name.replace("hook_normalized", "hook_out")
            yield name, Target(steps, unless=replaced if replaced != name else "")


PAIRED = frozenset({"Qcur", "Kcur", "q", "k"})
"""Tensors whose columns may be in the order of GGUF files."""


@_for_program
def ggml(program: Program) -> Iterator[tuple[str, Target]]:
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
    """The encoder or the decoder of a program.

    Attributes:
        name: "encoder" or "decoder".
        layers: How many.
        embedding: What is in front of the names of its embedding: "" or "decoder.".
    """

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
