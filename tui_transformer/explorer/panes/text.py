"""The end of the steps: the token IDs back as text, and what the output head finds most likely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from tui_transformer.explorer.session import PROBABILITIES, Session
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


def ending(session: Session, report: Callable[[str], None]) -> Ending:
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


class TextPane(Static, can_focus=True):
    """The text at the end."""

    DEFAULT_CSS = """
    TextPane { padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        """Make an empty pane."""
        super().__init__("", id=id, markup=False)
        self.border_title = "Text"

    def show(self, end: Ending) -> None:
        """Show detokenized text and guesses."""
        quiet, strong = Style(dim=True), Style(bold=True)
        text = Text("The token IDs as text again\n", quiet).append(f"{visible(end.sentence)}\n\n", strong)
        text.append("The most likely word at every place, by output.probabilities\n", quiet)
        text.append(f"{visible(end.most_likely)}\n\n", strong)
        for guess in end.guesses:
            text.append(set_cell_size(visible(guess.token), WORD_WIDTH), strong)
            for word, share in guess.likely:
                text.append(f"  {set_cell_size(visible(word), WORD_WIDTH)} {share:6.1%}", Style())
            text.append("\n")
        self.update(text)
