"""The sentence and its tokens, the one under the cursor marked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.content import Content
from textual.events import Click, MouseDown
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.explorer.shell.actions.main import SENTENCE
from tui_transformer.explorer.shell.keymap import first_key
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.widgets.labels import DrawnWidget, segments_of
from tui_transformer.records import dataclass
from tui_transformer.session.pane_fit import PANES
from tui_transformer.session.scene import Scene
from tui_transformer.text.display import token_label, visible
from tui_transformer.text.encoding import Encoding, Token
from tui_transformer.text.known_words import unknown_count
from tui_transformer.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Sentence:
    """Tokens, and those that the cursor's row and column stand for."""

    encoding: Encoding
    row: int | None = None
    column: int | None = None
    vocabulary: Vocabulary | None = None
    silent: bool = False
    """Whether unknown words are the vector 0."""

    def reading(self) -> str:
        """Meaning of the piece under the cursor and the characters that it covers; "" for whole words."""
        place = self.column if self.row is None else self.row
        if self.vocabulary is None or self.vocabulary.kind == "words" or place is None:
            return ""
        if place >= len(self.encoding.tokens) or self.encoding.tokens[place].id >= self.vocabulary.size:
            return ""
        token = self.encoding.tokens[place]
        piece, reading = self.vocabulary.word(token.id), self.vocabulary.reading(token.id)
        covered = self.encoding.text[token.start : token.end]
        where = f" · covers “{covered}” at {token.start}–{token.end}" if covered else " · added"
        label = self.vocabulary.label(piece)
        return f"{label} {token.id}{'' if reading in (piece, label) else f': {reading}'}{where}"

    def unknown(self) -> str:
        """How many words the vocabulary does not know; "" for none."""
        count = unknown_count(self.encoding)
        what = f"{count:,} unknown {'word' if count == 1 else 'words'}"
        return f"{what}, the vector 0" * bool(count) if self.silent else what * bool(count)

    def written(self, token: Token) -> tuple[str, str]:
        """A token with one sign for a space; one that stands for an unknown word, and that word as it was written."""
        if self.vocabulary is None:
            return token_label(token.text), ""
        if token.unknown:
            return self.vocabulary.label(self.vocabulary.word(token.id)), visible(token.text)
        return self.vocabulary.label(token.text), ""

    def since(self, first: int) -> Iterator[tuple[int, Token]]:
        """The tokens from a place on, with their places."""
        return ((place, self.encoding.tokens[place]) for place in range(first, len(self.encoding.tokens)))

    def parts(self, first: int) -> Iterator[list[tuple[int, Token]]]:
        """The tokens from a place on, those together that share a character of the text."""
        part: list[tuple[int, Token]] = []
        for place, token in self.since(first):
            if part and token.start >= max(before.end for _, before in part):
                yield part
                part = []
            part.append((place, token))
        if part:
            yield part


NAMES = ("source ", "target ")
"""Labels before the tokens of two sentences."""

BETWEEN = "  "
"""Between two tokens."""


class SentencePane(DrawnWidget, can_focus=True):
    """Two lines: the sentence as it was written and its tokens with their IDs, or the tokens of source and target.

    Where there is one line, it has the sentence that the rows of the step stand for.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(SENTENCE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"sentence--{name}" for name in ("quiet", "chip", "row", "column", "unknown")
    }
    DEFAULT_CSS = """
    SentencePane {
        height: 2;
        & > .sentence--quiet { color: $foreground 55%; }
        & > .sentence--chip { background: $primary 40%; color: $foreground; }
        & > .sentence--row { background: $accent; color: $background; text-style: bold; }
        & > .sentence--column { background: $secondary; color: $background; text-style: bold; }
        & > .sentence--unknown { color: $error; text-style: bold; }
        &:nocolor > .sentence--row { text-style: bold underline; }
        &:nocolor > .sentence--column { text-style: underline; }
        &:ansi > .sentence--row { text-style: bold reverse; }
        &:ansi > .sentence--column { text-style: underline; }
    }
    """

    @dataclass
    class Opened(Message):
        """The user wants to write another sentence: the first (0) or the second."""

        which: int

    @dataclass
    class Chosen(Message):
        """The user chose a token of the first sentence (0) or the second."""

        which: int
        place: int

    _sentences: tuple[Sentence, ...] = ()
    _pressed = 0
    _token: int | None = None

    def show_scene(self, scene: Scene) -> None:
        """Show the sentence of a scene with its tokens, or the tokens of a source and a target."""
        session = scene.session
        title = PANES["sentence"]
        if session.batch:
            key = first_key(self.app, "item.next")
            title += f" {session.item + 1} of {len(session.batch)}" + f" · {key} next" * bool(key)
        self.border_title = title
        rows, columns = dict[str, int](), dict[str, int]()
        if (step := scene.step) is not None:
            rows, columns = {step.view.rows.sequence: step.place.row}, {step.view.columns.sequence: step.place.column}
        silent = session.model.unknown == "zero"
        sentences = tuple(
            Sentence(encoding, rows.get(name), columns.get(name), session.words_of(name), silent)
            for name, encoding in session.sequences.items()
        )
        if sentences != self._sentences:
            self._sentences = sentences
            notes = [note for sentence in sentences for note in (sentence.unknown(), sentence.reading()) if note]
            self.border_subtitle = Content(visible(" │ ".join(notes)))
            self.redraw()

    @property
    def marked(self) -> Region | None:
        """The current token: its chip, or where there is one line its first character."""
        for y, which in enumerate(self._lines()):
            sentence = self._sentences[which]
            place = sentence.row if sentence.row is not None else sentence.column
            tokens, alone = sentence.encoding.tokens, len(self._sentences) == 1
            if place is None or place >= len(tokens):
                continue
            if alone and self.size.height <= 1:
                first = self._first_shown(sentence)
                before = sentence.encoding.text[tokens[first].start if first else 0 : tokens[place].start]
                return Region(2 * (first > 0) + cell_len(visible(before)), y, 1, 1)
            left = next(left for number, left, _ in self._chip_places(sentence) if number == place)
            return Region(1 + left, y + alone, 1, 1)
        return None

    def _chip_places(self, sentence: Sentence) -> Iterator[tuple[int, int, int]]:
        """Of every token from the first that is drawn on, its place, first column, and how many columns it takes."""
        first = self._first_shown(sentence)
        left = 2 * (first > 0) + len(NAMES[0]) * (len(self._sentences) > 1)
        for place, token in sentence.since(first):
            width = self._chip_cells(sentence, token, place)
            yield place, left, width
            left += width

    @staticmethod
    def _chip_cells(sentence: Sentence, token: Token, place: int) -> int:
        words = " ".join(filter(None, sentence.written(token)))
        return cell_len(f" {words} {token.id} @{place}{BETWEEN}")

    def on_mouse_down(self, event: MouseDown) -> None:
        """Remember what is there: the focus that follows may show another sentence there."""
        place, lines = event.get_content_offset(self), self._lines()
        self._pressed = lines[min(place.y if place else 0, len(lines) - 1)] if lines else 0
        self._token = None if place is None else self._token_at(place.x, place.y)

    def on_click(self, event: Click) -> None:
        """Choose the token that is clicked; a double click opens its sentence for editing."""
        if event.chain == 2:
            self.post_message(self.Opened(self._pressed))
        elif self._token is not None:
            self.post_message(self.Chosen(self._pressed, self._token))

    def action_edit(self) -> None:
        """Open the sentence for editing: the second where the rows are those of the second."""
        rows = [place for place, sentence in enumerate(self._sentences) if sentence.row is not None]
        self.post_message(self.Opened(rows[0] if rows else 0))

    def _token_at(self, x: int, y: int) -> int | None:
        if not self._sentences:
            return None
        sentence = self._sentences[min(self._pressed, len(self._sentences) - 1)]
        if len(self._sentences) > 1 or y > 0:
            chips = self._chip_places(sentence)
            return next((place for place, left, width in chips if left <= x < left + width), None)
        first, text = self._first_shown(sentence), sentence.encoding.text
        begin, x = sentence.encoding.tokens[first].start if first else 0, x - 2 * (first > 0)
        # of a whole text: an accent or a part of an emoji takes no column, but alone it would
        ends = range(begin + 1, len(text) + 1)
        at = begin + bisect_right(ends, x, key=lambda end: cell_len(visible(text[begin:end])))
        return next((place for place, token in sentence.since(first) if token.start <= at < token.end), None)

    def _lines(self) -> list[int]:
        every = list(range(len(self._sentences)))
        if self.size.height > 1 or len(every) < 2:
            return every
        return [place for place in every if self._sentences[place].row is not None][:1] or every[:1]

    def render(self) -> Text:
        """All lines in one, as a part of them is selected."""
        return Text("\n", self.rich_style).join(self._texts())

    def render_line(self, y: int) -> Strip:
        return Widget.render_line(self, y) if self.text_selection is not None else super().render_line(y)

    def draw(self) -> list[Strip]:
        """The lines, with the places of their characters, by which they can be selected."""
        lines = enumerate(self._texts())
        return [Strip(segments_of(line, self.app.console)).apply_offsets(0, y) for y, line in lines]

    def _texts(self) -> list[Text]:
        """The lines, beginning so that the current token is in view."""
        quiet, plain = self.get_component_rich_style("sentence--quiet"), self.rich_style
        if len(self._sentences) == 1:
            only = self._sentences[0]
            parts = [self._written(only, plain, quiet), self._chips(only, Text("", quiet), quiet)]
        elif self._sentences:
            parts = [self._chips(self._sentences[i], Text(NAMES[i], quiet), quiet) for i in self._lines()]
        else:
            parts = [Text("This model reads no sentence: its matrices are given.", plain)]
        for part in parts:
            part.truncate(self.size.width, overflow="ellipsis")  # a line that wraps would hide the next
        return parts

    def _written(self, sentence: Sentence, plain: Style, quiet: Style) -> Text:
        """The sentence as it was written, as far as the line goes, with the words that stand out."""
        text, first, width = sentence.encoding.text, self._first_shown(sentence), self.size.width
        shown = Text("… " if first else "", quiet)
        unknown = plain + self.get_component_rich_style("sentence--unknown", partial=True) + Style(underline=True)
        at = read = sentence.encoding.tokens[first].start if first else 0
        room = width - shown.cell_len
        for part in sentence.parts(first):
            places, start, end = {place for place, _ in part}, part[0][1].start, max(token.end for _, token in part)
            row, column = sentence.row in places, sentence.column in places
            if row or column or part[0][1].unknown:
                style = unknown if part[0][1].unknown else plain + Style(bold=row, underline=True)
                shown.append(visible(text[at:start]), plain).append(visible(text[max(at, start) : end]), style)
                at = max(at, end)
            room -= cell_len(visible(text[read:end]))
            read = max(read, end)
            if room < 0:
                break
        return shown.append(visible(text[at : read + width]), plain)

    def _chips(self, sentence: Sentence, shown: Text, quiet: Style) -> Text:
        """The tokens with their IDs and positions after what is shown already, as many as fit; a sign for others."""
        chip = self.get_component_rich_style("sentence--chip")
        unknown = chip + self.get_component_rich_style("sentence--unknown", partial=True)
        dimmed = Style(color=quiet.color, dim=not quiet.color)
        marked = {sentence.column: "sentence--column", sentence.row: "sentence--row"}
        first, last, width = self._first_shown(sentence), len(sentence.encoding.tokens) - 1, self.size.width
        shown.append("… " if first else "", quiet)
        for place, token in sentence.since(first):
            style = self.get_component_rich_style(marked[place]) if place in marked else chip
            end = shown.cell_len + self._chip_cells(sentence, token, place) - len(BETWEEN)
            if place > first and end + (place < last) * len(f"{BETWEEN}…") > width:
                return shown.append("…", quiet)
            word, as_written = sentence.written(token)
            shown.append(f" {word} ", unknown if token.unknown and place not in marked else style)
            shown.append(f"{as_written} " if as_written else "", style + dimmed)
            shown.append(f"{token.id} @{place}{BETWEEN}", quiet)
        return shown

    def _first_shown(self, sentence: Sentence) -> int:
        """The first token to draw, so that the current one fits in the width."""
        tokens = sentence.encoding.tokens
        current = sentence.row if sentence.row is not None else sentence.column or 0
        first = min(current, max(len(tokens) - 1, 0))
        room = self.size.width - 6 - (len(NAMES[0]) if len(self._sentences) > 1 else 0)
        while first > 0:
            room -= self._chip_cells(sentence, tokens[first], first)
            if room < 0:
                return min(first + 1, current)
            first -= 1
        return 0
