"""Helpers that the tests of the commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REFERENCES = Path(__file__).parent.parent / "references"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    def refuses(self, says: str, code: int) -> None:
        """The mistake is said in one line, and nothing else."""
        assert (self.code, self.out) == (code, ""), self.err
        assert says in self.err
        assert len(self.err.splitlines()) == 1


Run = Callable[..., Ended]

OF_A_MODEL = (
    "ablate",
    "answer",
    "attribute",
    "circuits",
    "diff",
    "heads",
    "lens",
    "links",
    "patch",
    "rollout",
    "show",
    "trace",
)
"""Commands whose model `USUAL` of a module of tests names, where their line names none."""
