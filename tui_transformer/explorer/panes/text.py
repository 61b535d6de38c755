"""Stops that are words: the token IDs back as text with what is most likely, and the loss with its targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.engine.trace import Trace
from tui_transformer.explorer.session import LOSS, PROBABILITIES, TEXT, Session
from tui_transformer.text.display import visible

WORD_WIDTH = 12
MOST_LIKELY = 3
MOST_ROWS = 200
SORTING = 20
"""Operations that sorting takes, per cell."""

MOST_LIKELY_WORDS = "The most likely word at every place, by output.probabilities"
EDITED = "Most likely at every place, by output.probabilities; before the edits below"

Likely = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Guess:
    """A token of the sentence, and the words that the output head finds most likely in its place.

    `before` says the same without the edits, where that is not the same to the last digit that is shown.
    """

    token: str
    likely: Likely
    before: Likely = ()


@dataclass(frozen=True)
class Ending:
    """What the last stop shows."""

    sentence: str
    most_likely: str
    guesses: tuple[Guess, ...]


Report = Callable[[str], None]


def ending(session: Session, report: Report) -> Ending:
    """Detokenize the IDs, and the most likely ID at every place."""
    tokenizer, trace = session.model.tokenizer, session.trace
    if tokenizer is None:
        raise ValueError("this stop is only there where the model has words")
    word = session.model.word
    shares = _shares(trace, report)
    found = _likely(shares, word)
    before = _likely(_shares(session.base, report), word) if session.edits else found
    written = session.decoder_encoding or session.encoding
    guesses = tuple(
        Guess(token.text, now, then if _shown(then) != _shown(now) else ())
        for token, now, then in zip(written.tokens, found, before, strict=False)
    )
    best = np.nan_to_num(shares, nan=-1.0).argmax(axis=1)
    likely = tokenizer.decode([int(i) for i in best if i < tokenizer.vocabulary.size])
    return Ending(tokenizer.decode(written.ids), likely, guesses)


def _shares(trace: Trace, report: Report) -> Host:
    """The probabilities at as many positions as are shown."""
    trace.compute((PROBABILITIES,), before=lambda step: report(step.name))
    rows, columns = trace.program.shape(PROBABILITIES)
    return trace.window(PROBABILITIES, (range(min(rows, MOST_ROWS)), range(columns)))


def _likely(shares: Host, word: Callable[[int], str]) -> tuple[Likely, ...]:
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_LIKELY]
    return tuple(tuple((word(int(i)), float(row[i])) for i in order) for row, order in zip(shares, best, strict=True))


def _shown(likely: Likely) -> str:
    """Words and probabilities in columns."""
    return "".join(f"  {set_cell_size(visible(word), WORD_WIDTH)} {share:6.1%}" for word, share in likely)


def ending_cost(session: Session) -> int:
    """About how many operations `ending` takes."""
    rows, columns = session.trace.program.shape(PROBABILITIES)
    traces = (session.trace, session.base) if session.edits else (session.trace,)
    return sum(trace.pending([PROBABILITIES]) + SORTING * min(rows, MOST_ROWS) * columns for trace in traces)


def written_ending(session: Session, report: Report) -> Text:
    """Detokenized text and guesses."""
    end, quiet, strong = ending(session, report), Style(dim=True), Style(bold=True)
    text = Text("The token IDs as text again\n", quiet).append(f"{visible(end.sentence)}\n\n", strong)
    text.append(f"{EDITED if session.edits else MOST_LIKELY_WORDS}\n", quiet)
    text.append(f"{visible(end.most_likely)}\n\n", strong)
    for guess in end.guesses:
        text.append(set_cell_size(visible(guess.token), WORD_WIDTH), strong)
        text.append(f"{_shown(guess.likely)}\n", Style())
        if guess.before:
            text.append(f"{set_cell_size('  before', WORD_WIDTH)}{_shown(guess.before)}\n", quiet)
    return text


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
    logits = session.trace.window(LOGITS, (range(shown), range(columns))).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    tokens = (session.decoder_encoding or session.encoding).tokens
    return tuple(
        Miss(token.text, "", None) if target == NOT_COUNTED else Miss(token.text, word(target), float(row[target]))
        for token, target, row in zip(tokens, targets, shares, strict=False)
    )


def written_loss(session: Session, report: Report) -> Text:
    """The loss, and what every position adds to it."""
    loss, quiet, strong = session.go_back(report).loss, Style(dim=True), Style(bold=True)
    counted = sum(target != NOT_COUNTED for target in session.loss_targets)
    text = Text("loss ", quiet).append(f"{loss:.6g}", strong)
    text.append(f"  = mean of −ln p(target) over {counted:,} of {len(session.loss_targets):,} positions\n\n", quiet)
    names = "".join(set_cell_size(name, WORD_WIDTH + 2) for name in ("token", "target"))
    text.append(f"{names}{'p(target)':>10}{'−ln p':>9}\n", quiet)
    for miss in misses(session):
        text.append(set_cell_size(visible(miss.token), WORD_WIDTH) + "  ", strong)
        if miss.share is None:
            text.append("−1: not counted\n", quiet)
            continue
        text.append(set_cell_size(visible(miss.target), WORD_WIDTH) + "  ", Style())
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
    made: Callable[[Session, Report], Text]


WORDS = {TEXT: Words("Text", ending_cost, written_ending), LOSS: Words("Loss", loss_cost, written_loss)}


class TextPane(Static, can_focus=True):
    """A stop that is words."""

    DEFAULT_CSS = """
    TextPane { padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__("", id=id, markup=False)
