"""The keys of the program: one table for every screen, in which a key has one meaning and a meaning its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from textual.binding import Binding, BindingType
from textual.keys import format_key

from tui_transformer.explorer.widgets.cursor import CURSOR_KEYS

KEYS: Mapping[str, str] = {
    "step.next": "space,n",
    "step.back": "backspace",
    "step.on": "N",
    "head.next": "right_square_bracket",
    "head.back": "left_square_bracket",
    "layer.next": "right_curly_bracket",
    "layer.back": "left_curly_bracket",
    "sublayer.next": "s",
    "sublayer.back": "S",
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
    "theme": "ctrl+t",
    "suspend": "ctrl+z",
    "sentence.edit": "slash",
    "target.edit": "T",
    "vocabulary.open": "v",
    "find": "ctrl+f",
    "cuts": "V",
    "settings": "comma",
    "breaks": "exclamation_mark",
    "save": "ctrl+s",
    "export": "x",
    "copy.cell": "y",
    "copy.row": "Y",
    "undo": "u",
    "redo": "U",
    "cell.edit": "e",
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
    "second": "semicolon",
    "kind": "f",
    "order": "r",
    "reverse": "ctrl+r",
    "scale": "m",
    "chart.next": "c",
    "hide.special": "i",
    "hide.first": "I",
    "hide.itself": "X",
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
    "checkpoints": "F",
    "explore": "E",
    "open": "o",
    "tour": "t",
    "bookmark": "ctrl+b",
    "exercises": "C",
    "whole": "0",
    "zoom": "Z",
    "go": "colon",
    "predict": "p",
}
"""The keys of each meaning, separated by commas. By its name a meaning is given other keys, for all screens at once."""

NAMES = {**dict.fromkeys(("space", "tab", "backspace", "enter")), "f1": "F1"}
"""Keys that are written otherwise than Textual writes them; None for their names."""


def spelled(key: str) -> str:
    """A key as help and README write it: `space`, `/`, `ctrl+l`, `←`."""
    return (NAMES[key] or key) if key in NAMES else format_key(key)


UNBOUND = "unbound-"
"""Prefix of the key of an action that has none: nobody can press it, but it can be given one."""


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
    """

    id: str
    action: str
    title: str
    short: str = ""
    shown: str = ""
    of: str = ""

    def __post_init__(self) -> None:
        if self.short and not self.shown:
            meanings = self.of.split() or [self.id]
            keys = (spelled(KEYS.get(meaning, meaning).split(",")[0]) for meaning in meanings)
            object.__setattr__(self, "shown", " ".join(keys).replace("ctrl+", "^"))

    @property
    def keys(self) -> str:
        """Its keys, separated by commas."""
        return KEYS.get(self.id, f"{UNBOUND}{self.id.replace('.', '-')}")

    def binding(self) -> Binding:
        """The key binding."""
        return Binding(self.keys, self.action, self.title, show=False, id=self.id, tooltip=self.title)


def bindings(actions: Iterable[Action]) -> list[BindingType]:
    """The key bindings of a screen."""
    return [action.binding() for action in actions if action.id]
