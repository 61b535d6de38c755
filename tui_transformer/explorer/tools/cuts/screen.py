"""How the sentence is cut into tokens by several vocabularies, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import CUTS
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.pages import Page
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.text.build import build_bpe, build_characters
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.encoding import Cut, Cuts, Token, cut_by, shown
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies

WORDS = "english"
PAIRS = 1_000
"""Entries of the byte pairs that are learned from the list of English words."""

GAP = 2
TOKENS = ("$foreground on $primary 40%", "$foreground on $secondary 40%")
"""Tokens in turn, so that it is seen where one ends."""

UNKNOWN = "$error"


def open_from(port: Port) -> None:
    """The model's own vocabulary beside words, characters and byte pairs."""
    text, own = port.session.encoding.text, port.session.model.vocabulary
    if not text.strip():
        port.say("there is no sentence to cut: write one")
        return
    port.open(CutsScreen(text, vocabularies(text, own)))


def vocabularies(text: str, own: Vocabulary | None) -> list[Vocabulary]:
    """The model's own, and one of each kind; byte pairs are those of English words, characters those of the text."""
    words = load_vocabulary(WORDS)
    pairs = build_bpe((f" {word}" for word in words.words if word not in words.special_words), PAIRS).vocabulary
    built_in = [
        replace(words, name=f"words: {WORDS}"),
        replace(build_characters([text], 1 << 20).vocabulary, name="characters"),
        replace(pairs, name=f"byte pairs: {WORDS}"),
    ]
    return built_in if own is None else [replace(own, name=f"this model: {own.name}"), *built_in]


class CutsScreen(Dialog[None]):
    """A column a vocabulary and a row a word of the sentence; on a narrow screen, a paragraph a vocabulary."""

    ACTIONS = CUTS
    DEFAULT_CSS = """
    CutsScreen {
        #box { width: 100%; }
        #cuts { padding: 0 1; }
    }
    """
    WIDE = 100

    def __init__(self, text: str, vocabularies: Sequence[Vocabulary]) -> None:
        super().__init__("How the sentence is cut")
        self.text, self.vocabularies = text, list(vocabularies)

    def body(self) -> ComposeResult:
        """The table."""
        with Page():
            yield Static(id="cuts", markup=False)

    def on_mount(self) -> None:
        """Cut and show."""
        self._show()

    def on_resize(self) -> None:
        """Columns have the width that there is."""
        self._show()

    def _show(self) -> None:
        cuts = cut_by(self.text, [tokenizer_for(each) for each in self.vocabularies])
        width = self.size.width - 5
        lines = _table(cuts, width) if self.size.width >= self.WIDE else _paragraphs(cuts)
        self.query_one("#cuts", Static).update(Content("\n").join(lines))

    def action_add(self) -> None:
        """Ask for another vocabulary."""
        prompt = PromptScreen(
            "Add a vocabulary",
            placeholder="a name or the path of a file",
            check=load_vocabulary,
            suggestions=built_in_vocabularies(),
        )
        self.open(prompt, self._add)

    def _add(self, name: str | None) -> None:
        if name is None:
            return
        try:
            self.vocabularies.append(load_vocabulary(name))
        except InputError as error:
            self.app.notify(visible(str(error)), markup=False)
            return
        self._show()


def _heading(cut: Cut) -> tuple[str, str]:
    unknown = f" · {cut.unknown} unknown" if cut.unknown else ""
    return visible(cut.name), f"{cut.tokens} token{'s' * (cut.tokens != 1)}{unknown}"


def _table(cuts: Cuts, width: int) -> list[Content]:
    """Heads, counts, then a line for each word."""
    first = min(max(map(cells, cuts.rows)), width // 5)
    each = (width - first) // len(cuts.cuts) - GAP
    heads = list(map(_heading, cuts.cuts))
    lines = [
        _line(first, "", [Content.styled(fit(name, each), "bold") for name, _ in heads]),
        _line(first, "", [Content.styled(fit(count, each), "$foreground 65%") for _, count in heads]),
    ]
    for i, word in enumerate(cuts.rows):
        if word or any(cut.parts[i] for cut in cuts.cuts):
            lines.append(_line(first, word, [_tokens(cut.parts[i], each) for cut in cuts.cuts]))
    return lines


def _line(first: int, word: str, columns: Sequence[Content]) -> Content:
    return Content(" " * GAP).join([Content(fit(word, first)), *columns])


def _tokens(tokens: Sequence[Token], width: int) -> Content:
    """Tokens beside each other in so many cells; what has no room is an ellipsis."""
    parts, room = [], width
    for i, token in enumerate(tokens):
        last = i == len(tokens) - 1
        text = shown(token)
        if cells(text) + (0 if last else 2) > room:
            parts.append(Content.styled(fit("…", room), "$foreground 65%"))
            room = 0
            break
        parts.append(_token(i, token))
        room -= cells(text) + (not last)
        if not last:
            parts.append(Content(" "))
    return Content("").join([*parts, Content(" " * room)])


def _token(place: int, token: Token) -> Content:
    return Content.styled(shown(token), UNKNOWN if token.unknown else TOKENS[place % len(TOKENS)])


def _paragraphs(cuts: Cuts) -> list[Content]:
    lines = []
    for cut in cuts.cuts:
        name, count = _heading(cut)
        tokens = [token for part in cut.parts for token in part]
        lines.append(Content.assemble((name, "bold"), (f" · {count}", "$foreground 65%")))
        lines.append(Content(" ").join(_token(i, token) for i, token in enumerate(tokens)))
        lines.append(Content(""))
    return lines[:-1]
