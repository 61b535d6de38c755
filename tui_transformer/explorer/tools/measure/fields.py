"""The fields of a form in which a metric is chosen, and what they give."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.analysis.metrics import METRICS
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.form import TEXT, Field
from tui_transformer.model.targets import target_of, written_targets
from tui_transformer.session.answer_summary import LOSS, measure_of, metric_said
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure

METRIC, TOKENS = "metric", "tokens"
USUAL = "usual"
TITLES: Mapping[str, str] = {
    USUAL: "",
    "KL": "divergence",
    "logit": "logit",
    "ln p": "log-probability",
    "logit difference": "difference",
    "loss": LOSS,
}
"""How the metrics are written, and their names."""

FIELDS = (
    Field(
        METRIC,
        "measured by",
        "Usual: ln p of the most likely token, and KL. Loss without a word: on the targets.",
        tuple(TITLES),
    ),
    Field(TOKENS, "words", "The word that is measured, or the two of a difference: words or token IDs.", longest=TEXT),
)


def values_of(session: Session) -> dict[str, str]:
    """Values of the fields at first."""
    measure = measure_of(session)
    name = "" if measure is None else measure.name
    title = next(title for title, each in TITLES.items() if each == name)
    return {METRIC: title, TOKENS: "" if measure is None else written_targets(session.model, measure.tokens)}


def takes_words(values: Mapping[str, str]) -> bool:
    """Whether the metric is about words."""
    name = TITLES[values[METRIC]]
    return bool(name) and METRICS[name].tokens > 0


def read(session: Session, values: Mapping[str, str]) -> Measure | None:
    """The metric that the fields say; None for the usual.

    Raises:
        InputError: Too few or too many words, or one that is none of the vocabulary.
    """
    name = TITLES[values[METRIC]]
    if not name:
        return None
    pieces = values[TOKENS].replace(",", " ").split() if METRICS[name].tokens else []
    wanted = METRICS[name].tokens
    if len(pieces) != wanted and not (name == LOSS and not pieces and session.has_loss):
        raise InputError(f"{values[METRIC]} is about {'a word' if wanted == 1 else 'two words'}, with a space between")
    return Measure(name, tuple(_token(session, piece) for piece in pieces))


def _token(session: Session, piece: str) -> int:
    token = target_of(session.model, piece)
    if token is None:
        raise InputError(f"{piece!r} is not one token of the vocabulary: write another word, or an ID")
    if not 0 <= token < session.model.target_size:
        raise InputError(f"there is no token {token}: IDs go from 0 to {session.model.target_size - 1}")
    return token


def said_of(session: Session, measure: Measure | None) -> str:
    """The metric, in words."""
    return metric_said(session.with_measure(measure)) or "change of ln p of the most likely token, and KL divergence"
