"""Answers of a model at some positions, before and after edits, as `ablate` and `patch` show it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.analysis.effects import LOGITS, Effect, answer_step, counted_positions
from tui_transformer.analysis.metrics import log_shares
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.explorer.state.session import Session
from tui_transformer.report.explained import finite
from tui_transformer.text.display import visible

MOST_LIKELY = 5


@dataclass(frozen=True)
class Guess:
    """A token and its share."""

    token: int
    word: str
    share: float


@dataclass(frozen=True)
class Answer:
    """The most likely tokens after one position."""

    position: int
    word: str
    guesses: tuple[Guess, ...]

    @property
    def data(self) -> list[dict[str, Any]]:
        """As JSON can hold it."""
        return [{"id": guess.token, "token": guess.word, "probability": finite(guess.share)} for guess in self.guesses]


def has_answers(trace: Trace) -> bool:
    """Whether the model has shares of words."""
    return answer_step(trace) == trace.program.logits


def parse_positions(text: str | None, trace: Trace) -> range | None:
    """`--position`: a number, "last" or "all"; None where the default is meant.

    Raises:
        UsageError: It is none of them.
    """
    if text is None:
        return None
    if text in ("last", "all"):
        counted = counted_positions(trace)
        return counted if text == "all" else counted[-1:]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"--position {text[:40]!r} is not a position: write a number from 0, last or all")
    return range(int(text), int(text) + 1)


def answers(session: Session, trace: Trace, positions: range) -> Iterator[Answer]:
    """The answer at each position."""
    columns = range(trace.program.shape(LOGITS)[1])
    label = session.labels.of(trace.program.axes(LOGITS)[0])
    for (rows, _), logits in trace.blocks(trace.program.logits, (positions, columns)):
        for position, shares in zip(rows, np.exp(log_shares(logits)), strict=True):
            best = np.argsort(-shares, kind="stable")[:MOST_LIKELY].tolist()
            guesses = tuple(Guess(token, visible(session.labels.word(token)), float(shares[token])) for token in best)
            yield Answer(position, label(position), guesses)


def where(session: Session, positions: range) -> str:
    """The positions in words: `position 7, !` or `positions 0 to 7`."""
    if len(positions) > 1:
        return f"positions {positions.start} to {positions.stop - 1}"
    label = session.labels.of(session.trace.program.axes(answer_step(session.trace))[-2])(positions.start)
    return f"position {positions.start}" + (f", {label}" if label != str(positions.start) else "")


def effect_data(effect: Effect) -> dict[str, float | None]:
    """The numbers that the model's kind of answer has."""
    values = {
        "value": effect.value,
        "change": effect.change,
        "divergence": effect.divergence,
        "relative": effect.relative,
    }
    return {key: finite(value) for key, value in values.items() if value is not None}
