"""Helpers that the tests of the commands share."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REFERENCES = Path(__file__).parent.parent / "references"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def table(self) -> list[dict[str, str]]:
        """The rows of CSV, by the names of its first line."""
        return list(csv.DictReader(io.StringIO(self.out)))

    def refuses(self, says: str, code: int) -> None:
        """The mistake is said in one line, and nothing else."""
        assert (self.code, self.out) == (code, ""), self.err
        assert says in self.err
        assert len(self.err.splitlines()) == 1


Run = Callable[..., Ended]


def arrays_of(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a file, by their names in it."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def traced(run: Run, name: str, *options: str) -> dict[str, np.ndarray]:
    """The arrays of a trace that the command writes under a name."""
    run("trace", "--out", f"{name}.npz", *options, code=0)
    return arrays_of(f"{name}.npz")


OF_A_MODEL = frozenset(
    {"ablate", "answer", "attribute", "circuits", "diff", "heads", "lens", "links", "patch", "rollout", "show", "trace"}
)
"""Commands whose model `USUAL` of a module of tests names, where their line names none."""
