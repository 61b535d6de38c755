"""Stops that are words: the token IDs back as text with what is most likely, and the loss with its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Static

from tui_transformer.analysis.answer import Likely, likely_at
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.shell.actions import TEMPERATURE
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.state.session import LOSS, PROBABILITIES, TEXT, Session
from tui_transformer.learning.answering import answers_first
from tui_transformer.text.display import fit, visible

WORD_WIDTH, LIKELY_WIDTH = 12, 10
"""Cells of a token, and of one that is likely in its place."""

MOST_LIKELY = 3
MOST_ROWS = 200
SORTING = 20
"""Operations that sorting takes, per cell."""

MOST_LIKELY_WORDS = "The most likely word at every place"
AT_THE_FIRST = "The most likely word at the first token, where this model answers"
EDITED = "\nbefore: without the edits"

TEMPERATURES = (0.0, *(tenth / 10 for tenth in range(1, 11)), 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)


@dataclass(frozen=True)
class Guess:
    """A token of the sentence, and what the output head finds most likely in its place: words and probabilities.

    `before` says the same without the edits, where that is not the same to the last digit that is shown.
    """

    token: str
    likely: str
    before: str = ""


@dataclass(frozen=True)
class Ending:
    """What the last stop shows.

    `first` says that the model was trained to answer at its first token alone, and only that is in the lists.
    """

    sentence: str
    most_likely: str
    guesses: tuple[Guess, ...]
    first: bool = False


Report = Callable[[str], None]


def ending(session: Session, report: Report, temperature: float = 1.0) -> Ending:
    """Detokenize the IDs, and the most likely ID at every place where the model answers."""
    tokenizer, trace = session.model.tokenizer, session.trace
    if tokenizer is None:
        raise ValueError("this stop is only there where the model has words")
    word, first = session.model.word, answers_first(session.model.folder)
    rows = 1 if first else MOST_ROWS
    found = _likely(trace, rows, temperature, report)
    before = _likely(session.base, rows, temperature, report) if session.edits else found
    written = session.decoder_encoding or session.encoding
    guesses = tuple(
        Guess(token.text, now, then if then != now else "")
        for token, now, then in zip(written.tokens, _shown(found, word), _shown(before, word), strict=False)
    )
    best = (row[0].token for row in found if row)
    likely = tokenizer.decode([token for token in best if token < tokenizer.vocabulary.size])
    return Ending(tokenizer.decode(written.ids), likely, guesses, first)


def _likely(trace: Trace, rows: int, temperature: float, report: Report) -> list[tuple[Likely, ...]]:
    """The most likely tokens at the first positions."""
    trace.compute((PROBABILITIES,), before=lambda step: report(step.name))
    places = range(min(rows, trace.program.shape(PROBABILITIES)[0]))
    found = []
    for place in places:
        report(f"position {place:,}")
        found.append(likely_at(trace, place, MOST_LIKELY, temperature))
    return found


def _shown(found: Sequence[tuple[Likely, ...]], word: Callable[[int], str]) -> list[str]:
    """Words and probabilities in columns, a line a position."""
    return ["".join(_column(word(each.token), each.probability) for each in row) for row in found]


def _column(word: str, share: float) -> str:
    return f" {fit(word, LIKELY_WIDTH)} {share:6.1%}"


def ending_cost(session: Session) -> int:
    """About how many operations `ending` takes."""
    rows, columns = session.trace.program.shape(PROBABILITIES)
    traces = (session.trace, session.base) if session.edits else (session.trace,)
    return sum(trace.pending([PROBABILITIES]) + SORTING * min(rows, MOST_ROWS) * columns for trace in traces)


def written_ending(session: Session, report: Report, temperature: float = 1.0) -> Text:
    """Detokenized text and guesses."""
    end, quiet, strong = ending(session, report, temperature), Style(dim=True), Style(bold=True)
    text = Text().append("The token IDs as text again\n", quiet).append(f"{visible(end.sentence)}\n\n", strong)
    text.append(f"{AT_THE_FIRST if end.first else MOST_LIKELY_WORDS}\n", quiet)
    text.append(f"{visible(end.most_likely)}\n\n", strong)
    text.append(f"{_formula(temperature)}{EDITED if session.edits else ''}\n", quiet)
    for guess in end.guesses:
        text.append(fit(guess.token, WORD_WIDTH), strong)
        text.append(f"{guess.likely}\n", Style())
        if guess.before:
            text.append(f"{fit('  before', WORD_WIDTH)}{guess.before}\n", quiet)
    return text


def _formula(temperature: float) -> str:
    """How the probabilities are made, and how to change the temperature."""
    limit = " (limit)" if not temperature else ""
    return f"softmax(logits ÷ T), T = {temperature:g}{limit} · + − change T, for this table alone"


# The loss


@dataclass(frozen=True)
class Miss:
    """A position: its token, its target and how likely the model finds it; None where it is not counted."""

    token: str
    target: str
    share: float | None


def misses(session: Session) -> tuple[Miss, ...]:
    """Every position with the share of its target, from a softmax in float64."""
    targets, word = session.loss_targets, session.model.word
    rows, columns = session.trace.program.shape(LOGITS)
    shown = min(rows, MOST_ROWS)
    logits = session.trace.window(session.trace.program.logits, (range(shown), range(columns))).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    tokens = (session.decoder_encoding or session.encoding).tokens
    return tuple(
        Miss(token.text, "", None) if target == NOT_COUNTED else Miss(token.text, word(target), float(row[target]))
        for token, target, row in zip(tokens, targets, shares, strict=False)
    )


def written_loss(session: Session, report: Report, temperature: float = 1.0) -> Text:  # noqa: ARG001 - one signature
    """The loss, and what every position adds to it; no temperature has a part in it."""
    loss, quiet, strong = session.go_back(report).loss, Style(dim=True), Style(bold=True)
    counted = sum(target != NOT_COUNTED for target in session.loss_targets)
    text = Text().append("loss ", quiet).append(f"{loss:.6g}", strong)
    text.append(f"  = mean of −ln p(target) over {counted:,} of {len(session.loss_targets):,} positions\n\n", quiet)
    names = "".join(fit(name, WORD_WIDTH + 2) for name in ("token", "target"))
    text.append(f"{names}{'p(target)':>10}{'−ln p':>9}\n", quiet)
    for miss in misses(session):
        text.append(fit(miss.token, WORD_WIDTH) + "  ", strong)
        if miss.share is None:
            text.append("−1: not counted\n", quiet)
            continue
        text.append(fit(miss.target, WORD_WIDTH) + "  ", Style())
        text.append(
            f"{miss.share:10.2%}{-np.log(miss.share):9.3f}\n" if miss.share else f"{0:10.2%}{'∞':>9}\n", Style()
        )
    return text.append("\nspace goes back, step by step, to the embedding · B sets other targets", quiet)


def loss_cost(session: Session) -> int:
    """About how many operations the loss and its gradients take."""
    program = session.trace.program
    return 0 if session.went_back else 3 * sum(map(program.flops, program.steps))


@dataclass(frozen=True)
class Words:
    """A stop that is words: its title, what it costs and how it is made."""

    title: str
    cost: Callable[[Session], int]
    made: Callable[[Session, Report, float], Text]


WORDS = {TEXT: Words("Text", ending_cost, written_ending), LOSS: Words("Loss", loss_cost, written_loss)}


class TextPane(Static, can_focus=True):
    """A stop that is words."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TEMPERATURE)
    DEFAULT_CSS = """
    TextPane { padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__("", id=id, markup=False)

    class Warmed(Message):
        """The user wants another temperature: so many steps up, or down."""

        def __init__(self, steps: int) -> None:
            super().__init__()
            self.steps = steps

    def action_warmer(self, steps: int) -> None:
        """Ask for the next or previous temperature."""
        self.post_message(self.Warmed(steps))
