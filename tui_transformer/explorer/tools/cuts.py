"""How the sentence is cut into tokens by several vocabularies, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from textual.content import Content

from tui_transformer.explorer.shell.actions.dialogs import CUTS
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.records import dataclass, replace
from tui_transformer.text.build import build_bpe, build_characters
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.encoding import Cut, Cuts, Encoding, Token, cut_by, shown
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies

WORDS = "english"
PAIRS = 1_000
"""Entries of the byte pairs that are learned from the list of English words."""

GAP = 2
TOKENS = ("$foreground on $primary 40%", "$foreground on $secondary 40%")
"""Tokens in turn, so that it is seen where one ends."""

QUIET, UNKNOWN = "$foreground 65%", "$error"


def vocabularies(text: str, own: Vocabulary | None) -> list[Vocabulary]:
    """The model's own, and one of each kind; byte pairs are those of English words, characters those of the text."""
    words = load_vocabulary(WORDS)
    pairs = build_bpe((f" {word}" for word in words.words if word not in words.special_words), PAIRS)
    built_in = [
        replace(words, name=f"words: {WORDS}"),
        replace(build_characters([text], 1 << 20).vocabulary, name="characters"),
        replace(pairs.vocabulary, name=f"byte pairs: {WORDS}"),
    ]
    return built_in if own is None else [replace(own, name=f"this model: {own.name}"), *built_in]


@dataclass(frozen=True)
class AsRead:
    """The model's own tokenizer of two sentences, with what stands between them."""

    vocabulary: Vocabulary
    encoding: Encoding

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:  # noqa: ARG002
        return self.encoding

    def decode(self, ids: Sequence[int]) -> str:
        return tokenizer_for(self.vocabulary).decode(ids)


class CutsScreen(Dialog[None]):
    """A column a vocabulary and a row a word of the sentence; on a narrow screen, a paragraph a vocabulary."""

    ACTIONS = CUTS
    DEFAULT_CSS = """
    CutsScreen {
        #box { width: 100%; }
        #text { padding: 0 1; }
    }
    """

    def __init__(self, port: Port) -> None:
        """Begin with the model's own vocabulary beside words, characters and byte pairs."""
        super().__init__("How the sentence is cut")
        self.sentence = port.session.encoding.text
        self.pair = None if port.session.pair is None else port.session.encoding
        self.vocabularies = vocabularies(self.sentence, port.session.model.vocabulary)

    def on_resize(self) -> None:
        self.show_text()

    def text(self) -> Content:
        tokenizers = [tokenizer_for(each) for each in self.vocabularies]
        if self.pair is not None:
            tokenizers[0] = AsRead(self.vocabularies[0], self.pair)
        cuts = cut_by(self.sentence, tokenizers)
        width = self.app.size.width
        if width >= 100:
            return Content("\n").join(_table(cuts, width - 5))
        lines: list[Content] = []
        for cut in cuts.cuts:
            tokens = [token for part in cut.parts for token in part]
            lines += [Content("")] if lines else []
            lines.append(Content.assemble((visible(cut.name), "bold"), (f" · {_count(cut)}", QUIET)))
            lines.append(Content(" ").join(_token(i, token) for i, token in enumerate(tokens)))
        return Content("\n").join(lines)

    def action_add(self) -> None:
        def add(vocabulary: Vocabulary) -> None:
            self.vocabularies.append(vocabulary)
            self.show_text()

        words, where = built_in_vocabularies(), "a name or the path of a file"
        self.open(*asking("Add a vocabulary", load_vocabulary, add, placeholder=where, suggestions=words))


def _count(cut: Cut) -> str:
    unknown = f" · {cut.unknown} unknown" if cut.unknown else ""
    return f"{cut.tokens} token{'s' * (cut.tokens != 1)}{unknown}"


def _table(cuts: Cuts, width: int) -> Iterator[Content]:
    first = min(max(map(cells, cuts.rows)), width // 5)
    each = (width - first) // len(cuts.cuts) - GAP

    def line(word: str, columns: Iterable[Content]) -> Content:
        return Content(" " * GAP).join([Content(fit(word, first)), *columns])

    yield line("", [Content.styled(fit(visible(cut.name), each), "bold") for cut in cuts.cuts])
    yield line("", [Content.styled(fit(_count(cut), each), QUIET) for cut in cuts.cuts])
    for i, word in enumerate(cuts.rows):
        if word or any(cut.parts[i] for cut in cuts.cuts):
            yield line(word, [_tokens(cut.parts[i], each) for cut in cuts.cuts])


def _tokens(tokens: Sequence[Token], width: int) -> Content:
    """Tokens beside each other in so many cells; what has no room is an ellipsis."""
    parts, room = [], width
    for i, token in enumerate(tokens):
        last = i == len(tokens) - 1
        text = shown(token)
        if cells(text) + (0 if last else 2) > room:
            parts.append(Content.styled(fit("…", room), QUIET))
            room = 0
            break
        parts.append(_token(i, token))
        room -= cells(text) + (not last)
        if not last:
            parts.append(Content(" "))
    return Content("").join([*parts, Content(" " * room)])


def _token(place: int, token: Token) -> Content:
    return Content.styled(shown(token), UNKNOWN if token.unknown else TOKENS[place % len(TOKENS)])
