"""The metric that the options of a command choose, and its gradients."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.input_attribution import gradients_of
from tui_transformer.analysis.metrics import Metric
from tui_transformer.cli.experiment import parse_positions, where
from tui_transformer.cli.output import note
from tui_transformer.engine.gradient import Gradients
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.targets import default_targets, has_loss, read_targets
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary


class Chosen(Protocol):
    """A request of a command that measures."""

    @property
    def metric(self) -> str | None:
        """Its name."""

    @property
    def tokens(self) -> str | None:
        """The words that it is about."""

    @property
    def targets(self) -> str | None:
        """The right token at every position."""


class Placed(Chosen, Protocol):
    """One that also says where the answer is read."""

    @property
    def position(self) -> str | None:
        """A number, last or all."""


def chosen(session: Session, request: Chosen) -> Metric | None:
    """The metric; None where nothing is said. The loss without tokens is on the targets of the sentence.

    Raises:
        InputError: The model has no logits of words, or a word is none of the vocabulary.
    """
    if request.metric is None and request.tokens is None and request.targets is None:
        return None
    if not session.trace.program.logits:
        raise InputError("the model has no logits of words: metrics are of these")
    tokens = () if request.tokens is None else token_ids(session.model, request.tokens)
    return Metric.of(request.metric, tokens, _targets(session, request))


def gradients_of_chosen(session: Session, request: Placed) -> Gradients:
    """The gradients of the metric that was chosen; its value is said.

    Raises:
        InputError: As `chosen`.
    """
    metric, trace = chosen(session, request), session.trace
    positions = answer_positions(trace, parse_positions(request.position, trace), folder=session.model.folder)
    computed = gradients_of(trace, metric or Metric("divergence"), positions)
    said = metric.said(session.labels.word) if metric is not None else ""
    note(f"{said} {computed.loss:.7g}, read at {where(session, positions)}")
    return computed


def _targets(session: Session, request: Chosen) -> tuple[int, ...]:
    program = session.trace.program
    if request.targets is not None:
        return read_targets(session.model, request.targets, program.shape(program.logits)[0])
    usual = request.metric == "loss" and request.tokens is None and has_loss(program)
    return default_targets(program, session.predicted) if usual else ()


def token_ids(model: Model, text: str) -> tuple[int, ...]:
    """The IDs of words that the model writes, with commas between them.

    Raises:
        InputError: One of them is no word of the vocabulary, and no ID.
    """
    return tuple(_token_id(model.target_vocabulary, model.target_size, word) for word in text.split(","))


def read_id(model: Model, word: str) -> int:
    """The ID of a word that the model reads.

    Raises:
        InputError: As `token_ids`.
    """
    return _token_id(model.vocabulary, model.config.vocab_size, word)


def _token_id(vocabulary: Vocabulary | None, size: int, word: str) -> int:
    if vocabulary is not None:
        with suppress(InputError):
            return vocabulary.token_id(word)
    if word.strip().isdecimal() and len(word) < 10 and int(word) < size:
        return int(word)
    hint = "" if vocabulary is None else ": `tui-transformer vocab search` finds one"
    raise InputError(f"{visible(word.strip()[:40])!r} is no word of the vocabulary and no ID{hint}")
