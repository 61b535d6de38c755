"""Names of a dump, in one spelling, and the steps that they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

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


class Table(Protocol):
    """Names, in the spelling of `spelled`, and what they stand for; a fused matrix stands for several steps."""

    def get(self, key: str, /) -> tuple[Target, ...] | None:
        """The step that a name stands for; None where nobody calls one so."""


HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
WORD = re.compile(r"[a-z]+|\d+")

Convention = Callable[[Model, Program], Table]


def spelled(name: str) -> str:
    """A name in lower case, its words and numbers between points: `h.0.attn.c_attn` is `h.0.attn.c.attn`."""
    return ".".join(words_of(name))


def words_of(name: str) -> list[str]:
    """The words and numbers of a name, in lower case."""
    return WORD.findall(name if name.islower() else HUMP.sub(".", name).lower())


def phrases(text: str) -> frozenset[str]:
    """Phrases between commas, in as many lines as they need."""
    return frozenset(" ".join(each.split()) for each in text.split(","))


def table(targets: Iterable[tuple[str, Target]]) -> dict[str, tuple[Target, ...]]:
    """Names with what they stand for; the first that gives a name a meaning keeps it."""
    by_name: dict[str, tuple[Target, ...]] = {}
    for name, target in targets:
        by_name.setdefault(spelled(name), (target,))
    return by_name


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

    @property
    def exit(self) -> str:
        """The rows that leave the last layer."""
        return f"{self.name}.{self.layers - 1}.output"


def stacks(program: Program) -> list[Stack]:
    """The stacks of a program, in order."""
    counts: dict[str, int] = {}
    for step in program.steps:
        parts = step.name.split(".")
        if len(parts) > 2 and parts[0] in ("encoder", "decoder") and parts[1].isdigit():
            counts[parts[0]] = max(counts.get(parts[0], 0), int(parts[1]) + 1)
    prefix = "decoder." if len(counts) > 1 else ""
    return [Stack(name, count, prefix if name == "decoder" else "") for name, count in counts.items()]
