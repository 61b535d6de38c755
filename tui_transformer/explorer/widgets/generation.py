"""What is drawn of a text that is written: its tokens, one of them looked at, and the cache of keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar, Literal, get_args

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from tui_transformer.explorer.widgets.labels import DrawnWidget
from tui_transformer.explorer.widgets.palette import Surface, palette
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, fit_label, visible

# The text: tokens that were given and tokens that were written


_SPACES = (" ", "\t", "\n")


@dataclass(frozen=True)
class WrittenToken:
    """What a token adds to the text, and the probability with which it was chosen; None for one that was given."""

    text: str
    share: float | None = None


class TokenText(DrawnWidget):
    """Running text with a cursor; tokens that were given are quiet, the others as strong as they were probable."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"token-text--quiet", "token-text--cursor"}
    DEFAULT_CSS = """
    TokenText {
        background: $background;
        color: $foreground;
        & > .token-text--quiet { color: $foreground 60%; }
        & > .token-text--cursor { background: $accent; color: $background; text-style: bold; }
        &:nocolor > .token-text--cursor { text-style: bold reverse; background: $background; color: $foreground; }
        &:ansi > .token-text--cursor { text-style: bold reverse; }
    }
    """

    @dataclass
    class Chosen(Message):
        """The user clicked a token."""

        place: int

    _tokens: tuple[WrittenToken, ...] = ()
    _cursor = 0
    _lines: Sequence[Line] = ()

    def show(self, tokens: Sequence[WrittenToken], cursor: int) -> None:
        """Show a text, with one token marked: one past the last for the place of the next."""
        self._tokens, self._cursor = tuple(tokens), cursor
        self.redraw()

    def on_click(self, event: Click) -> None:
        """Choose the token that is clicked; at the second of two clicks another may have come there by the first."""
        place = event.get_content_offset(self) if event.chain == 1 else None
        at = 0
        for part in self._lines[place.y] if place is not None and place.y < len(self._lines) else ():
            at += cells(part.text)
            if place is not None and place.x < at:
                self.post_message(self.Chosen(part.token))
                return

    def draw(self) -> list[Strip]:
        """The lines that there is room for: the one with the cursor, one after it, and as many as fit before."""
        page, height = self.rich_style, self.size.height
        texts = [*(token.text for token in self._tokens), "_"]  # a sign at the place of the next token
        lines = token_lines(texts, self.size.width)
        last = max((at for at, line in enumerate(lines) if any(part.token == self._cursor for part in line)), default=0)
        top = max(min(last - height + 2, len(lines) - height), 0)
        self._lines = lines[top : top + height]
        quiet, cursor = (self.get_component_rich_style(f"token-text--{name}") for name in ("quiet", "cursor"))
        colors = palette("sequential", Surface.of(self.app), page)

        def style(token: int) -> Style:
            if token == self._cursor:
                return cursor
            share = self._tokens[token].share if token < len(self._tokens) else None
            if share is None:
                return quiet
            if colors.has_color:
                return colors.styles[round(min(max(0.0, share), 1.0) * (len(colors.styles) - 1))]
            return page + Style(bold=share >= 0.5, underline=share < 0.1)

        return [Strip([Segment(part.text, style(part.token)) for part in line if part.text]) for line in self._lines]


@dataclass(frozen=True)
class Part:
    """The part of a token that is shown on one line."""

    token: int
    text: str


Line = list[Part]


def token_lines(tokens: Sequence[str], width: int) -> list[Line]:
    """Lay out tokens one after another; a token keeps the spaces that it begins with, and ends its line at a newline.

    Args:
        tokens: What each token adds to the text, of any origin.
        width: Cells of a line, at least 1.

    Returns:
        The lines; every token has a part on one of them, or several where it is wider than a line.
    """
    lines: list[Line] = [[]]
    room = width = max(width, 1)
    for word in _words(tokens):
        if room < sum(cells(part.text) for part in word) <= width:
            lines.append([])
            room = width
        for part in word:
            text, taken = part.text, _fitting(part.text, room)
            while taken < len(text):
                lines[-1].append(Part(part.token, text[:taken]))
                lines.append([])
                room, text = width, text[taken:]
                taken = max(_fitting(text, room), 1)
            lines[-1].append(Part(part.token, text))
            room -= cells(text)
        if tokens[word[-1].token].endswith("\n"):
            lines.append([])
            room = width
    return lines


def _fitting(text: str, room: int) -> int:
    return sum(1 for end in accumulate(map(cells, text)) if end <= room)


def _words(tokens: Sequence[str]) -> Iterator[Line]:
    """Tokens that belong together: up to the next that begins with a space, or follows one."""
    word: Line = []
    for index, token in enumerate(tokens):
        if word and (token.startswith(_SPACES) or tokens[index - 1].endswith(_SPACES)):
            yield word
            word = []
        word.append(Part(index, visible(token)))
    if word:
        yield word


# The cache of one layer: key heads × tokens, which rows were kept and which are new


KEPT, NOW, FREE = "■", "●", "·"
ATTENTION = "attention"
"""Label of the line of shades that stands for all query heads, where they have none of their own."""

Ink = Literal["plain", "quiet", "kept", "now", "free"]
INKS: tuple[Ink, ...] = get_args(Ink)


@dataclass(frozen=True)
class Run:
    """A few characters in one ink, or a cell that stands for an attention weight."""

    text: str
    ink: Ink = "plain"
    weight: float | None = None


@dataclass(frozen=True)
class CachePicture:
    """The cache of one layer, as far as it is known.

    Attributes:
        queries: For each key head the query heads that read it.
        tokens: The word of every token whose keys and values are there.
        computed: How many of these, the last ones, were computed now; the others were kept.
        limit: Tokens that there can be.
        attention: How much the newest token looks at each token, for every query head; none where not known.
        note: Why the attention is not known.
    """

    queries: tuple[tuple[int, ...], ...]
    tokens: tuple[str, ...]
    computed: int
    limit: int
    attention: tuple[tuple[float, ...], ...] = ()
    note: str = ""


class CacheMap(DrawnWidget):
    """Key heads × tokens of one layer; what a cell is, its sign says, and its colour where there is one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"cache-map--{ink}" for ink in INKS}
    DEFAULT_CSS = """
    CacheMap {
        background: $background;
        color: $foreground;
        & > .cache-map--plain { color: $foreground; }
        & > .cache-map--quiet { color: $foreground 65%; }
        & > .cache-map--kept { color: $secondary; }
        & > .cache-map--now { color: $accent; text-style: bold; }
        & > .cache-map--free { color: $foreground 45%; }
    }
    """

    _picture: CachePicture | None = None

    def show(self, picture: CachePicture | None) -> None:
        self._picture = picture
        self.redraw()

    def draw(self) -> list[Strip]:
        picture = self._picture
        if picture is None:
            return []
        inks = {ink: self.get_component_rich_style(f"cache-map--{ink}") for ink in INKS}
        colors = palette("sequential", Surface.of(self.app), self.rich_style)
        high = largest(picture) or 1.0

        def segment(run: Run) -> Segment:
            if run.weight is None:
                return Segment(run.text, inks[run.ink])
            level = round(min(max(0.0, run.weight / high), 1.0) * (len(colors.styles) - 1))
            sign = " " if colors.has_color else colors.glyphs[level][-1]
            return Segment(sign * len(run.text), colors.styles[level])

        return [Strip([segment(run) for run in line if run.text]) for line in cache_lines(picture, *self.size)]


def head_label(key_head: int, queries: Sequence[int]) -> str:
    """A key head and who reads it: `K0 ← q0 q1 q2`."""
    if len(queries) > 3:  # fewer are named one by one
        return f"K{key_head} ← q{queries[0]}–q{queries[-1]}"
    return " ".join([f"K{key_head} ←", *(f"q{query}" for query in queries)])


def cache_lines(picture: CachePicture, width: int, height: int) -> list[list[Run]]:
    """The lines of a picture: words, a line for each key head, attention, and what the signs mean.

    Key heads that do not fit into the height are counted in words.
    """
    columns = _Columns.fitting(picture, width)
    legend = _legend(picture, width)
    room = max(height - 2 - len(legend), 1)
    readers = bool(picture.attention) and len(picture.queries) + len(picture.attention) <= room
    apart = readers and 2 * len(picture.queries) + len(picture.attention) <= room
    heads = [line for head in range(len(picture.queries)) for line in columns.head(head, readers=readers, apart=apart)]
    if len(heads) > room:
        rest = len(heads) - (room - 1)
        heads = [*heads[: room - 1], [Run(f"{rest} more key heads, kept alike", "quiet")]]
    mean = columns.attention("mean" if readers else ATTENTION)
    return [columns.words(), *heads, mean, *legend][:height]


@dataclass(frozen=True)
class _Columns:
    """Where tokens are drawn: from `first` on, `cell` columns each, after `gutter` columns of labels."""

    picture: CachePicture
    gutter: int
    cell: int
    first: int
    free: int

    @classmethod
    def fitting(cls, picture: CachePicture, width: int) -> _Columns:
        """The widest columns in which all tokens and the next fit, or the last tokens in narrow ones."""
        labels = [head_label(head, queries) for head, queries in enumerate(picture.queries)]
        gutter = max(map(cells, [*labels, ATTENTION])) + 1
        room, count = max(width - gutter, 2), len(picture.tokens)
        left = max(picture.limit - count, 0)
        cell = next((cell for cell in (8, 6, 4, 3, 2) if cell * (count + min(left, 1)) <= room), 1)
        shown = min(count, room // cell - min(left, 1))
        free = min(left, 8, room // cell - shown)  # a few are drawn; how many there are is said in words
        return cls(picture, gutter, cell, count - shown, free)

    @property
    def tokens(self) -> range:
        return range(self.first, len(self.picture.tokens))

    def words(self) -> list[Run]:
        """The words over the columns; where these are narrow, the places of the first and the last."""
        if self.cell >= 3:
            words = [visible(self.picture.tokens[token].strip()) for token in self.tokens]
            texts = [set_cell_size(word, self.cell - 1) + " " for word in words]  # an ellipsis would have no room
            return [Run(" " * self.gutter), Run("".join(texts), "quiet")]
        first, last = str(self.first), str(len(self.picture.tokens) - 1)
        across = max(len(self.tokens) * self.cell - len(last), len(first) + 1)
        return [Run(" " * self.gutter), Run(first.ljust(across) + last if first != last else first, "quiet")]

    def head(self, head: int, *, readers: bool, apart: bool) -> Iterator[list[Run]]:
        """A line for a key head, one for the attention of each query head that reads it, and an empty one."""
        queries, count = self.picture.queries[head], len(self.picture.tokens)
        kept = max(count - self.picture.computed, self.first)
        yield [
            Run(fit_label(head_label(head, queries), self.gutter)),
            Run(self._cell(KEPT) * (kept - self.first), "kept"),
            Run(self._cell(NOW) * (count - kept), "now"),
            Run(self._cell(FREE) * self.free, "free"),
        ]
        for query in queries if readers else ():
            yield self._shades(fit_label(f"q{query} ", self.gutter, "right"), self.picture.attention[query])
        if apart:
            yield []

    def attention(self, name: str) -> list[Run]:
        """The mean over the query heads, or why there is none."""
        label, by_head = fit_label(name, self.gutter), self.picture.attention
        if not by_head:
            return [Run(label, "quiet"), Run(self.picture.note, "quiet")]
        return self._shades(label, [sum(weights) / len(by_head) for weights in zip(*by_head, strict=True)])

    def _shades(self, label: str, weights: Sequence[float]) -> list[Run]:
        gap = " " if self.cell > 1 else ""
        shown = [weights[token] for token in self.tokens]
        shades = [run for weight in shown for run in (Run(" " * (self.cell - len(gap)), weight=weight), Run(gap))]
        return [Run(label, "quiet"), *shades]

    def _cell(self, sign: str) -> str:
        return sign * (self.cell - 1) + " " if self.cell > 1 else sign


def largest(picture: CachePicture) -> float:
    """The largest attention weight, which the strongest shade stands for."""
    return max((weight for weights in picture.attention for weight in weights), default=1.0)


def _legend(picture: CachePicture, width: int) -> list[list[Run]]:
    """Legend of the signs with their numbers, on as many lines as it takes."""
    count = len(picture.tokens)
    entries = [
        [Run(KEPT, "kept"), Run(f" kept {count - picture.computed:,}", "quiet")],
        [Run(NOW, "now"), Run(f" computed now {picture.computed:,}", "quiet")],
        [Run(FREE, "free"), Run(f" free {max(picture.limit - count, 0):,} of {picture.limit:,}", "quiet")],
    ]
    if picture.attention:
        entries.append([Run(f"shades: attention 0 – {largest(picture):.2f}", "quiet")])
    lines = [entries[0]]
    for entry in entries[1:]:
        joined = [*lines[-1], Run("   "), *entry]
        if sum(cells(run.text) for run in joined) <= width:
            lines[-1] = joined
        else:
            lines.append(entry)
    return lines
