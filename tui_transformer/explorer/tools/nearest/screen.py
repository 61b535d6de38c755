"""The nearest words: a list of cosines for a word, or for a sum such as king - man + woman."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.analysis.similar import Term, similar, table_name, terms_of
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import READER
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.pages import Page
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.session.nearest_tokens import COST, sum_of, table_at
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible

TOP = 30
WORD = 24


def open_from(port: Port) -> None:
    """Ask for the words; says so where the model has no table of words."""
    session = port.session
    try:
        table = table_at(session.trace, port.position.stop) or table_name(session.trace)
    except InputError as error:
        port.say(str(error))
        return

    def ask(text: str | None) -> None:
        if text is None:
            return
        terms = terms_of(session.model, text)
        cost = COST * math.prod(session.trace.program.shape(table))
        port.keep_words(text if len(terms) > 1 else "")
        among = session.model.has_vector
        port.ask(
            "nearest",
            cost,
            lambda _: similar(session.trace, terms, TOP, table, among),
            lambda nearest: show(terms, nearest),
        )

    def show(terms: tuple[Term, ...], nearest: Sequence[tuple[int, float]]) -> None:
        port.open(NearestScreen(session, terms, nearest))

    hint = "by the cosine of their rows of the embedding; the words of a sum are left out"
    prompt = PromptScreen(
        "Words near to",
        value=_under_cursor(port),
        placeholder="a word, or king - man + woman",
        hint=hint,
        check=lambda text: terms_of(session.model, text),
    )
    port.open(prompt, ask)


def _under_cursor(port: Port) -> str:
    tokens, row = port.session.encoding.tokens, port.position.place.row
    return tokens[row].text.strip() if row < len(tokens) and tokens[row].text.strip().isalnum() else ""


class NearestScreen(Dialog[None]):
    """A line a word, the nearest first."""

    ACTIONS = READER

    def __init__(self, session: Session, terms: tuple[Term, ...], nearest: Sequence[tuple[int, float]]) -> None:
        super().__init__(f"Words near to {visible(sum_of(session, terms))}")
        self.session, self.nearest = session, nearest

    def body(self) -> ComposeResult:
        """The list."""
        lines = [Content.styled(f"{'':>4} {fit('word', WORD)} {'ID':>8}  cosine", "$foreground 65%")]
        for rank, (token, cosine) in enumerate(self.nearest, 1):
            word = fit(self.session.model.word_label(token), WORD)
            lines.append(Content(f"{rank:>4} {word} {token:>8}  {minus(f'{cosine:7.4f}')}"))
        with Page():
            yield Static(Content("\n").join(lines), markup=False)
