"""Stops that are words: the token IDs back as text with what is most likely, and the loss with its targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from tui_transformer.engine.gradient import LOGITS, NOT_COUNTED
from tui_transformer.explorer.session import LOSS, PROBABILITIES, TEXT, Session
from tui_transformer.text.display import visible

WORD_WIDTH = 12
MOST_LIKELY = 3
MOST_ROWS = 200
SORTING = 20
"""Operations that sorting takes, per cell."""


@dataclass(frozen=True)
class Guess:
    """A token of the sentence, and the words that the output head finds most likely in its place."""

    token: str
    likely: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Ending:
    """What the last stop shows."""

    sentence: str
    most_likely: str
    guesses: tuple[Guess, ...]


Report = Callable[[str], None]


def ending(session: Session, report: Report) -> Ending:
    """Detokenize the IDs, and the most likely ID at every place."""
    tokenizer, trace, name = session.model.tokenizer, session.trace, PROBABILITIES
    if tokenizer is None:
        raise ValueError("this stop is only there where the model has words")
    trace.compute((name,), before=lambda step: report(step.name))
    rows, columns = trace.program.shape(name)
    shown = min(rows, MOST_ROWS)
    shares = trace.window(name, (range(shown), range(columns)))
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_LIKELY]
    word = session.model.word
    written = session.decoder_encoding or session.encoding
    guesses = tuple(
        Guess(token.text, tuple((word(int(i)), float(row[i])) for i in order))
        for token, row, order in zip(written.tokens, shares, best, strict=False)
    )
    likely = tokenizer.decode([int(i) for i in best[:, 0] if i < tokenizer.vocabulary.size])
    return Ending(tokenizer.decode(written.ids), likely, guesses)


def ending_cost(session: Session) -> int:
    """About how many operations `ending` takes."""
    rows, columns = session.trace.program.shape(PROBABILITIES)
    return session.trace.pending([PROBABILITIES]) + SORTING * min(rows, MOST_ROWS) * columns


def written_ending(session: Session, report: Report) -> Text:
    """Detokenized text and guesses."""
    end, quiet, strong = ending(session, report), Style(dim=True), Style(bold=True)
    text = Text("The token IDs as text again\n", quiet).append(f"{visible(end.sentence)}\n\n", strong)
    text.append("The most likely word at every place, by output.probabilities\n", quiet)
    text.append(f"{visible(end.most_likely)}\n\n", strong)
    for guess in end.guesses:
        text.append(set_cell_size(visible(guess.token), WORD_WIDTH), strong)
        for word, share in guess.likely:
            text.append(f"  {set_cell_size(visible(word), WORD_WIDTH)} {share:6.1%}", Style())
        text.append("\n")
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
