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


def of_the_encoder(run: Run) -> Run:
    """The same command, with the built-in encoder where it names no model."""

    def command(*arguments: str) -> Ended:
        named = not {*arguments[:1]} & {*OF_A_MODEL} or "--model" in arguments
        return run(*arguments, *(() if named else ("--model", "encoder")))

    return command
