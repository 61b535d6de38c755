"""What is measured: the metric of ablations and patches, with the words that it is about, and the loss, by targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal

from textual.content import Content

from tui_transformer.analysis.metrics import METRICS, MetricName
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.base import Port, ask_of_now
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import TEXT, Field, Form
from tui_transformer.explorer.shell.line_input import completes
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.prompt import Advice, asking
from tui_transformer.model.model import Model
from tui_transformer.model.targets import Ids, predicts_next, read_targets, target_of, written_targets
from tui_transformer.session.answer_summary import LOSS, measure_of, metric_said
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS as LOSS_STOP
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import Measure
from tui_transformer.text.display import visible

METRIC, TOKENS = "metric", "tokens"
TITLES: Mapping[str, MetricName | Literal[""]] = {
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


def open_measure(port: Port) -> None:
    """Choose; ablations and patches are measured by it from then on."""
    choose(port, lambda: port.say(f"measured by: {describe(port.session, port.session.measure)}"))


def choose(port: Port, done: Callable[[], None], over: Overview | None = None) -> None:
    """Ask, over a tool if one is given, which changes it too; once something else was chosen, be done.

    Says so where the model has no logits of words.
    """
    if not port.session.trace.program.logits:
        change_of = "it is measured by the relative change of what its last step holds"
        port.say(f"this model has no logits of words: {change_of}")
        return

    def finish(taken: tuple[Measure | None] | None) -> None:
        if taken is None or taken[0] == port.session.measure:
            return
        if over is None:
            port.change(port.session.with_measure(*taken))
        else:
            over.change(lambda session: session.with_measure(*taken))
        done()

    (port if over is None else over).open(MeasureScreen(port.session), finish)


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
    return name != "" and METRICS[name].tokens > 0


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
    tokens = []
    for piece in pieces:
        token = target_of(session.model, piece)
        if token is None:
            raise InputError(f"{piece!r} is not one token of the vocabulary: write another word, or an ID")
        if not 0 <= token < session.model.target_size:
            raise InputError(f"there is no token {token}: IDs go from 0 to {session.model.target_size - 1}")
        tokens.append(token)
    return Measure(name, tuple(tokens))


def describe(session: Session, measure: Measure | None) -> str:
    """The metric, in words."""
    return metric_said(session.with_measure(measure)) or "change of ln p of the most likely token, and KL divergence"


class MeasureScreen(Dialog[tuple[Measure | None]]):
    """A metric and its words; under them what is measured, or what is wrong. It gives the choice: None is one, too."""

    ACTIONS = FORM
    HELP_TOPIC = "ablate"

    def __init__(self, session: Session) -> None:
        self._session = session
        self._form = Form((FIELDS,), values_of(session), lambda _: self._show())
        super().__init__("Measured by", self._form)
        self._taken: tuple[Measure | None] | None = None

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        form = self._form
        form.show_field(TOKENS, shown=takes_words(form.values))
        try:
            self._taken = (read(self._session, form.values),)
        except InputError as error:
            self._taken = None
            form.show_status(str(error), wrong=True)
        else:
            form.show_status(describe(self._session, *self._taken))

    def action_submit(self) -> None:
        if self._taken is not None:
            self.dismiss(self._taken)


# The targets of the loss: one word, token ID or −1 for every position, checked while they are typed


TO = "\u00a0→\u00a0"
"""Between a token and its target, never at the end of a line."""


def open_targets(port: Port) -> None:
    """Set the targets, and walk backwards from their loss."""
    session, program = port.session, port.session.base.program
    cost = sum(map(program.flops, program.steps)) if session.targets is None and session.answers_once else 0
    ask_of_now(port, "targets", lambda _: session.loss_targets, lambda _: _ask_for_targets(port, session), cost)


def _ask_for_targets(port: Port, session: Session) -> None:
    """In a line; under it what every position is to become, or what is wrong."""
    model, tokens = session.model, (session.decoder_encoding or session.encoding).tokens

    def take(targets: Ids) -> None:
        port.change(session.with_targets(targets), Position(LOSS_STOP, port.position.place))

    usual = "The tokens themselves, unless you say otherwise."
    if session.answers_once:
        usual = "The model's own answer, unless you say otherwise; any other gives larger gradients."
    elif predicts_next(session.base.program):
        usual = "The next token at every position, unless you say otherwise."
    prompt = asking(
        "Targets of the loss",
        lambda typed: read_targets(model, typed, len(tokens)),
        take,
        value=written_targets(model, session.loss_targets),
        hint=f"Words or token IDs with a space between them; -1 is not counted.\n{usual}",
        advise=partial(_advice, model, [model.label(token.text) for token in tokens]),
    )
    port.open(*prompt)


def _advice(model: Model, tokens: Sequence[str], typed: str) -> Advice:
    """The target of every position, or the mistake, and the words that the last typed one may become."""
    before, space, last = typed.rpartition(" ")
    known, completions = model.target_vocabulary, list[str]()
    if known is not None and last and not last.lstrip("-−").isdecimal():
        fitting = (word for word in known.words if completes(word, last) and word != last and visible(word) == word)
        completions = [f"{before}{space}{word}" for word in islice(fitting, 12)]
    try:
        targets = read_targets(model, typed, len(tokens))
    except InputError as error:
        words = [completed.rpartition(" ")[2] for completed in completions]
        return Advice(Content(f"tab: {'   '.join(words)}" if words else ""), completions, str(error))
    pairs = zip(tokens[:24], targets, strict=False)
    lines = (f"{token}{TO}{'·' if to == NOT_COUNTED else model.target_label(to)}" for token, to in pairs)
    return Advice(Content("   ").join(map(Content, lines)), completions)
