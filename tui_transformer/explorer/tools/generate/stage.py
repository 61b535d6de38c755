"""What the screen that writes on shows: the text, the tokens that may come next, and the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.notifications import SeverityLevel
from textual.widgets import Static

from tui_transformer.explorer.shell.actions import GENERATE
from tui_transformer.explorer.shell.asking import Requests, Result, draw_together
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.key_line import key_line
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.saying import say
from tui_transformer.explorer.shell.worker import Task, Worker
from tui_transformer.explorer.state.history import History
from tui_transformer.explorer.state.names import model_name
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.tools.generate import lines
from tui_transformer.explorer.tools.generate.cache import sublayers
from tui_transformer.explorer.tools.generate.draft import Draft
from tui_transformer.explorer.tools.generate.look import Look
from tui_transformer.explorer.tools.generate.wording import WINDOW, token_name, token_texts
from tui_transformer.explorer.widgets.cache_map import CacheMap
from tui_transformer.explorer.widgets.inks import INK_CLASSES, Inks, inks_of
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.explorer.widgets.palette import Surface, bar_color
from tui_transformer.explorer.widgets.token_text import TokenText, Written
from tui_transformer.text.display import visible

BESIDE, LOW, TALL = 96, 18, 40
"""Columns from which on tokens and cache are side by side; lines below which texts are short, and from which long."""


class GenerateStage(ExplorerScreen[None]):
    """The text so far, what may come next, and the keys and values that are kept."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(GENERATE)
    COMPONENT_CLASSES: ClassVar[set[str]] = INK_CLASSES
    DEFAULT_CSS = """
    GenerateStage {
        & > .ink--plain { color: $foreground; }
        & > .ink--quiet { color: $foreground 60%; }
        & > .ink--accent { color: $accent; text-style: bold; }
        & > .ink--marked { color: $background; background: $accent; text-style: bold; }
        layout: vertical;
        background: $background;

        #title, #keys { height: 1; width: 1fr; background: $surface; }
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

    def __init__(self, worker: Worker, session: Session) -> None:
        """Show nothing yet."""
        super().__init__()
        self.worker, self.session = worker, session
        self.requests = Requests(self, worker, self.show_lines)
        self.history: History[Draft] | None = None
        self.found: Look | None = None
        self.cache_layer = 0
        self._said: dict[str, Text | Content] = {}

    def ask(self, kind: str, cost: int, work: Callable[[Task], Result], done: Callable[[Result], None]) -> None:
        """Do work now if it is small, else on the worker; then show what it gave."""
        self.requests.ask(kind, cost, work, done)

    def say(self, message: str, severity: SeverityLevel = "information") -> None:
        """A message that goes away by itself."""
        say(self.app, message, severity)

    # Layout

    def compose(self) -> ComposeResult:
        """Title, text, tokens beside the cache, keys."""
        self._choose_layout(*self.app.size)
        yield Static(id="title", markup=False)
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
        yield Static(id="keys", markup=False)

    def on_resize(self, event: Resize) -> None:
        """Tokens and cache side by side, or one at a time, as the size allows."""
        self._choose_layout(*event.size)
        self.call_after_refresh(self._show_again)

    def _choose_layout(self, width: int, height: int) -> None:
        self.update_classes({"-one": width < BESIDE or height < LOW, "-low": height < LOW, "-tall": height >= TALL})

    def action_other_pane(self) -> None:
        """The cache in place of the tokens, and back, where there is room for one."""
        self.toggle_class("-cache")
        if not self.has_class("-cache"):
            self.query_one(LineList).focus()
        self.call_after_refresh(self._show_again)

    # What is shown

    @property
    def draft(self) -> Draft | None:
        """What is written, None before the prompt was read."""
        return None if self.history is None else self.history.current

    def show(self, found: Look) -> None:
        """Show what was gathered."""
        self.found = found
        draw_together(self)
        self.show_lines()
        self.show_text(found.draft)
        self._show_next(found)
        self._show_cache(found)

    def _show_again(self) -> None:
        """Show the same in another size."""
        self.show_lines()
        if self.found is not None:
            self.show(self.found)

    def show_lines(self) -> None:
        """The title and the keys."""
        width, inks = self.size.width, self._inks()
        draft = self.draft
        if draft is not None:
            model = model_name(self.session)
            self._say("title", lines.title(draft, model, self.requests.doing, width, inks))
        else:
            text = Text(" Generate", inks.accent).append(f"   {self.requests.doing}", inks.plain)
            self._say("title", text)
        shown = [action for action in GENERATE if action.id != "pane.next" or self.has_class("-one")]
        self._say("keys", key_line(shown, self.app, width))

    def _say(self, where: str, text: Text | Content) -> None:
        """Show a text; only one of another length can need another number of lines."""
        before = self._said.get(where)
        if before != text:
            self._said[where] = text
            self.query_one(f"#{where}", Static).update(text, layout=before is None or len(before) != len(text))

    def show_text(self, draft: Draft) -> None:
        """Show the text, the place marked."""
        texts, prompt = token_texts(draft.writer.model, draft.ids), draft.state.prompt
        shares = [*([None] * prompt), *draft.shares]
        written = [Written(text, share) for text, share in zip(texts, shares, strict=True)]
        self.query_one(TokenText).show(written, len(draft.state.ids))
        pane = self.query_one("#written")
        shade = "shaded by probability" if self._has_color() else "bold from 50 %, underlined below 10 %"
        pane.border_subtitle = Content(f"{prompt:,} given · {len(texts) - prompt:,} written, {shade}")
        source, line = draft.writer.source, self.query_one("#source", Static)
        line.set_class(bool(source), "-read")
        if source:
            text = "".join(token_texts(draft.writer.model, source))
            line.update(lines.source_line(text, self.query_one(TokenText).size.width, self._inks()))

    def _show_next(self, found: Look) -> None:
        draft, choices, inks = found.draft, found.choices, self._inks()
        before, model = draft.state.ids[-WINDOW:], draft.writer.model
        tokens = self.query_one(LineList)
        listed = choices.listed
        largest = max(choice.share for choice in listed) or 1.0
        columns = lines.Columns(max(tokens.size.width - 2, 0), largest)
        bar = self._bar_style()

        def entry(index: int) -> Text:
            choice = listed[index]
            name = token_name(model, before, choice.token)
            return columns.entry(choice, name, bar, inks, marked=choice.token == draft.marked)

        tokens.show(len(listed), entry)
        tokens.cursor = next(index for index, choice in enumerate(listed) if choice.token == draft.marked)
        self._say("columns", columns.heading(inks))
        self._say("facts", Text(lines.facts(draft, choices)))
        name = token_name(model, before, draft.marked)
        self.query_one("#next").border_title = Content(visible(lines.next_title(draft, name)))

    def _has_color(self) -> bool:
        return Surface.of(self.app).depth != "none"

    def _bar_style(self) -> Style:
        return Style(color=bar_color(Surface.of(self.app))) if self._has_color() else Style()

    def _show_cache(self, found: Look) -> None:
        self.query_one(CacheMap).show(found.picture)
        memory = found.memory
        parts = [memory.own, f"cross-attention: {memory.cross}" if memory.cross else "", memory.shared]
        self._say("memory", Text("\n".join(part for part in parts if part)))
        layers = len(sublayers(found.draft.writer))
        self.query_one("#cache").border_title = Content(f"KV cache · layer {self.cache_layer} of {layers}")

    def _inks(self) -> Inks:
        return inks_of(self)
