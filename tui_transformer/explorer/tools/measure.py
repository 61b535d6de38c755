"""The choice of a metric of ablations and patches: its name, and the words that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.screen import Screen

from tui_transformer.analysis.metrics import METRICS
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import TEXT, Field, Form
from tui_transformer.explorer.shell.port import Port
from tui_transformer.model.targets import target_of, written_targets
from tui_transformer.session.answer_summary import LOSS, measure_of, metric_said
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure

METRIC, TOKENS = "metric", "tokens"
TITLES: Mapping[str, str] = {
    "usual": "",
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
NO_WORDS = "this model has no logits of words: it is measured by the relative change of what its last step holds"


def open_from(port: Port) -> None:
    """Choose; ablations and patches are measured by it from then on."""
    choose(
        port,
        port.open,
        lambda changed: port.change(changed(port.session)),
        lambda: port.say(f"measured by: {describe(port.session, port.session.measure)}"),
    )


def choose(
    port: Port,
    put: Callable[[Screen[Any], Callable[[Any], None]], None],
    change: Callable[[Callable[[Session], Session]], None],
    done: Callable[[], None],
) -> None:
    """Ask, and put it into what is explored; says so where the model has no logits of words.

    Args:
        port: The explorer.
        put: Puts a screen in front.
        change: Changes what is explored.
        done: Called once something else was chosen.
    """
    if not port.session.trace.program.logits:
        port.say(NO_WORDS)
        return

    def finish(taken: Taken | None) -> None:
        if taken is not None and taken.measure != port.session.measure:
            change(lambda session: session.with_measure(taken.measure))
            done()

    put(MeasureScreen(port.session), finish)


# The fields of a form in which a metric is chosen


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
    wanted = METRICS[name].tokens
    pieces = values[TOKENS].replace(",", " ").split() if wanted else []
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


def describe(session: Session, measure: Measure | None) -> str:
    """The metric, in words."""
    return metric_said(session.with_measure(measure)) or "change of ln p of the most likely token, and KL divergence"


@dataclass(frozen=True)
class Taken:
    """The choice that was made."""

    measure: Measure | None


class MeasureScreen(Dialog[Taken]):
    """A metric and its words; under them what is measured, or what is wrong."""

    ACTIONS = FORM
    HELP_TOPIC = "ablate"

    def __init__(self, session: Session) -> None:
        super().__init__("Measured by")
        self._session = session
        self._form = Form((FIELDS,), values_of(session), lambda _: self._show())
        self._taken: Taken | None = None

    def body(self) -> ComposeResult:
        yield self._form

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        form = self._form
        form.show_field(TOKENS, shown=takes_words(form.values))
        try:
            self._taken = Taken(read(self._session, form.values))
        except InputError as error:
            self._taken = None
            form.show_status(str(error), wrong=True)
        else:
            form.show_status(describe(self._session, self._taken.measure))

    def action_submit(self) -> None:
        if self._taken is not None:
            self.dismiss(self._taken)
