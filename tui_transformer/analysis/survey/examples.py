"""Examples: the texts and tokens on which a unit is strongest, the best k of all that were seen.

Of every text its strongest token counts. Equal values are in order of the texts, then of the tokens; so which k remain
does not depend on the order in which sets are merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host

NONE = np.iinfo(np.int64).max
"""The text where there are fewer than k."""


@dataclass(frozen=True, eq=False)
class Examples:
    """The strongest of every unit, the strongest first.

    Attributes:
        values: Units × k; −∞ where there are fewer.
        texts: Units × k: numbers of texts; `NONE` where there are fewer.
        positions: Units × k: the token.
    """

    values: Host
    texts: Host
    positions: Host

    @classmethod
    def of(cls, values: Host, texts: Host, positions: Host, top: int) -> Examples:
        """The strongest of candidates.

        Args:
            values: Units × candidates; NaN where there is none.
            texts: Of each candidate.
            positions: Units × candidates.
            top: k.
        """
        there = np.isfinite(values)
        candidates = cls(
            np.where(there, values, -np.inf),
            np.where(there, texts, NONE),
            np.where(there, positions, 0),
        )
        return candidates.strongest(top)

    @classmethod
    def none(cls, units: int, top: int) -> Examples:
        """Those of no text."""
        empty = (np.full((units, top), each, kind) for each, kind in zip(EMPTY, KINDS, strict=True))
        return cls(*empty)

    def strongest(self, top: int) -> Examples:
        """The k strongest of these."""
        order = np.lexsort((self.positions, self.texts, -self.values), axis=-1)[:, :top]
        parts = (np.take_along_axis(part, order, axis=1) for part in (self.values, self.texts, self.positions))
        values, texts, positions = (_filled(part, top, empty) for part, empty in zip(parts, EMPTY, strict=True))
        return Examples(values, texts, positions)

    def __add__(self, other: Examples) -> Examples:
        pairs = zip(self._parts, other._parts, strict=True)
        return Examples(*(np.concatenate(pair, axis=1) for pair in pairs)).strongest(self.values.shape[1])

    @property
    def _parts(self) -> tuple[Host, Host, Host]:
        return self.values, self.texts, self.positions


EMPTY = (-np.inf, NONE, 0)
"""Value, text and position where there is no example."""

KINDS = (np.float64, np.int64, np.int64)


def _filled(part: Host, top: int, empty: float) -> Host:
    missing = top - part.shape[1]
    return np.pad(part, ((0, 0), (0, missing)), constant_values=empty) if missing > 0 else part
