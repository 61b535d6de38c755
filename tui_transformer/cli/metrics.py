"""What the options of a command measure, where the answer is read, gradients of both; and what edits change of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from tui_transformer.analysis.effects import Effect, answer_positions, answer_step, counted_positions, effect
from tui_transformer.analysis.input_attribution import gradients_of
from tui_transformer.analysis.measurable import logits_of
from tui_transformer.analysis.metrics import Metric, MetricName, log_shares
from tui_transformer.analysis.score import text_targets
from tui_transformer.cli.options import parse_targets
from tui_transformer.cli.output import emit, emit_csv, emit_json, note
from tui_transformer.cli.terminal import counted, show
from tui_transformer.engine.edits import Change
from tui_transformer.engine.gradient import LOGITS, ONE_LABEL, Gradients, gradients
from tui_transformer.engine.number_format import in_percent
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.targets import has_loss, read_targets
from tui_transformer.records import dataclass
from tui_transformer.report.differences import Difference, compare_blocks
from tui_transformer.report.numbers import aligned
from tui_transformer.report.text import finite
from tui_transformer.session.answer_summary import NO_NUMBER
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary


class Measuring(Protocol):
    """A request: a metric's name, the words that it is about, the right token at every position, where it is read."""

    @property
    def metric(self) -> MetricName | None: ...
    @property
    def tokens(self) -> str | None: ...
    @property
    def targets(self) -> str | None: ...
    @property
    def position(self) -> str | None: ...


def chosen(session: Session, request: Measuring) -> Metric | None:
    """The metric; None where nothing is said. The loss without tokens is on the targets of the sentence."""
    if request.metric is None and request.tokens is None and request.targets is None:
        return None
    program = session.trace.program
    logits = logits_of(program)
    tokens = token_ids(session.model, request.tokens)
    targets: tuple[int, ...] = ()
    if request.targets is not None:
        apart = re.sub(r"(?<=[^\s,]),", " ", request.targets)  # a comma that stands alone is a word
        targets = read_targets(session.model, apart, program.shape(logits)[0])
    elif request.metric == "loss" and request.tokens is None and has_loss(program):
        targets = text_targets(session.trace, session.predicted)
    return Metric.of(request.metric, tokens, targets)


def token_ids(model: Model, text: str | None) -> tuple[int, ...]:
    """The IDs of words that the model writes, with commas between them."""
    words = () if text is None else text.split(",")
    return tuple(token_id(model.target_vocabulary, model.target_size, word) for word in words)


def token_id(vocabulary: Vocabulary | None, size: int, word: str) -> int:
    """The ID of a word of a vocabulary, or that is written itself, below so many."""
    if vocabulary is not None:
        with suppress(InputError):
            return vocabulary.token_id(word)
    if word.strip().isdecimal() and len(word) < 10 and int(word) < size:
        return int(word)
    hint = "" if vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")


# Where the answer is read


def positions_of(session: Session, text: str | None) -> range:
    """The positions of `--position`, a number, "last" or "all"; by default where the model answers."""
    if text in ("last", "all"):
        counted = counted_positions(session.trace)
        return counted if text == "all" else counted[-1:]
    if text is not None and not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"--position {text[:40]!r} is not a position: write a number from 0, last or all")
    return answer_positions(session.trace, None if text is None else int(text), folder=session.model.folder)


def where(session: Session, positions: range) -> str:
    """The positions in words: `position 7, !` or `positions 0 to 7`."""
    if len(positions) > 1:
        return f"positions {positions.start} to {positions.stop - 1}"
    label = session.labels.of(session.trace.program.axes(answer_step(session.trace))[-2])(positions.start)
    return f"position {positions.start}" + (f", {label}" if label != str(positions.start) else "")


def said_of(session: Session, metric: Metric, positions: range) -> str:
    """A metric in words, and where it is read unless it says so itself."""
    return metric.said(session.labels.word) + ("" if metric.targets else f" at {where(session, positions)}")


# Gradients


def gradients_of_chosen(session: Session, trace: Trace, request: Measuring) -> tuple[Gradients, tuple[int, ...]]:
    """The gradients of the metric that was chosen, else of the cross-entropy on the targets, which are given back.

    What was computed is said in a line.
    """
    if request.metric is None and request.tokens is None:
        return _backward(trace, request)
    if trace is not session.trace:
        raise UsageError("a metric is of one sentence: give one")
    metric = chosen(session, request) or Metric("divergence")
    positions = positions_of(session, request.position)
    computed = gradients_of(trace, metric, positions)
    read = "" if metric.targets else f", read at {where(session, positions)}"
    note(f"{metric.said(session.labels.word)} {computed.loss:.7g}{read}")
    return computed, ()


def _backward(trace: Trace, request: Measuring) -> tuple[Gradients, tuple[int, ...]]:
    if LOGITS not in trace.program.by_name:
        raise InputError(f"this model has no {LOGITS}: without them there is no loss, and no gradients")
    if len(trace.program.axes(LOGITS)) < 2:
        raise InputError(ONE_LABEL)
    positions = trace.program.shape(LOGITS)[0]
    targets = parse_targets(request.targets, positions)
    computed = gradients(trace, [targets])
    of = f"{computed.counted} of {positions} position{'s' * (positions != 1)}"
    note(f"loss {computed.loss:.7g}: mean cross-entropy in nats over {of}")
    return computed, targets


# Experiments: a trace with and without edits, the steps that changed, and the answer before and after

MOST_LIKELY = 5


@dataclass(frozen=True)
class Answer:
    """The most likely tokens after one position: ID, word and share of each."""

    position: int
    word: str
    guesses: tuple[tuple[int, str, float], ...]

    def data(self) -> list[dict[str, Any]]:
        """As JSON can hold it."""
        return [{"id": token, "token": word, "probability": finite(share)} for token, word, share in self.guesses]

    def said(self, rank: int = 0) -> tuple[str, str]:
        """A word and its share; of logits that are no numbers none is likely."""
        _, word, share = self.guesses[rank]
        return (NO_NUMBER, "") if math.isnan(share) else (word, in_percent(share, ".2%"))


def has_answers(trace: Trace) -> bool:
    """Whether the model has shares of words."""
    return answer_step(trace) == trace.program.logits


def answers(session: Session, trace: Trace, positions: range) -> Iterator[Answer]:
    """The answer at each position; none where the model has no shares of words."""
    if not has_answers(trace):
        return
    columns = range(trace.program.shape(LOGITS)[1])
    label = session.labels.of(trace.program.axes(LOGITS)[0])
    for (rows, _), logits in trace.blocks(trace.program.logits, (positions, columns)):
        for position, shares in zip(rows, np.exp(log_shares(logits)), strict=True):
            best = np.argsort(-shares, kind="stable")[:MOST_LIKELY].tolist()
            guesses = ((token, visible(session.labels.word(token)), float(shares[token])) for token in best)
            yield Answer(position, label(position), tuple(guesses))


def effect_data(effect: Effect) -> dict[str, float | None]:
    """The numbers that the model's kind of answer has."""
    names = ("value", "change", "divergence", "relative")
    return {name: finite(value) for name in names if (value := getattr(effect, name)) is not None}


def emit_experiment(
    session: Session, what: Sequence[str], edits: Sequence[Change], request: Measuring, form: str
) -> None:
    """Write what some edits, named in `what`, change: the steps that they reach, and the answer before and after.

    As text or JSON; as CSV the steps alone.
    """
    trace, edited = session.trace, session.trace.edited(edits)
    metric, positions = chosen(session, request), positions_of(session, request.position)
    for each in (trace, edited):
        each.compute(before=lambda step: show(step.name))
    reached = trace.program.downstream(edit.name for edit in edited.edits[len(trace.edits) :])
    among = [step for step in trace.program.steps if step.name in reached]
    steps = list(counted((_compared(trace, edited, step) for step in among), (step.name for step in among)))
    if form == "csv":
        emit_csv(("step", "largest", "relative"), ((step.name, step.largest, step.relative) for step in steps))
        return
    pairs = list(zip(*(answers(session, each, positions) for each in (trace, edited)), strict=True))
    said = "" if metric is None else metric.said(session.labels.word)
    measured = effect(trace, edited, positions, metric=metric)
    if form == "text":
        emit(f"{visible(line)}\n" for line in (*what, ""))
        rows = [(visible(each.name), each.shape_text, f"{each.largest:.2e}", f"{each.relative:.2e}") for each in steps]
        emit(aligned([("step", "shape", "largest", "relative"), *rows]))
        emit([f"{sum(each.beyond for each in steps)} of {len(steps)} steps from the edit on changed\n\n"])
        read = "" if pairs else f"of {answer_step(trace)} at "
        emit(_answers_as_text(read + where(session, positions), pairs, measured, said))
        return
    emit_json(
        {
            "edits": list(what),
            "steps": [_step_data(step) for step in steps],
            "answers": [{"position": old.position, "before": old.data(), "after": new.data()} for old, new in pairs],
            **({"metric": said} if said else {}),
            **effect_data(measured),
        }
    )


def _answers_as_text(place: str, pairs: Sequence[tuple[Answer, Answer]], effect: Effect, metric: str) -> Iterator[str]:
    """At one position the most likely tokens before and after, else the first of each; and what that measures."""
    if not pairs:
        yield f"relative change {place}: {effect.relative:.4g}\n"
        return
    rows: list[tuple[str, ...]] = [("position", "token", "before", "", "after", "")]
    if len(pairs) == 1:
        before, after = pairs[0]
        ranks = range(len(before.guesses))
        rows = [(f"answer at {place}", "before", "", "after", "")]
        rows += [(str(rank + 1), *before.said(rank), *after.said(rank)) for rank in ranks]
    else:
        rows += [(str(before.position), before.word, *before.said(), *after.said()) for before, after in pairs]
    yield from aligned(rows)
    if effect.value is not None and effect.change is not None:
        yield f"\n{visible(metric)} {effect.value - effect.change:.4g} → {effect.value:.4g}, "
        yield f"change {effect.change:+.4g}\n"
        return
    likely = pairs[0][0].said()[0] if len(pairs) == 1 else "most likely token"
    yield f"\nchange of ln p({likely}) {effect.change:+.4g}, divergence {effect.divergence:.4g}, in nats\n"


def _step_data(step: Difference) -> dict[str, object]:
    return {
        "name": step.name,
        "shape": list(step.shapes[0]),
        "largest": finite(step.largest),
        "relative": finite(step.relative),
        "index": list(step.index),
        "values": list(map(finite, step.values)),
    }


def _compared(trace: Trace, edited: Trace, step: Step) -> Difference:
    pairs = zip(trace.blocks(step.name), edited.blocks(step.name), strict=True)
    return compare_blocks(step.name, step.shape, ((region, old, new) for (region, old), (_, new) in pairs), 0.0)
