"""What the options of a command measure, where the answer is read, and gradients of both."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Protocol

from tui_transformer.analysis.effects import answer_positions, answer_step, counted_positions
from tui_transformer.analysis.input_attribution import gradients_of
from tui_transformer.analysis.metrics import Metric, MetricName
from tui_transformer.cli.output import note
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED, Gradients, gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.targets import default_targets, has_loss, read_targets
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary


class Measuring(Protocol):
    """A request: the name of a metric, the words that it is about, and the right token at every position."""

    @property
    def metric(self) -> MetricName | None: ...
    @property
    def tokens(self) -> str | None: ...
    @property
    def targets(self) -> str | None: ...


def chosen(session: Session, request: Measuring) -> Metric | None:
    """The metric; None where nothing is said. The loss without tokens is on the targets of the sentence."""
    if request.metric is None and request.tokens is None and request.targets is None:
        return None
    program = session.trace.program
    if not program.logits:
        raise InputError("the model has no logits of words: metrics are of these")
    tokens = token_ids(session.model, request.tokens)
    targets: tuple[int, ...] = ()
    if request.targets is not None:
        targets = read_targets(session.model, request.targets, program.shape(program.logits)[0])
    elif request.metric == "loss" and request.tokens is None and has_loss(program):
        targets = default_targets(program, session.predicted)
    return Metric.of(request.metric, tokens, targets)


def token_ids(model: Model, text: str | None) -> tuple[int, ...]:
    """The IDs of words that the model writes, with commas between them."""
    words = () if text is None else text.split(",")
    return tuple(_token_id(model.target_vocabulary, model.target_size, word) for word in words)


def read_id(model: Model, word: str) -> int:
    """The ID of a word that the model reads."""
    return _token_id(model.vocabulary, model.config.vocab_size, word)


def _token_id(vocabulary: Vocabulary | None, size: int, word: str) -> int:
    if vocabulary is not None:
        with suppress(InputError):
            return vocabulary.token_id(word)
    if word.strip().isdecimal() and len(word) < 10 and int(word) < size:
        return int(word)
    hint = "" if vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")


# Where the answer is read


def parse_positions(text: str | None, trace: Trace) -> range | None:
    """`--position`: a number, "last" or "all"; None where the default is meant."""
    if text is None:
        return None
    if text in ("last", "all"):
        counted = counted_positions(trace)
        return counted if text == "all" else counted[-1:]
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageError(f"--position {text[:40]!r} is not a position: write a number from 0, last or all")
    return range(int(text), int(text) + 1)


def positions_of(session: Session, text: str | None) -> range:
    """The positions of `--position`, by default where the model answers."""
    return answer_positions(session.trace, parse_positions(text, session.trace), folder=session.model.folder)


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


def gradients_of_chosen(session: Session, request: Measuring, position: str | None) -> Gradients:
    """The gradients of the metric that was chosen; its value is said."""
    metric, positions = chosen(session, request), positions_of(session, position)
    computed = gradients_of(session.trace, metric or Metric("divergence"), positions)
    said = metric.said(session.labels.word) if metric is not None else ""
    note(f"{said} {computed.loss:.7g}, read at {where(session, positions)}")
    return computed


def backward(trace: Trace, targets: tuple[int, ...]) -> Gradients:
    """The gradients of the mean cross-entropy, and one line about it."""
    if LOGITS not in trace.program.by_name:
        raise InputError(f"this model has no {LOGITS}: without them there is no loss, and no gradients")
    positions = trace.program.shape(LOGITS)[0]
    if len(targets) != positions:
        raise InputError(
            f"--targets: {len(targets)} for {positions} positions: give one token ID for each, -1 where none is counted"
        )
    computed = gradients(trace, [targets])
    counted = sum(target != NOT_COUNTED for target in targets)
    note(f"loss {computed.loss:.7g}: mean cross-entropy in nats over {counted} of {positions} positions")
    return computed
