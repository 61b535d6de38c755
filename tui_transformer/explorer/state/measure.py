"""The measure of ablations and patches, as it was chosen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A metric by its name, and the tokens that it is about; of a loss without any, on the targets of the session."""

    name: str
    tokens: tuple[int, ...] = ()
