"""The text so far, the tokens that may come next, and the keys and values that are kept."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from tui_transformer.explorer.tools.generate import lines
from tui_transformer.explorer.tools.generate.cache import sublayers
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.tools.generate.generation_view import Gathered
from tui_transformer.explorer.widgets.cache_map import CacheMap
from tui_transformer.explorer.widgets.labels import Written, inks_of
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface, bar_color
from tui_transformer.explorer.widgets.token_text import TokenText, WrittenToken
from tui_transformer.generation.text import WINDOW, token_name, token_texts
from tui_transformer.text.display import visible

SIDE_BY_SIDE, LOW, TALL = 96, 18, 40
"""Columns from which on tokens and cache are side by side; lines below which texts are short, and from which long."""


class GenerateView(Vertical):
    """The choices at a place of a text.

    Attributes:
        shown: What is drawn; None before the prompt was read.
    """

    DEFAULT_CSS = """
    GenerateView {
        #written { height: 6; padding: 0 1; }
        &.-tall #written { height: 10; }
        #source { height: 1; display: none; }
        #source.-read { display: block; }
        TokenText { height: 1fr; }
        #body { height: 1fr; }
        #next { width: 1fr; padding: 0 1; }
        #cache { width: 1fr; padding: 0 1; }
        #tokens { height: 1fr; }
        #columns, #facts, #memory { height: auto; width: 1fr; }
        #facts, #memory { color: $foreground 65%; }
        #facts { max-height: 3; }
        CacheMap { height: 1fr; }
        #tokens > .line-list--cursor, #tokens:focus > .line-list--cursor {
            background: $accent 20%;
            color: $accent;
            text-style: bold;
        }
        &:nocolor #tokens > .line-list--cursor, &:ansi #tokens > .line-list--cursor { text-style: bold underline; }

        #written, #next, #cache {
            border: round $border-blurred;
            border-title-color: $foreground 70%;
            border-subtitle-color: $foreground 60%;
            background: $background;
        }
        #next:focus-within { border: round $accent; border-title-color: $accent; border-title-style: bold; }

        &.-one #written { height: 5; }
        &.-one #cache { display: none; }
        &.-one.-cache #next { display: none; }
        &.-one.-cache #cache { display: block; }
        &.-low #written { height: 4; }
        &.-low #facts, &.-low #memory { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.shown: Gathered | None = None
        self._layer = 0
        self._written = Written(self)

    def compose(self) -> ComposeResult:
        """Text, tokens beside the cache."""
        with Vertical(id="written") as written:
            written.border_title = "Text"
            yield Static(id="source", markup=False)
            yield TokenText(id="text")
        with Horizontal(id="body"):
            with Vertical(id="next"):
                yield Static(id="columns", markup=False)
                yield LineList(id="tokens")
                yield Static(id="facts", markup=False)
            with Vertical(id="cache"):
                yield CacheMap(id="map")
                yield Static(id="memory", markup=False)

    def fit(self, size: Size) -> None:
        """Tokens and cache side by side, or one at a time, as the size of the screen allows."""
        width, height = size
        narrow = width < SIDE_BY_SIDE or height < LOW
        self.update_classes({"-one": narrow, "-low": height < LOW, "-tall": height >= TALL})

    @property
    def one_at_a_time(self) -> bool:
        """Whether there is room for the tokens or the cache only."""
        return self.has_class("-one")

    def turn_pane(self) -> None:
        """The cache in place of the tokens, and back, where there is room for one."""
        self.toggle_class("-cache")
        if not self.has_class("-cache"):
            self.query_one(LineList).focus()

    def show(self, shown: Gathered, layer: int) -> None:
        """Show what was gathered, with the cache of a layer."""
        self.shown, self._layer = shown, layer
        self.show_text(shown.draft)
        self._show_next(shown)
        self._show_cache(shown)

    def show_again(self) -> None:
        """Show the same in another size."""
        if self.shown is not None:
            self.show(self.shown, self._layer)

    def show_text(self, draft: Draft) -> None:
        """Show the text, the place marked."""
        texts, prompt = token_texts(draft.writer.model, draft.ids), draft.state.prompt
        shares = [*([None] * prompt), *draft.shares]
        written = [WrittenToken(text, share) for text, share in zip(texts, shares, strict=True)]
        self.query_one(TokenText).show(written, len(draft.state.ids))
        pane = self.query_one("#written")
        shade = "shaded by probability" if self._has_color() else "bold from 50 %, underlined below 10 %"
        pane.border_subtitle = Content(f"{prompt:,} given · {len(texts) - prompt:,} written, {shade}")
        source = draft.writer.source
        self.query_one("#source").set_class(bool(source), "-read")
        if source:
            text = "".join(token_texts(draft.writer.model, source, source=True))
            width = self.query_one(TokenText).size.width
            self._written.write("source", lines.source_line(text, width, inks_of(self.screen)))

    def _show_next(self, shown: Gathered) -> None:
        draft, choices, inks = shown.draft, shown.choices, inks_of(self.screen)
        before, model = draft.state.ids[-WINDOW:], draft.writer.model
        tokens, listed = self.query_one(LineList), choices.listed
        largest = max(choice.share for choice in listed) or 1.0
        columns = lines.Columns(max(tokens.size.width - 2, 0), largest)
        bar = Style(color=bar_color(Surface.of(self.app))) if self._has_color() else Style()

        def entry(index: int) -> Text:
            choice = listed[index]
            name = token_name(model, before, choice.token)
            return columns.entry(choice, name, bar, inks, marked=choice.token == draft.marked)

        tokens.show(len(listed), entry)
        tokens.cursor = next(index for index, choice in enumerate(listed) if choice.token == draft.marked)
        self._written.write("columns", columns.heading(inks), grows=True)
        draw = lines.drawn(draft, token_name(model, before, draft.state.candidate))
        facts = "\n".join(line for line in (lines.facts(draft, choices), visible(draw)) if line)
        self._written.write("facts", Text(facts), grows=True)
        name = token_name(model, before, draft.marked)
        self.query_one("#next").border_title = Content(visible(lines.next_title(draft, name)))

    def _has_color(self) -> bool:
        return Surface.of(self.app).depth != "none"

    def _show_cache(self, shown: Gathered) -> None:
        self.query_one(CacheMap).show(shown.picture)
        memory = shown.memory
        parts = [memory.own, f"cross-attention: {memory.cross}" if memory.cross else "", memory.shared]
        self._written.write("memory", Text("\n".join(part for part in parts if part)), grows=True)
        layers = len(sublayers(shown.draft.writer))
        self.query_one("#cache").border_title = Content(f"KV cache · layer {self._layer} of {layers}")
