"""The metric that the options of a command choose."""

from __future__ import annotations

from typing import Protocol

from tui_transformer.analysis.metrics import Metric
from tui_transformer.cli.token_names import token_ids
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


def _targets(session: Session, request: Chosen) -> tuple[int, ...]:
    program = session.trace.program
    if request.targets is not None:
        return read_targets(session.model, request.targets, program.shape(program.logits)[0])
    usual = request.metric == "loss" and request.tokens is None and has_loss(program)
    return default_targets(program, session.predicted) if usual else ()
