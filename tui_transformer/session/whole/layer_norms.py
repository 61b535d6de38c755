"""All layers as a slim ladder: how long the residual stream of a token is after each, and what its sublayers add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import groupby
from math import isfinite

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Program, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.records import dataclass, field
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import fit_label
from tui_transformer.views.numbers import share_bar
from tui_transformer.views.view import View, around
from tui_transformer.views.whole import is_before_layers, stacks_of

Source = Callable[..., View]
"""Gives the view of a step, or of one of its heads: of its values, or of its gradient."""

SLIM, WIDE = 18, 32
"""Columns of the ladder, with its border: with the stream alone, and with what is added."""

FROM, WIDE_FROM, STACKS_FROM = 100, 150, 160
"""Columns of the whole from which there is a ladder, a wide one, and one of two stacks."""


Pieces = tuple[tuple[str, str], ...]
"""Texts with the names of their inks."""

SUBLAYERS = {"self_attention": "attn", "cross_attention": "cross", "feed_forward": "ff"}
AROUND = 5
"""Columns of the border around its legend."""
NUMBER = 6
"""Columns of a number."""


@dataclass(frozen=True)
class Rung:
    """A layer.

    Attributes:
        layer: `encoder.0`; `encoder` for what enters the first layer.
        stream: The last step of it.
        added: What its sublayers add, in order.
    """

    layer: str
    stream: str
    added: tuple[str, ...] = ()

    @property
    def stack(self) -> str:
        """`encoder` or `decoder`."""
        return self.layer.partition(".")[0]

    @property
    def name(self) -> str:
        """The number of the layer, or `x` for what enters the first."""
        return self.layer.partition(".")[2] or "x"


Lengths = tuple[float, ...]
"""The Euclidean norms of a token's vectors: of the stream after a layer, then of what its sublayers added."""


@by_program
def ladder_columns(program: Program, width: int) -> int:
    """Columns that the ladder takes of so many; none where there is one layer, or no room."""
    stacks = stacks_of(program)
    if sum(map(len, stacks)) < 2:
        return 0
    if len(stacks) > 1:
        return SLIM if width >= STACKS_FROM else 0
    return WIDE if width >= WIDE_FROM else SLIM if width >= FROM else 0


@by_program
def rungs(program: Program) -> tuple[Rung, ...]:
    """The input of each stack, and its layers, from the first to the last."""
    ladder: list[Rung] = []
    for layers in stacks_of(program):
        for layer in layers:
            inside = [step for step in program.steps if step.layer == layer]
            if layer == layers[0]:  # what enters it is the step of an embedding that it reads
                own = {step.name for step in inside}
                read = [name for step in inside for name in step.inputs if name not in own]
                of_decoder = any(name.startswith("decoder.embedding") for name in read)
                begins = "decoder.embedding" if of_decoder else "embedding"
                entering = (name for name in read if name.startswith(begins) and name in program.by_name)
                if (first := next(entering, None)) is not None:
                    ladder.append(Rung(layer.partition(".")[0], first))
            # of each sublayer the last step but for the sum, and the norm of that: these are the stream itself
            parts = [(step.name, step.name.split(".")) for step in inside]
            added = {part[2]: name for name, part in parts if part[3] not in ("residual", "norm")}
            ladder.append(Rung(layer, inside[-1].name, tuple(added.values())))
    return tuple(ladder)


def rung_of(program: Program, stop: str) -> str:
    """The layer of the rung of a stop: its own, what enters the stack before the layers; after them "".

    What is neither a step nor a weight, such as the vocabulary, belongs to what enters the first.
    """
    step, ladder = program.by_name.get(program.aliases.get(stop, stop)), rungs(program)
    layer = "" if step is None else step.layer
    if any(rung.layer == layer for rung in ladder):
        return layer
    if step is not None and not is_before_layers(step):
        return ""
    entering = [rung.layer for rung in ladder if rung.name == "x"]
    return next((each for each in entering if stop.startswith(f"{each}.")), entering[0] if entering else "")


def lengths_of(source: Source, rung: Rung, rows: range) -> Host:
    """The norms of a rung, in float64: a row for each of `rows`, of the stream first. What is missing is computed.

    Where a step has fewer rows its last one stands for those.
    """

    def lengths(name: str) -> Host:
        view = source(name)
        last = view.shape[0] - 1
        there = range(min(rows.start, last), min(rows.stop - 1, last) + 1)
        values = view.window(there, range(view.shape[1])).astype(np.float64)
        return np.asarray(np.linalg.norm(values, axis=1)[np.minimum(np.arange(len(rows)), len(there) - 1)])

    return np.stack([lengths(name) for name in (rung.stream, *rung.added)], axis=1)


def cost_of(trace: Trace, rung: Rung, rows: int) -> int:
    """About how many operations it takes to have the norms of so many rows of a rung."""
    if not trace.pending((rung.stream, *rung.added)):
        return 0
    shares = ((name, min(rows / trace.program.axes(name)[0].size, 1.0)) for name in (rung.stream, *rung.added))
    return sum(trace.pending_part(name, share, AT_ONCE) for name, share in shares)


@dataclass(frozen=True)
class Ladder:
    """The rungs of the ladder.

    Attributes:
        rungs: What enters each stack, and its layers.
        lengths: The norms of those that were read.
        here: The layer of the current step; after the layers "".
        columns: With the border.
        marks: Signs before layers, by their names.
        of_gradient: Whether the norms are those of gradients.
    """

    rungs: tuple[Rung, ...] = ()
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    here: str = ""
    columns: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)
    of_gradient: bool = False

    def lines(self, height: int) -> list[tuple[Pieces, Rung | None]]:
        """As many lines as have room, with the rung that each is; the current one is among them, below a heading."""
        lines = self._every
        place = next(
            (place for place, (_, rung) in enumerate(lines) if rung and rung.layer == self.here), len(lines) - 1
        )
        shown = around(place, len(lines), height)
        headings = [line for line in lines[: shown.start + 1] if line[1] is None]
        first = headings[-1:] if shown.start < place else lines[shown.start : shown.start + 1]
        return [*first, *lines[shown.start + 1 : shown.stop]]

    def legend(self, shown: int) -> str:
        """How many lines are shown where that is not all; else of which token the norms are."""
        every = len(self._every)
        part = (f"{shown} of {every}",) if shown < every else ()
        texts = ("norms of the current token", "norms") if self.columns >= WIDE else ("",)
        said = [" · ".join((*part, *filter(None, (text,)))) for text in texts] + [*part]
        return next((text for text in said if len(text) <= self.columns - AROUND), "")

    @cached_property
    def _every(self) -> list[tuple[Pieces, Rung | None]]:
        """A heading with the names of the columns for every stack, and below it a line a layer."""
        wide, lines = self.columns >= WIDE, list[tuple[Pieces, Rung | None]]()
        bar = max(self.columns - 4 - 5 - NUMBER * (3 if wide else 1), 0)
        stacks = {stack: [*rungs] for stack, rungs in groupby(self.rungs, lambda rung: rung.stack)}
        norm = fit_label("‖∂x‖" if self.of_gradient else "‖x‖", NUMBER, "right")
        for stack, rungs in stacks.items():
            parts = [name.split(".")[2] for name in max((rung.added for rung in rungs), key=len)]
            names = "".join(fit_label(f"+{SUBLAYERS.get(part, part)}", NUMBER, "right") for part in parts)
            title = fit_label(stack if len(stacks) > 1 else "layer", 5 + bar)
            lines.append((((title, "quiet"), (norm, "quiet"), (names * wide, "quiet")), None))
            lines += [(self._rung(rung, bar, wide=wide), rung) for rung in rungs]
        return lines

    def _rung(self, rung: Rung, bar: int, *, wide: bool) -> Pieces:
        here, lengths, mark = rung.layer == self.here, self.lengths.get(rung.layer), self.marks.get(rung.layer, "")
        ink = "accent" if here else "plain"
        sign = fit_label(mark or ("▸" if here else " "), 1), "wrong" if mark else ink
        name = fit_label(rung.name, 3, "right") + " ", ink
        if lengths is None:
            return sign, name
        longest = max((stream for stream, *_ in self.lengths.values() if isfinite(stream)), default=0.0) or 1.0
        stream, *added = lengths
        share = share_bar(stream / longest, bar), "accent" if here else "quiet"
        return sign, name, share, (short(stream), ink), ("".join(map(short, added)) * wide, "quiet")


def short(number: float) -> str:
    """A number of three digits, or as many as leave a space before it, right-aligned."""
    texts = (spoken(number, digits) for digits in (3, 4, 5, 2, 1))
    return fit_label(next((text for text in texts if len(text) < NUMBER), spoken(number, 1)), NUMBER, "right")
