"""The keys of the program: one table for every screen, of plain keys and of menus, and the one that was before it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType
from textual.keys import KEY_NAME_REPLACEMENTS, format_key

from tui_transformer.explorer.widgets.cursor import CURSOR_KEYS
from tui_transformer.records import dataclass

UNBOUND = "unbound-"
"""Prefix of the key of an action that has none: nobody can press it, but it can be given one."""


@dataclass(frozen=True)
class Menu:
    """Letters behind a key of the main screen, each for a meaning; the popup shows them, and need not be waited for.

    Attributes:
        key: What opens it.
        title: What its entries have in common, as the line of keys says it.
        entries: The meaning of each letter.
    """

    key: str
    title: str
    entries: Mapping[str, str]


MENUS: Mapping[str, Menu] = {
    "menu.look": Menu(
        "g",
        "look at",
        {
            "h": "heads.all",
            "l": "lens",
            "a": "arcs",
            "k": "links",
            "r": "rollout",
            "c": "circuits",
            "f": "features",
            "y": "graph",
            "b": "probes",
            "w": "weights",
            "v": "vocabulary.open",
            "s": "softmax",
            "p": "score",
            "n": "nearest",
            "u": "survey",
            "d": "chart.next",
            "m": "messages",
            "o": "poster",
            "g": "cursor.top",
            "}": "sublayer.next",
            "{": "sublayer.back",
        },
    ),
    "menu.act": Menu(
        "a",
        "act",
        {
            "a": "ablate.head",
            "A": "ablate",
            "p": "patch",
            "P": "patching",
            "b": "breaks",
            "m": "measure",
            "i": "inputs",
            "d": "terms",
            "t": "target.edit",
        },
    ),
    "menu.run": Menu("r", "run", {"w": "generate", "t": "train", "c": "checkpoints", "e": "exercises", "r": "record"}),
    "menu.compare": Menu(
        "c",
        "compare",
        {
            "s": "compare.sentence",
            "d": "compare.dump",
            "c": "compare.checkpoint",
            "f": "compare.precision",
            "v": "cuts",
            "a": "similar",
            "o": "compare",
            "n": "compare.first",
            "b": "overlay",
        },
    ),
    "menu.backward": Menu("b", "backward", {"b": "backward", "t": "targets", "d": "overlay"}),
    "menu.mine": Menu(
        "m",
        "mine",
        {
            "b": "bookmark",
            "x": "export",
            "y": "copy.row",
            "t": "theme",
            ",": "settings",
            "k": "keys",
            "c": "scale",
            "h": "hide.special",
            "H": "hide.first",
            "n": "item.next",
            "N": "item.back",
            "d": "draw.again",
        },
    ),
}
"""The menus of the main screen, by the meaning of their keys."""

IN_MENUS: Mapping[str, tuple[str, str]] = {
    meaning: (name, letter)
    for name, menu in reversed(tuple(MENUS.items()))
    for letter, meaning in reversed(tuple(menu.entries.items()))
}
"""The menu and the letter of each meaning that is in one; the first of several."""

KEYS: Mapping[str, str] = {
    "step.next": "space",
    "step.back": "backspace",
    "head.next": "right_square_bracket",
    "head.back": "left_square_bracket",
    "layer.next": "right_curly_bracket",
    "layer.back": "left_curly_bracket",
    **CURSOR_KEYS,
    "pane.next": "tab",
    "pane.back": "shift+tab",
    "pane.sentence": "1",
    "pane.steps": "2",
    "pane.heads": "3",
    "pane.matrix": "4",
    "pane.cell": "5",
    "pane.chart": "6",
    "back": "escape",
    "quit": "q",
    "help": "question_mark,f1",
    "suspend": "ctrl+z",
    "sentence.edit": "i",
    "find": "slash",
    "match.next": "n",
    "match.back": "N",
    "go": "colon",
    "cell.edit": "e",
    "undo": "u",
    "redo": "U",
    "copy.cell": "y",
    "predict": "p",
    "tour": "t",
    "open": "o",
    "whole": "0",
    "zoom": "z",
    **{name: menu.key for name, menu in MENUS.items()},
    "second": "semicolon",
    "terms.order": "s",
    # In tools, beside those
    "kind": "f",
    "order": "r",
    "reverse": "R",
    "export": "x",
    "step.on": "g",
    "settings": "comma",
    "save": "ctrl+s",
    "vocabulary.open": "v",
    "compare": "V",
    "breaks": "b",
    "mean": "m",
    "measure": "w",
    "answer": "P",
    "scale": "c",
    "hide": "d",
    "hide.itself": "X",
    "arcs": "a",
}
"""The keys of each meaning, separated by commas; on the main screen what is in a menu is only there.

By its name a meaning is given other keys, for all screens at once."""

CLASSIC: Mapping[str, str] = {
    "step.next": "space,n",
    "step.on": "N",
    "sublayer.next": "s",
    "sublayer.back": "S",
    "cursor.top": "g",
    "theme": "ctrl+t",
    "sentence.edit": "slash",
    "settings": "comma",
    "vocabulary.open": "v",
    "export": "x",
    "checkpoints": "F",
    "explore": "E",
    "target.edit": "T",
    "find": "ctrl+f",
    "cuts": "V",
    "breaks": "exclamation_mark",
    "copy.row": "Y",
    "ablate.head": "a",
    "ablate": "A",
    "patch": "P",
    "patching": "dollar_sign",
    "circuits": "O",
    "inputs": "ampersand",
    "terms": "at",
    "mean": "M",
    "answer": "asterisk",
    "measure": "number_sign",
    "backward": "b",
    "targets": "B",
    "compare": "d",
    "compare.first": "D",
    "overlay": "z",
    "weights": "w",
    "terms.order": "r",
    "reverse": "ctrl+r",
    "scale": "m",
    "chart.next": "c",
    "hide.special": "i",
    "hide.first": "I",
    "heads.all": "H",
    "links": "K",
    "rollout": "R",
    "arcs": "Q",
    "lens": "L",
    "similar": "J",
    "nearest": "tilde",
    "score": "percent_sign",
    "softmax": "circumflex_accent",
    "item.next": "full_stop",
    "item.back": "greater_than_sign",
    "generate": "W",
    "train": "ctrl+l",
    "bookmark": "ctrl+b",
    "exercises": "C",
    "zoom": "Z",
    **{
        name: f"{UNBOUND}{name.replace('.', '-')}"
        for name in (*MENUS, "match.next", "match.back", "poster", "record", "hide")
    },
}
"""The keys that were before there were menus; `classic = true` in the file of preferences keeps them."""

MEANINGS = frozenset((*KEYS, *IN_MENUS))
"""Everything that a key can be given to, beside actions that have a name of their own."""

NAMES = {**dict.fromkeys(("space", "tab", "backspace", "enter")), "f1": "F1"}
"""Keys that are written otherwise than Textual writes them; None for their names."""


def name_of_key(character: str) -> str:
    """The name of the key of a character, as the table of keys has it: `right_square_bracket` for `]`."""
    if len(character) != 1 or character.isalnum():
        return character
    name = unicodedata.name(character, character).casefold().replace(" ", "_").replace("-", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def spelled(key: str) -> str:
    """A key as help and README write it: `space`, `/`, `ctrl+l`, `←`."""
    return (NAMES[key] or key) if key in NAMES else format_key(key)


@dataclass(frozen=True)
class Action:
    """One thing that a screen does.

    Attributes:
        id: Its meaning, as in `KEYS`; a name of its own where it has no key. "" where a widget of the screen has it.
        action: What the screen runs.
        title: What it does, for the palette and the help.
        short: A word for the line of keys; "" for none.
        shown: How the keys are written in that line; by default the first key of each meaning.
        of: The meanings whose keys these are, with spaces between, where they are not those of `id` alone. A name
            that is no meaning stands for the key of this name, which nobody can change.
        direct: Whether a key does it at once; else only its menu, and the key that the classic keys or a user give it.
    """

    id: str
    action: str
    title: str
    short: str = ""
    shown: str = ""
    of: str = ""
    direct: bool = True

    def __post_init__(self) -> None:
        if self.short and not self.shown and self.direct:
            meanings = self.of.split() or [self.id]
            keys = (KEYS.get(meaning, "" if meaning in IN_MENUS else meaning).split(",")[0] for meaning in meanings)
            shown = " ".join(spelled(key) for key in keys if key)
            object.__setattr__(self, "shown", shown.replace("ctrl+", "^"))

    @property
    def keys(self) -> str:
        """Its keys, separated by commas."""
        unbound = f"{UNBOUND}{self.id.replace('.', '-')}"
        return KEYS.get(self.id, unbound) if self.direct else unbound

    def binding(self) -> Binding:
        return Binding(self.keys, self.action, self.title, show=False, id=self.id, tooltip=self.title)


def in_menu(meaning: str) -> str:
    """The keys of a meaning that is in a menu: `g h`."""
    name, letter = IN_MENUS[meaning]
    return f"{spelled(MENUS[name].key)} {letter}"


def bindings(actions: Iterable[Action]) -> list[BindingType]:
    """The key bindings of a screen."""
    return [action.binding() for action in actions if action.id]
