"""The findings in a dump: step by step, and the first step that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any, Literal

import numpy as np

from tui_transformer.diagnosis.matching import Entry, Planned
from tui_transformer.diagnosis.reference_values import Difference, gaps
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, field

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

    def to_json(self) -> dict[str, Any]:
        """As `diff --format json` writes it; None for numbers that JSON has not."""
        said = {name: each for name, each in vars(self).items() if name != "values"}
        sizes = {name: said[name] for name in ("difference", "relative", "noise")}
        finite = {name: size if abs(size) < float("inf") else None for name, size in sizes.items()}
        return said | finite | {"index": list(self.index)}


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
        lists = {name: list(getattr(self, name)) for name in ("unmatched", "missing", "assumed")}
        first = None if self.first is None else self.first.to_json()
        return {"compared": len(self.steps), **lists, "first": first}


def hint(entry: Entry, ours: Host, counted: Host | None, sizes: Mapping[str, int]) -> str:
    """Patterns in the numbers of a step that no mistake explains; a factor is said by the sizes of the model."""
    theirs = entry.array
    kept = np.ones(ours.shape, dtype=np.bool_) if counted is None else counted
    if missing := int(np.isnan(theirs[kept]).sum()):
        return "1 cell is NaN" if missing == 1 else f"{missing:,} cells are NaN"
    finite = kept & np.isfinite(ours) & np.isfinite(theirs)
    a, b = theirs[finite], ours[finite]
    if a.size and not a.any():
        return "every cell is 0"
    if (factor := common_factor(a, b)) is not None:
        if not math.isclose(factor, 1.0, rel_tol=1e-4):
            return f"every cell {describe_factor(factor, sizes)}"
    elif b.any():
        shift = float(np.mean(a - b))
        if float(np.abs(a - b - shift).max()) < 1e-4 * float(np.abs(a).max()):
            return f"every cell is {shift:.6g} too large"
    return _places(theirs, ours, kept)


def common_factor(a: Host, b: Host) -> float | None:
    """The factor between all of these numbers; None where there is none."""
    if not (size := float(b @ b)):
        return None
    factor = float(a @ b) / size
    return factor if float(np.abs(a - factor * b).max()) <= 1e-4 * float(np.abs(a).max() or 1.0) else None


def _places(theirs: Host, ours: Host, kept: Host) -> str:
    """Rows or heads that alone differ."""
    gap = np.where(kept, gaps(theirs, ours), 0.0)
    worst = float(gap[np.isfinite(gap)].max(initial=0.0))
    wrong = (gap > 1e-3 * worst) | np.isinf(gap)
    for axis, name in ((-2, "row"), (-1, "column"), (-3, "head")):
        if gap.ndim + axis < 1:
            continue
        others = tuple(i for i in range(gap.ndim) if i != gap.ndim + axis)
        places = np.flatnonzero(wrong.any(axis=others))
        if 0 < places.size <= 2 < gap.shape[axis]:
            return f"only {name} {' and '.join(map(str, places))} differs"
    return ""


SYMBOLS = {
    "head width": "d_k",
    "dimension": "d_model",
    "head": "number of heads",
    "feed-forward": "d_ff",
    "vocabulary": "size of the vocabulary",
    "token": "number of tokens",
}
"""Names of axes, and what their sizes are called; of several that fit alike, the first."""

CONSTANTS = {math.log(2): "ln 2", 1 / math.log(2): "1 ÷ ln 2", math.log(10): "ln 10", 1 / math.log(10): "1 ÷ ln 10"}
PLAIN = {-1.0: "has the opposite sign", 2.0: "is twice the right one", 0.5: "is half the right one"}
DIGITS = 6
LIKE = 1e-4
"""How far a factor may be from what it is said to be, as a part of it: six digits are less sure."""


def sizes_of(program: Program) -> dict[str, int]:
    """The sizes of a model that have a name of their own: d_k, d_model and so on."""
    sizes: dict[str, set[int]] = {}
    for step in program.steps:
        for axis in step.axes:
            sizes.setdefault(axis.name, set()).add(axis.size)
    return {symbol: max(sizes[name]) for name, symbol in SYMBOLS.items() if len(sizes.get(name, ())) == 1}


def describe_factor(factor: float, sizes: Mapping[str, int]) -> str:
    """What follows on "every cell": `is 5.65685 = √32 = √d_model times the right one`.

    Args:
        factor: Theirs ÷ ours.
        sizes: Numbers of the model by name.
    """
    plain = next((words for number, words in PLAIN.items() if math.isclose(factor, number, rel_tol=LIKE)), None)
    return plain or f"is {factor_of_sizes(factor, sizes)} times the right one"


def factor_of_sizes(factor: float, sizes: Mapping[str, int]) -> str:
    """A factor, and what it is where the numbers of the model make it: `5.65685 = √32 = √d_model`."""
    size, sign = abs(factor), "−" if factor < 0 else ""
    near = [each for each in _combined(sizes) if math.isclose(size, each[0], rel_tol=LIKE)]
    if not near:
        return spoken(factor, DIGITS)
    value, digits, _ = near[0]  # which is what the factor is, however few digits it was worked out from
    words = (words for _, same, words in near if same == digits and words)
    return " = ".join(dict.fromkeys(sign + each for each in (spoken(value, DIGITS), digits, *words)))


def _combined(sizes: Mapping[str, int]) -> Iterator[tuple[float, str, str]]:
    """Numbers that can be made of sizes, simple ones first: the value, with digits, and in words."""
    named = [(name, f"({name})" if " " in name else name, size) for name, size in sizes.items() if size > 1]
    for name, _, size in named:
        yield size, str(size), name
    for _, root, size in named:
        yield math.sqrt(size), f"√{size}", f"√{root}"
    for name, root, size in named:
        yield 1 / size, f"1 ÷ {size}", f"1 ÷ {name}"
        yield 1 / math.sqrt(size), f"1 ÷ √{size}", f"1 ÷ √{root}"
    for value, words in CONSTANTS.items():
        yield value, words, ""
    for (first, root, a), (second, other, b) in permutations(named, 2):
        yield a / b, f"{a} ÷ {b}", f"{first} ÷ {second}"
        yield math.sqrt(a / b), f"√{a} ÷ √{b}", f"√{root} ÷ √{other}"
