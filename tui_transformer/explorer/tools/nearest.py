"""The nearest words: a list of cosines for a word, or for a sum such as king - man + woman."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content

from tui_transformer.analysis.similar import Term, similar, table_name, terms_of
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.actions.dialogs import READER
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen, reading
from tui_transformer.session.nearest_tokens import COST, sum_of, table_at
from tui_transformer.session.session import Session
from tui_transformer.text.display import fit, visible

TOP = 30
WORD = 24


def open_from(port: Port) -> None:
    """Ask for the words, and list those near to them."""
    session = port.session
    table = table_at(session.trace, port.position.stop) or table_name(session.trace)

    def find(asked: tuple[str, tuple[Term, ...]]) -> None:
        text, terms = asked
        port.keep_words(text if len(terms) > 1 else "")
        port.ask(
            "nearest",
            COST * math.prod(session.trace.program.shape(table)),
            lambda _: similar(session.trace, terms, TOP, table, session.model.has_vector),
            lambda nearest: port.open(NearestScreen(session, terms, nearest)),
        )

    check, answered = reading(lambda text: (text, terms_of(session.model, text)), find)
    tokens, row = session.encoding.tokens, port.position.place.row
    here = tokens[row].text.strip() if row < len(tokens) else ""
    prompt = PromptScreen(
        "Words near to",
        value=here if here.isalnum() else "",
        placeholder="a word, or king - man + woman",
        hint="by the cosine of their rows of the embedding; the words of a sum are left out",
        check=check,
    )
    port.open(prompt, answered)


class NearestScreen(Dialog[None]):
    """A line a word, the nearest first."""

    ACTIONS = READER

    def __init__(self, session: Session, terms: tuple[Term, ...], nearest: Sequence[tuple[int, float]]) -> None:
        super().__init__(f"Words near to {visible(sum_of(session, terms))}")
        self.session, self.nearest = session, nearest

    def text(self) -> Content:
        lines = [Content.styled(f"{'':>4} {fit('word', WORD)} {'ID':>8}  cosine", "$foreground 65%")]
        for rank, (token, cosine) in enumerate(self.nearest, 1):
            word = fit(self.session.model.word_label(token), WORD)
            lines.append(Content(f"{rank:>4} {word} {token:>8}  {minus(f'{cosine:7.4f}')}"))
        return Content("\n").join(lines)
