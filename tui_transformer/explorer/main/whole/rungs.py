"""The ladder as lines of text, each in pieces with the names of their inks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tui_transformer.engine.spoken import spoken
from tui_transformer.explorer.main.whole.ladder import WIDE, Lengths, Rung
from tui_transformer.explorer.main.whole.placing import window
from tui_transformer.explorer.widgets.labels import fit_label
from tui_transformer.explorer.widgets.share_bar import share_bar

Pieces = tuple[tuple[str, str], ...]
"""Texts with the names of their inks."""

SUBLAYERS = {"self_attention": "attn", "cross_attention": "cross", "feed_forward": "ff"}
AROUND = 5
"""Columns of the border around its legend."""
NUMBER = 6
"""Columns of a number."""


@dataclass(frozen=True)
class Ladder:
    """The rungs of the ladder.

    Attributes:
        rungs: What enters each stack, and its layers.
        lengths: The norms of those that were read.
        here: The layer of the current step; after the layers "".
        columns: With the border.
        marks: Signs before layers, by their names.
    """

    rungs: tuple[Rung, ...] = ()
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    here: str = ""
    columns: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)

    def lines(self, height: int) -> list[tuple[Pieces, Rung | None]]:
        """As many lines as have room, with the rung that each is; the current one is among them, below a heading."""
        lines = self._all()
        place = next(
            (place for place, (_, rung) in enumerate(lines) if rung and rung.layer == self.here), len(lines) - 1
        )
        shown = window(len(lines), place, height)
        headings = [line for line in lines[: shown.start + 1] if line[1] is None]
        first = headings[-1:] if shown.start < place else lines[shown.start : shown.start + 1]
        return [*first, *lines[shown.start + 1 : shown.stop]]

    def legend(self, shown: int) -> str:
        """How many lines are shown where that is not all; else of which token the norms are."""
        part = (f"{shown} of {self.height}",) if shown < self.height else ()
        texts = ("norms of the current token", "norms") if self._is_wide else ("",)
        said = [" · ".join((*part, *filter(None, (text,)))) for text in texts] + [*part]
        return next((text for text in said if len(text) <= self.columns - AROUND), "")

    @property
    def height(self) -> int:
        """Lines of all of it."""
        return len(self._all())

    def _all(self) -> list[tuple[Pieces, Rung | None]]:
        both = len({rung.stack for rung in self.rungs}) > 1
        lines: list[tuple[Pieces, Rung | None]] = []
        for place, rung in enumerate(self.rungs):
            if place == 0 or rung.stack != self.rungs[place - 1].stack:
                lines.append((self._heading(rung.stack if both else ""), None))
            lines.append((self._rung(rung), rung))
        return lines

    def _heading(self, stack: str) -> Pieces:
        """The names of the columns."""
        bar = self._bar
        names = [SUBLAYERS.get(name.split(".")[2], name.split(".")[2]) for name in self._longest(stack)]
        added = "".join(fit_label(f"+{name}", NUMBER, "right") for name in names) * self._is_wide
        return (
            (fit_label(stack or "layer", 5 + bar), "quiet"),
            (fit_label("‖x‖", NUMBER, "right"), "quiet"),
            (added, "quiet"),
        )

    def _longest(self, stack: str) -> Sequence[str]:
        return max((rung.added for rung in self.rungs if rung.stack == stack or not stack), key=len)

    def _rung(self, rung: Rung) -> Pieces:
        here = rung.layer == self.here
        ink, lengths = "accent" if here else "plain", self.lengths.get(rung.layer)
        mark = self.marks.get(rung.layer, "")
        name = (
            (fit_label(mark or ("▸" if here else " "), 1), "wrong" if mark else ink),
            (fit_label(rung.name, 3, "right") + " ", ink),
        )
        if lengths is None:
            return name
        bar = (share_bar(lengths.stream / (self._largest or 1.0), self._bar), "accent" if here else "quiet")
        added = "".join(map(short, lengths.added)) * self._is_wide
        return (*name, bar, (short(lengths.stream), ink), (added, "quiet"))

    @property
    def _largest(self) -> float:
        return max((each.stream for each in self.lengths.values()), default=0.0)

    @property
    def _is_wide(self) -> bool:
        return self.columns >= WIDE

    @property
    def _bar(self) -> int:
        """Columns of a bar."""
        return max(self.columns - 4 - 5 - NUMBER * (3 if self._is_wide else 1), 0)


def short(number: float) -> str:
    """A number of three digits, right-aligned."""
    return fit_label(spoken(number, 3), NUMBER, "right")
