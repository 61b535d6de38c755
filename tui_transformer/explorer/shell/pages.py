"""Texts to read in a dialog: help, and messages that are too long for a notice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from textual.content import Content

from tui_transformer.explorer.shell.actions.dialogs import CARD_PAGE, READER
from tui_transformer.explorer.shell.actions.main import ACTIONS, CARD
from tui_transformer.explorer.shell.dialog import Dialog, plain
from tui_transformer.explorer.shell.keymap import key_in, keymap_of
from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.text.display import cells

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
