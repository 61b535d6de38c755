"""The whole model as bands of boxes: which steps are drawn as one small picture each, in the order of the data.

Nothing is computed here; `Sketch` reads the part of a step that a small picture shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.ops import OfExpert, WeightedExperts
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.views.step_view import pooled
from tui_transformer.views.view import ScaleKind, Values, View

Sign = Literal["", "+", "=", "▸"]

TOGETHER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("query", ("query", "query_norm", "query_rotated")),
    ("key", ("key", "key_norm", "key_rotated")),
    ("distances", ("distance_key", "distance_query", "query_distance_scores", "key_distance_scores")),
    ("scores", ("scores", "scaled", "capped", "biased", "masked")),
    ("context", ("context", "concat")),
    ("added", ("output", "residual")),
)
"""Steps of one sublayer that are one box, by the last part of their names; any other step is a box of its own."""

ENDS = ("output", "residual")
"""Steps that are one box where nothing is done between them."""

ANSWER = frozenset({"output.logits", "output.capped", "output.probabilities"})
"""Steps that are drawn as one box, the most likely words."""

SAME_INPUT = frozenset({"key", "value", "gate"})
"""Boxes that are made from the same input as the box before them: no arrow leads from one to the other."""

SHARED_EXPERT = ".shared."
"""In the names of the steps of an expert of all tokens; they are one box, as are those of the chosen experts."""

_BOX = {part: box for box, parts in TOGETHER for part in parts}
_EMBEDDING_SIGNS: dict[str, Sign] = {"positions": "+", "segments": "+", "output": "=", "norm": "▸", "distances": ""}


@dataclass(frozen=True)
class Box:
    """Steps that are drawn as one small picture.

    Attributes:
        steps: In order of computation.
        sign: What stands before the box: added to the box before, equal to those before, made from it, or nothing.
    """

    steps: tuple[str, ...]
    sign: Sign = ""

    def shown(self, stop: str) -> str:
        """The step that is drawn: the current one where it is of this box, else the last that is not a mere copy."""
        if stop in self.steps:
            return stop
        return next((name for name in reversed(self.steps) if not name.endswith(".concat")), self.steps[-1])


@dataclass(frozen=True)
class Band:
    """Boxes in a row.

    Attributes:
        name: `embedding`, `decoder.embedding`, a sublayer such as `encoder.0.self_attention`, or `output`.
        boxes: In the order of the data.
    """

    name: str
    boxes: tuple[Box, ...]

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`; "" for what comes before and after the stacks of a model with one."""
        first = self.name.partition(".")[0]
        return first if first in ("encoder", "decoder") else ""

    @property
    def steps(self) -> tuple[str, ...]:
        """Every step of the band."""
        return tuple(step for box in self.boxes for step in box.steps)


def layers_of(program: Program) -> tuple[str, ...]:
    """The layers of all stacks in order, as `encoder.0`."""
    return tuple(dict.fromkeys(step.layer for step in program.steps if _in_layer(step)))


def bands(program: Program, stop: str) -> tuple[Band, ...]:
    """The bands in which a stop lies: words to vectors, one layer of each stack, the answer.

    A stop in a layer chooses that layer; what comes before shows the first layer of each stack, what comes after the
    last. The other stack of an encoder-decoder shows its layer of the same number, as far as it has one.
    """
    return _bands(program, _layers_for(program, stop))


@by_program
def _bands(program: Program, shown: tuple[str, ...]) -> tuple[Band, ...]:
    by_band: dict[str, list[Step]] = {}
    both = any(step.name.startswith("decoder.") for step in program.steps)
    for step in program.steps:
        if not _in_layer(step) or step.layer in shown:
            by_band.setdefault(_band_name(step, both=both), []).append(step)
    return tuple(Band(name, tuple(_boxes(name, steps))) for name, steps in by_band.items())


def _layers_for(program: Program, stop: str) -> tuple[str, ...]:
    """A layer of each stack."""
    layers, step = layers_of(program), program.by_name.get(program.aliases.get(stop, stop))
    stacks = {stack: list(members) for stack, members in groupby(layers, lambda layer: layer.partition(".")[0])}
    if step is not None and _in_layer(step):
        number = int(step.layer.rpartition(".")[2])
    else:
        number = 0 if step is None or is_before_layers(step) else len(layers)
    return tuple(members[min(number, len(members) - 1)] for members in stacks.values())


def is_before_layers(step: Step) -> bool:
    """Whether a step outside the layers belongs to what enters the first of its stack, or all of them."""
    last = step.name.rpartition(".")[2]
    return "embedding" in step.name or last == "tokens" or last.startswith("distances")


def _in_layer(step: Step) -> bool:
    return step.layer.rpartition(".")[2].isdigit()


def _band_name(step: Step, *, both: bool) -> str:
    """Steps of a sublayer are a band; so is what comes before the layers, and the final norm with the answer.

    The norm after an encoder is a band of its own where a decoder reads what it gives.
    """
    if _in_layer(step):
        return _sublayer(step) if step.name.count(".") > 2 else step.layer
    stack = step.name.partition(".")[0]
    if is_before_layers(step):
        return f"{stack}.embedding" if stack == "decoder" else "embedding"
    return "encoder.norm" if stack == "encoder" and both else "output"


def _sublayer(step: Step) -> str:
    """The sublayer; that of the whole feed-forward layer for what is inside an expert."""
    return ".".join(step.name.split(".")[:3])


def _boxes(name: str, steps: Sequence[Step]) -> Iterator[Box]:
    members: dict[str, list[str]] = {}
    apart = _ends_apart(steps)
    for step in steps:
        last = step.name.rpartition(".")[2]
        box = last if apart and last in ENDS else _box(name, step)
        if box == "scores" and "distances" in members:
            box = "biased"
        members.setdefault(box, []).append(step.name)
    for place, (box, names) in enumerate(members.items()):
        yield Box(tuple(names), _sign(name, box, first=place == 0))


def _ends_apart(steps: Sequence[Step]) -> bool:
    """Whether something is done to the output of a sublayer before it is added."""
    lasts = [step.name.rpartition(".")[2] for step in steps if step.name.count(".") == 3]
    return set(ENDS) <= set(lasts) and lasts.index(ENDS[1]) != lasts.index(ENDS[0]) + 1


def _box(band: str, step: Step) -> str:
    last = step.name.rpartition(".")[2]
    if step.name in ANSWER:
        return "answer"
    if SHARED_EXPERT in step.name:
        return SHARED_EXPERT
    if isinstance(step.op, OfExpert | WeightedExperts):
        return "experts"
    return step.name if _outside_layers(band) else _BOX.get(last, last)


def _outside_layers(band: str) -> bool:
    return band.endswith("embedding") or band in ("output", "encoder.norm")


def _sign(band: str, box: str, *, first: bool) -> Sign:
    if first or box in SAME_INPUT:
        return ""
    return _EMBEDDING_SIGNS.get(box.rpartition(".")[2], "▸") if band.endswith("embedding") else "▸"


def box_of(among: Iterable[Band], stop: str) -> tuple[int, int] | None:
    """The band and the box in it that a stop belongs to; None where it is in none."""
    for place, band in enumerate(among):
        for number, box in enumerate(band.boxes):
            if stop in box.steps:
                return place, number
    return None


@dataclass(frozen=True, eq=False)
class Sketch:
    """A small picture of one step: some of its rows, all of its columns.

    Attributes:
        values: Rows × at most so many columns; a column is the entry of largest magnitude of its neighbours.
        rows: The rows that are shown.
        together: How many columns of the step stand in one of the picture, at most.
        kind: Whether the values have signs.
    """

    values: Values
    rows: range
    together: int
    kind: ScaleKind


def sketch(view: View, rows: range, width: int) -> Sketch:
    """The rows of a view in at most `width` columns; none is left out."""
    inside = range(min(rows.start, view.rows.size), min(rows.stop, view.rows.size))
    cells = view.window(inside, range(view.columns.size))
    together = -(-view.columns.size // max(width, 1))
    return Sketch(pooled(cells, width, axis=1), inside, together, view.kind)


def heads_of(axes: Axes) -> int:
    """How many heads a step has, 1 where it has none."""
    return axes[0].size if len(axes) == 3 else 1
