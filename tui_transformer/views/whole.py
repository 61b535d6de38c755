"""The whole model as bands of boxes: which steps are drawn as one small picture each, in the order of the data.

Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal

from tui_transformer.engine.ops import OfExpert, WeightedExperts
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.records import dataclass

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
    """Steps, in order of computation, that are drawn as one small picture.

    The sign before a box says that it is added to the one before, equal to those before, made from it, or nothing.
    """

    steps: tuple[str, ...]
    sign: Sign = ""

    @cached_property
    def last(self) -> str:
        """The last step that is not a mere copy, which is drawn where none of them is the current one."""
        return next((name for name in reversed(self.steps) if not name.endswith(".concat")), self.steps[-1])


@dataclass(frozen=True)
class Band:
    """Boxes in a row, in the order of the data: `embedding`, a sublayer `encoder.0.self_attention`, or `output`."""

    name: str
    boxes: tuple[Box, ...]

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`; "" for what comes before and after the stacks of a model with one."""
        first = self.name.partition(".")[0]
        return first if first in ("encoder", "decoder") else ""

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """Every step of the band."""
        return tuple(step for box in self.boxes for step in box.steps)


@by_program
def stacks_of(program: Program) -> tuple[tuple[str, ...], ...]:
    """The layers of each stack in order, as `encoder.0`."""
    layers = dict.fromkeys(step.layer for step in program.steps if _in_layer(step))
    return tuple(tuple(members) for _, members in groupby(layers, lambda layer: layer.partition(".")[0]))


def bands(program: Program, stop: str) -> tuple[Band, ...]:
    """The bands in which a stop lies: words to vectors, one layer of each stack, the answer.

    A stop in a layer chooses that layer; what comes before shows the first layer of each stack, what comes after the
    last. The other stack of an encoder-decoder shows its layer of the same number, as far as it has one.
    """
    stacks, step = stacks_of(program), program.by_name.get(program.aliases.get(stop, stop))
    if step is not None and (layer := step.layer.rpartition(".")[2]).isdigit():
        number = int(layer)
    else:
        number = 0 if step is None or is_before_layers(step) else len(program.steps)
    return _bands(program, tuple(members[min(number, len(members) - 1)] for members in stacks))


@by_program
def _bands(program: Program, shown: tuple[str, ...]) -> tuple[Band, ...]:
    by_band: dict[str, list[Step]] = {}
    both = any(step.name.startswith("decoder.") for step in program.steps)
    for step in program.steps:
        if not _in_layer(step) or step.layer in shown:
            by_band.setdefault(_band_name(step, both=both), []).append(step)
    return tuple(Band(name, tuple(_boxes(name, steps))) for name, steps in by_band.items())


def is_before_layers(step: Step) -> bool:
    """True if a step outside the layers belongs to what enters the first of its stack, or all of them."""
    last = step.name.rpartition(".")[2]
    return "embedding" in step.name or last == "tokens" or last.startswith("distances")


def _in_layer(step: Step) -> bool:
    return step.layer.rpartition(".")[2].isdigit()


def _band_name(step: Step, *, both: bool) -> str:
    """Steps of a sublayer are a band; so is what comes before the layers, and the final norm with the answer.

    What is inside an expert belongs to the feed-forward layer. The norm after an encoder is a band of its own where a
    decoder reads what it gives.
    """
    if _in_layer(step):
        return ".".join(step.name.split(".")[:3]) if step.name.count(".") > 2 else step.layer
    stack = step.name.partition(".")[0]
    if is_before_layers(step):
        return f"{stack}.embedding" if stack == "decoder" else "embedding"
    return "encoder.norm" if stack == "encoder" and both else "output"


def _boxes(name: str, steps: Sequence[Step]) -> Iterator[Box]:
    members: dict[str, list[str]] = {}
    lasts = [step.name.rpartition(".")[2] for step in steps if step.name.count(".") == 3]
    # something is done to the output of a sublayer before it is added
    apart = set(ENDS) <= set(lasts) and lasts.index(ENDS[1]) != lasts.index(ENDS[0]) + 1
    for step in steps:
        last = step.name.rpartition(".")[2]
        box = last if apart and last in ENDS else _box(name, step)
        if box == "scores" and "distances" in members:
            box = "biased"
        members.setdefault(box, []).append(step.name)
    for place, (box, names) in enumerate(members.items()):
        sign: Sign = "" if place == 0 or box in SAME_INPUT else "▸"
        if sign and name.endswith("embedding"):
            sign = _EMBEDDING_SIGNS.get(box.rpartition(".")[2], sign)
        yield Box(tuple(names), sign)


def _box(band: str, step: Step) -> str:
    if step.name in ANSWER:
        return "answer"
    if SHARED_EXPERT in step.name:
        return SHARED_EXPERT
    if isinstance(step.op, OfExpert | WeightedExperts):
        return "experts"
    if band.endswith("embedding") or band in ("output", "encoder.norm"):
        return step.name
    last = step.name.rpartition(".")[2]
    return _BOX.get(last, last)
