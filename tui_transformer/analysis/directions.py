"""Directions in a step: found between texts, added and taken out, and what they say in words.

A direction from contrast pairs is the difference of means at a step and a position, v = mean x(positive) − mean
x(negative) (Rimsky et al. 2024, "Steering Llama 2 via Contrastive Activation Addition", §3; of single prompts: Turner
et al. 2023, "Activation Addition"). What the model does when it is taken out shows whether it is used (Arditi et al.
2024, "Refusal in Language Models Is Mediated by a Single Direction", §2.4).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.found import Found
from tui_transformer.analysis.head_lens import carried
from tui_transformer.analysis.measurable import at_least, last_position, logits_of, positions_in
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.axis import Places, whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.changes import Add, Project
from tui_transformer.engine.program import step_of_numbers
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, write_whole
from tui_transformer.model import Model
from tui_transformer.model.options import traced
from tui_transformer.records import dataclass

Texts = Sequence[str | Sequence[int]]

Where = int | Literal["mean"]
"""The token of a text whose row counts, from 0 or from the end, or the mean over all."""


class Word(NamedTuple):
    """A word of the vocabulary, and by how much its logit is raised, less the mean over all words."""

    token: int
    word: str
    logit: float


@dataclass(frozen=True, eq=False)
class Direction:
    """A vector in a step: columns, or heads × 1 × columns."""

    step: str
    vector: Host

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.vector.shape))
        return f"<Direction in {self.step}: {size}, of length {np.linalg.norm(self.vector):.4g}>"

    def add(self, strength: float = 1.0, rows: Places = None) -> Add:
        """The edit that adds it so many times, to every row or to some: steering."""
        return Add(self.step, strength * self.vector, rows=rows)

    def remove(self, rows: Places = None) -> Project:
        """The edit that takes its component out of every row, or of some."""
        return Project(self.step, self.vector, rows=rows)

    def save(self, path: str | Path) -> None:
        """Write it as NPY, as the shell takes it: --edit '1.output += 4*vector.npy'; InputError where it cannot be."""
        file = io.BytesIO()
        np.save(file, self.vector, allow_pickle=False)
        write_whole(expanded(path), file.getvalue())

    def words(self, trace: Trace, top: int = 5, *, row: int | None = None, item: int | None = None) -> Found[Word]:
        """The words that it raises most, the first first, then those that it lowers most, the last last.

        It goes to the logits past all later layers, with the norms on the way frozen as they are at the row (see
        `head_lens`); by default at the last token that is no padding.

        Raises:
            InputError: The model has no logits of words or no such row, or something on the way to them is not linear.
        """
        logits = trace.program.step(logits_of(trace.program, "no direction spells any"))
        at_least(0, top=top)
        item, own, columns = item_of(trace, item), trace.program.step(self.step), self.vector.shape[-1]
        if own.shape[-1] != columns:
            raise InputError(f"the direction has {columns} columns, and {own.name} has {own.shape[-1]}")
        at = positions_in(logits.axes[0].size, last_position(trace, item) if row is None else row)
        vectors = np.asarray(self.vector, np.float64).reshape(-1, 1, columns)
        raised = carried(trace, own.name, vectors, at, item).sum(axis=(0, 1))
        raised -= raised.mean()
        order = np.argsort(-raised, kind="stable")
        top = min(top, len(order) // 2)
        chosen = [*order[:top].tolist(), *order[len(order) - top :].tolist()]
        return Found(
            (Word(each, trace.target_word(each), float(raised[each])) for each in chosen), lambda word: [word._asdict()]
        )


def direction(
    model: Model, positive: Texts, negative: Texts, at: str, position: Where = -1, report: Report = silent
) -> Direction:
    """From the mean of some texts to that of others, at a step: mean x(positive) − mean x(negative), float64.

    Args:
        model: Reads every text alone.
        positive: Texts, or token IDs, with what it leads to, as “yes” at the end of a question.
        negative: The same without it; best pairs that are else alike.
        at: The step, as "1.output".
        position: Whose row of each text: a token from 0 or from the end, or "mean" over all of them; padding is none
            of them. All texts count alike, however long they are.
        report: Told how far it is; what it raises ends it.

    Raises:
        InputError: There is no text, no such step or token, or the step has no rows of one length.
    """
    name = model.program(2, 2).step(at).name
    means = [_mean(model, texts, name, position, report) for texts in (positive, negative)]
    return Direction(name, means[0] - means[1])


def _mean(model: Model, texts: Texts, name: str, position: Where, report: Report) -> Host:
    if isinstance(texts, str):
        raise UsageError(f"texts are a list: [{texts[:40]!r}]")
    total, number = np.zeros(()), 0
    for number, text in enumerate(texts, 1):
        report(f"direction · text {number:,} of {len(texts):,}")
        trace = next(traced(model, [text])) if isinstance(text, str) else model.trace(ids=text, budget=0)
        total = total + _row(trace, name, position)
    if not number:
        raise InputError("there is no text: give some with what the direction leads to, and some without")
    return np.asarray(total / number)


def _row(trace: Trace, name: str, position: Where) -> Host:
    """The row of a step at a token, or the mean over all: columns, or heads × 1 × columns, float64."""
    step = step_of_numbers(trace.program, name)
    if step.axes[-1].sequence:
        raise InputError(f"{step.name} has a column for each token: it has no rows of one length")
    region = list(whole(step.shape))
    real: Any = slice(None)
    if len(region) > 1 and step.axes[-2].sequence:
        real = np.flatnonzero(real_tokens(trace, step.axes[-2]))
        size = len(real)
        if position != "mean":
            if not isinstance(position, int | np.integer) or not -size <= position < size:
                raise InputError(f"there is no position {str(position)[:20]!r} in a text of {size} tokens")
            region[-2], real = range(real[position], real[position] + 1), slice(None)
    values = np.asarray(trace.window(step.name, tuple(region)), np.float64)
    values = values[..., real, :] if values.ndim > 1 else values
    rows = values.mean(axis=-2, keepdims=True) if values.ndim > 1 else values
    return rows[0] if rows.ndim == 2 else rows
