"""Screens over the main one: a box with a title and its keys in the border, left by esc; and texts that are read so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar, Generic, Literal, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.explorer.shell.actions.dialogs import CARD_PAGE, DIALOG, PAGE, READER
from tui_transformer.explorer.shell.actions.main import ACTIONS, CARD
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.keymap import key_in, key_line, keymap_of
from tui_transformer.explorer.shell.keys import MENUS, Action, bindings
from tui_transformer.text.display import cells, visible

Result = TypeVar("Result")

CORNERS = 6
"""Columns of the border that its keys cannot have."""


def plain(text: str) -> Content:
    """A text of any origin over several lines, made visible; nothing in it is markup."""
    return Content("\n".join(map(visible, text.splitlines())))


class Dialog(ExplorerScreen[Result], ModalScreen[Result | None], Generic[Result]):
    """A box over the main screen. It gives a result, or None where it is left."""

    ACTIONS: ClassVar[tuple[Action, ...]] = DIALOG
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - the base class has them so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall")]  # noqa: RUF012 - the base class has them so

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        overflow: hidden;
        background: $background 70%;
        #box {
            width: 76;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            background: $background;
            border: round $accent;
            border-title-color: $accent;
            border-title-style: bold;
            border-subtitle-align: right;
        }
        .problem { color: $error; }
        .quiet { color: $foreground 65%; }
        &.-short #buttons { display: none; }
        &.-short Form #note.-said { display: none; }  /* the fields need the lines */
        &.-short Form #help { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-short Form #status { max-height: 2; }
        &.-short Form #status.problem { max-height: 4; }
        &.-short Page { scrollbar-gutter: stable; }  /* in a few cells its bar would come and go for good */
        #box Static { height: auto; padding: 0 1; }
    }
    """

    def __init__(self, title: str, *inside: Widget) -> None:
        """A title, and the widgets in the box; where none are given, its text."""
        super().__init__()
        self._title, self._inside = title, inside

    def actions(self) -> Sequence[Action]:
        """The actions that the border names, with their keys."""
        return self.ACTIONS

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content(visible(self._title))
            yield from self.body()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_keys)

    def _show_keys(self) -> None:
        for box in self.query("#box"):
            box.border_subtitle = key_line(self.actions(), self.app, max(box.outer_size.width - CORNERS, 0))

    def body(self) -> ComposeResult:
        """The widgets in the box; where a dialog names none, its text, which scrolls."""
        yield from self._inside
        if not self._inside:
            with Page():
                yield Static(self.text(), id="text", markup=False)

    def text(self) -> Content:
        """The text of a dialog that is read."""
        return Content()

    def show_text(self) -> None:
        """Show the text as it is now."""
        self.query_one("#text", Static).update(self.text())

    def action_leave(self) -> None:
        self.dismiss(None)


class Page(VerticalScroll):
    """Scrolls without movement in between; as high as its text, or the screen."""

    BINDINGS = bindings(PAGE)
    DEFAULT_CSS = """
    Page {
        height: auto;
        max-height: 100%;
        scrollbar-size-vertical: 1;
    }
    """

    def action_scroll(self, where: str) -> None:
        getattr(self, f"scroll_{where}")(animate=False)


# Texts that are read: keys, help, and messages that are too long for a notice


COLUMN, TITLE = 36, 11
"""Columns of a group of the card, and of the title of a menu in it."""


class CardScreen(Dialog[Literal["explain"]]):
    """Every key of the main screen on one card; gives "explain" where the explanation of what is focused is wanted."""

    ACTIONS = CARD_PAGE
    DEFAULT_CSS = """
    CardScreen #box { width: 116; }
    """

    def __init__(self) -> None:
        super().__init__("Keys")

    def text(self) -> Content:
        """Groups of plain keys side by side where there is room, and the menus below them."""
        width, keymap = min(self.app.size.width, 116) - 5, keymap_of(self.app)
        words = {action.id: action.short or action.title.partition(":")[0] for action in ACTIONS}
        groups = [
            (title, [(" ".join(key_in(keymap, each) for each in meanings.split()), said) for meanings, said in keys])
            for title, keys in CARD.items()
        ]
        lines = list[Content]()
        if width >= COLUMN * len(groups):
            column = width // len(groups)
            lines.append(Content("").join(Content.styled(f"{title:<{column}}", "bold") for title, _ in groups))
            for row in zip_longest(*(keys for _, keys in groups), fillvalue=("", "")):
                padded = (_key(key, said).pad_right(max(column - cells(f"{key} {said}"), 0)) for key, said in row)
                lines.append(Content("").join(padded))
            lines.append(Content(""))
        else:
            lines += (line for title, keys in groups for line in _paragraph(title, keys, width))
        for name, menu in MENUS.items():
            entries = [
                (key_in(keymap, meaning, direct=True) if meaning in keymap else letter, words[meaning])
                for letter, meaning in menu.entries.items()
            ]
            lines += _paragraph(f"{key_in(keymap, name)} {menu.title}".strip(), entries, width)
        return Content("\n").join(lines)

    def on_resize(self) -> None:
        self.show_text()

    def action_explain(self) -> None:
        self.dismiss("explain")


def _paragraph(title: str, keys: Sequence[tuple[str, str]], width: int) -> list[Content]:
    """The entries of a menu, as many in a line as there is room for."""
    lines = [Content.styled(f"{title:<{TITLE}}", "bold")]
    for key, said in keys:
        if lines[-1].cell_length > TITLE and lines[-1].cell_length + cells(f"{key} {said}") + 3 > width:
            lines.append(Content(" " * TITLE))
        lines[-1] = lines[-1] + _key(key, said) + Content("   ")
    return lines


def _key(key: str, said: str) -> Content:
    return Content.assemble((key, "bold $accent"), (f" {said}", "$foreground 75%"))


class MessageScreen(Dialog[None]):
    """A text of any length, as it is; lines that are too wide are folded."""

    ACTIONS = READER

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self._text = text

    def text(self) -> Content:
        return plain(self._text)
