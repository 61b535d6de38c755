"""The metric that the options of a command choose, and its gradients."""

from __future__ import annotations

from typing import Protocol

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.input_attribution import gradients_of
from tui_transformer.analysis.metrics import Metric
from tui_transformer.cli.answers import parse_positions, where
from tui_transformer.cli.output import note
from tui_transformer.cli.token_names import token_ids
from tui_transformer.engine.gradient import Gradients
from tui_transformer.errors import InputError
from tui_transformer.explorer.state.session import Session
from tui_transformer.model.targets import default_targets, has_loss, read_targets


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
