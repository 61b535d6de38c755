"""An experiment: a trace with and without edits; the steps that changed, and the answer before and after."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from tui_transformer.analysis.effects import LOGITS, Effect, answer_positions, answer_step, counted_positions, effect
from tui_transformer.analysis.metrics import Metric, log_shares
from tui_transformer.cli.progress import counted, show
from tui_transformer.engine.edits import Change
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.report.differences import Difference, compare_blocks
from tui_transformer.report.export import csv_text
from tui_transformer.report.numbers import aligned
from tui_transformer.report.text import finite
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible


@dataclass(frozen=True)
class Experiment:
    """Result of some edits.

    Attributes:
        what: The edits in words.
        steps: Every step that they reach, before against after.
        where: The positions of the answer in words.
        answers: At each position before and after; none where the model has no vocabulary head.
        metric: What is measured, in words; "" where nothing was chosen.
    """

    what: Sequence[str]
    steps: Sequence[Difference]
    where: str
    answers: Sequence[tuple[Answer, Answer]]
    effect: Effect
    metric: str = ""


def run(
    session: Session,
    what: Sequence[str],
    edits: Sequence[Change],
    positions: range | None,
    metric: Metric | None = None,
) -> Experiment:
    """Compute what the edits reach and compare it.

    Raises:
        InputError: An edit cannot be made, or there is no such position.
    """
    trace, edited = session.trace, session.trace.edited(edits)
    positions = answer_positions(trace, positions, folder=session.model.folder)
    for each in (trace, edited):
        each.compute(before=lambda step: show(step.name))
    reached = trace.program.downstream(edit.name for edit in edited.edits[len(trace.edits) :])
    steps = [step for step in trace.program.steps if step.name in reached]
    differing = counted((_compared(trace, edited, step) for step in steps), (step.name for step in steps))
    both = (answers(session, each, positions) for each in (trace, edited) if has_answers(trace))
    differences, pairs = list(differing), list(zip(*both, strict=True))
    said = "" if metric is None else metric.said(session.labels.word)
    measured = effect(trace, edited, positions, metric=metric)
    return Experiment(what, differences, where(session, positions), pairs, measured, said)


def _compared(trace: Trace, edited: Trace, step: Step) -> Difference:
    pairs = zip(trace.blocks(step.name), edited.blocks(step.name), strict=True)
    return compare_blocks(step.name, step.shape, ((region, old, new) for (region, old), (_, new) in pairs), 0.0)


# The report


def as_text(experiment: Experiment) -> Iterator[str]:
    """The edits, a table of steps, and the answer."""
    yield "".join(f"{visible(line)}\n" for line in experiment.what) + "\n"
    yield from aligned([("step", "shape", "largest", "relative"), *map(_row, experiment.steps)])
    changed = sum(step.beyond for step in experiment.steps)
    yield f"{changed} of {len(experiment.steps)} steps from the edit on changed\n\n"
    yield from _answer_text(experiment)


def _row(difference: Difference) -> tuple[str, str, str, str]:
    return visible(difference.name), difference.shape_text, f"{difference.largest:.2e}", f"{difference.relative:.2e}"


def _answer_text(experiment: Experiment) -> Iterator[str]:
    effect = experiment.effect
    if not experiment.answers:
        yield f"relative change at {experiment.where}: {effect.relative:.4g}\n"
        return
    pairs = experiment.answers
    yield from aligned(_single(*pairs[0], experiment.where) if len(pairs) == 1 else _several(pairs))
    if effect.value is not None and effect.change is not None:
        yield f"\n{visible(experiment.metric)} {effect.value - effect.change:.4g} → {effect.value:.4g}, "
        yield f"change {effect.change:+.4g}\n"
        return
    change, divergence = effect.change, effect.divergence
    likely = pairs[0][0].guesses[0].word if len(pairs) == 1 else "most likely token"
    yield f"\nchange of ln p({likely}) {change:+.4g}, divergence {divergence:.4g}, in nats\n"


def _single(before: Answer, after: Answer, where: str) -> Iterator[tuple[str, ...]]:
    yield f"answer at {where}", "before", "", "after", ""
    for number, (old, new) in enumerate(zip_longest(before.guesses, after.guesses), 1):
        yield str(number), *_said(old), *_said(new)


def _several(pairs: Sequence[tuple[Answer, Answer]]) -> Iterator[tuple[str, ...]]:
    yield "position", "token", "before", "", "after", ""
    for before, after in pairs:
        yield str(before.position), before.word, *_said(before.guesses[0]), *_said(after.guesses[0])


def _said(guess: Guess) -> tuple[str, str]:
    return guess.word, in_percent(guess.share, ".2%")


def as_json(experiment: Experiment) -> Iterator[str]:
    """Everything, as one object."""
    data = {
        "edits": list(experiment.what),
        "steps": [_step_data(step) for step in experiment.steps],
        "answers": [
            {"position": before.position, "before": before.data, "after": after.data}
            for before, after in experiment.answers
        ],
        **({"metric": experiment.metric} if experiment.metric else {}),
        **effect_data(experiment.effect),
    }
    yield json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _step_data(step: Difference) -> dict[str, object]:
    return {
        "name": step.name,
        "shape": list(step.shapes[0]),
        "largest": finite(step.largest),
        "relative": finite(step.relative),
        "index": list(step.index),
        "values": list(map(finite, step.values)),
    }


def as_csv(experiment: Experiment) -> Iterator[str]:
    """The steps."""
    rows = ((step.name, step.largest, step.relative) for step in experiment.steps)
    yield csv_text([("step", "largest", "relative"), *rows])


FORMATS: Mapping[str, Callable[[Experiment], Iterator[str]]] = {"text": as_text, "json": as_json, "csv": as_csv}


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
