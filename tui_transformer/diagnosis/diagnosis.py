"""The findings in a dump: step by step, and the first step that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tui_transformer.diagnosis.comparison import Difference
from tui_transformer.diagnosis.matching import Planned
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.trace import Trace

Verdict = Literal["agrees", "first", "follows", "wrong", "differs"]
"""Of a step: it agrees; it is the first that is wrong; it differs, and follows from its inputs, or is wrong itself;
it differs, and that cannot be said."""


@dataclass(frozen=True)
class Compared:
    """One step of the dump beside the right one.

    Attributes:
        step: Its name.
        theirs: The name in the dump.
        difference: How far they are apart.
        noise: How far the right values are from themselves when they are computed in float32.
        verdict: What that means.
    """

    step: str
    theirs: str
    difference: Difference
    noise: float
    verdict: Verdict


@dataclass(frozen=True)
class First:
    """The first step that is wrong.

    Attributes:
        step: Its name.
        theirs: The name in the dump.
        index: The cell with the largest difference; the batch in front where there are several sentences.
        values: Theirs and ours there.
        difference: Largest |theirs − ours|.
        relative: The same ÷ the largest |ours|.
        noise: As in `Compared`.
        inputs_agree: What the step is computed from is in the dump, and agrees.
        cause: The public name of the mistake with which the step matches; None where none does.
        says: One sentence or two: what is wrong, and what to mend.
    """

    step: str
    theirs: str
    index: Index
    values: tuple[float, float]
    difference: float
    relative: float
    noise: float
    inputs_agree: bool
    cause: str | None
    says: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """A dump beside a model.

    Attributes:
        steps: What was compared, in the order of the program.
        unmatched: What of the dump has numbers and was not compared, each with the reason.
        missing: Steps that the dump does not hold.
        assumed: Everything that was taken for granted, a sentence each.
        first: The first step that is wrong; None where all agree.
        trace: The right values, in float64.
        theirs: The values of the dump by step, in the step's shape, with a batch axis.
        partial: Steps of which the dump holds some cells alone; the others are 0 in `theirs`.
        plan: What every array of the dump was taken for.
    """

    steps: tuple[Compared, ...]
    unmatched: tuple[str, ...]
    missing: tuple[str, ...]
    assumed: tuple[str, ...]
    first: First | None
    trace: Trace
    theirs: Mapping[str, Host] = field(repr=False)
    partial: frozenset[str] = frozenset()
    plan: tuple[Planned, ...] = ()

    @property
    def following(self) -> frozenset[str]:
        """Steps that are computed from the first wrong one: what differs in them may follow from it."""
        if self.first is None:
            return frozenset()
        name = self.trace.program.aliases.get(self.first.step, self.first.step)
        return self.trace.program.downstream([name]) - {name}

    @property
    def same(self) -> bool:
        """Every number of the dump was compared, and is right."""
        return self.first is None and not self.unmatched

    def to_json(self) -> dict[str, Any]:
        """As `diff --format json` writes it."""
        return {
            "compared": len(self.steps),
            "unmatched": list(self.unmatched),
            "missing": list(self.missing),
            "assumed": list(self.assumed),
            "first": None if self.first is None else _first(self.first),
        }


def _first(first: First) -> dict[str, Any]:
    return {
        "step": first.step,
        "theirs": first.theirs,
        "index": list(first.index),
        "difference": _number(first.difference),
        "relative": _number(first.relative),
        "noise": _number(first.noise),
        "inputs_agree": first.inputs_agree,
        "cause": first.cause,
        "says": first.says,
    }


def _number(value: float) -> float | None:
    """A number that JSON has; None for infinity and NaN."""
    return value if abs(value) < float("inf") else None
