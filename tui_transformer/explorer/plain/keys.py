"""Typed lines as meanings: a key, a key behind a count, or a command with words behind it; the help on them."""

from __future__ import annotations

import codecs
import os
import re
import select
from collections.abc import Iterator, Mapping

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.keymap import hint_in, key_in
from tui_transformer.explorer.shell.keys import IN_MENUS, KEYS, MENUS, UNBOUND, name_of_key
from tui_transformer.records import dataclass

COMMANDS: Mapping[str, str] = {
    "next": "next",
    "back": "before",
    "left": "cursor.left",
    "right": "cursor.right",
    "up": "cursor.up",
    "down": "cursor.down",
    "top": "cursor.top",
    "bottom": "cursor.bottom",
    "return": "back",
    **{each: each for each in ("where", "head", "row", "column", "cell", "go", "find", "menu")},
    "explain": "cursor.choose",
    **{each: each for each in ("line", "largest", "what")},
    "sentence": "sentence.edit",
    "target": "target.edit",
    "set": "cell.edit",
    "ablate": "ablate.head",
    **{each: each for each in ("undo", "redo", "backward", "weights")},
    "vocabulary": "vocabulary.open",
    **{each: each for each in ("tour", "leave", "predict", "answer")},
    "break": "breaks",
    "breaks": "breaks.told",
    **{each: each for each in ("softmax", "generate", "strength", "open", "help", "quit")},
}
"""Commands that are typed, and what they mean; the keys of the same meanings do the same."""

STOPS: Mapping[str, int] = {"next": 1, "before": -1}
"""Meanings that go from stop to stop in a tour, and from step to step otherwise."""

ASKS: Mapping[str, str] = {
    "go": "step",
    "find": "token, step or word",
    "sentence.edit": "sentence",
    "target.edit": "target",
    "cell.edit": "value",
    "answer": "answer",
    "breaks": "what to break, nothing to mend it",
    "strength": "how many times",
    "open": "model",
}
"""Meanings that need words; where keys are read one at a time, they are asked for."""

ANSWER = "r"
"""The key that reveals what was asked; on the screen there is a line to answer in."""

MOST = 9_999
"""A count in front of a key goes no further."""

ESCAPE, LONGEST_SEQUENCE = b"\x1b", 8

AT_ONCE = 0.02
"""Seconds in which the rest of a key follows its escape."""

_SHORT = {"esc": "escape", "pgup": "pageup", "pgdn": "pagedown"}
_SPECIAL = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[5~": "pageup",
    "\x1b[6~": "pagedown",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "quit",
    "\x04": "quit",
    " ": "space",
}


@dataclass(frozen=True)
class Typed:
    """One thing that is asked for: its meaning, how often, and the words behind it."""

    meaning: str
    count: int = 1
    words: str = ""


def meanings(given: Mapping[str, str]) -> dict[str, str]:
    """The meaning of each key, and of a menu's key and a letter of it: those of the program, or of the user."""
    on_screen = {action.id for action in ACTIONS if action.direct}
    own = [(name, keys) for name, keys in KEYS.items() if name not in given and name not in IN_MENUS]
    own.sort(key=lambda each: each[0] in on_screen)  # what a tool alone has gives way
    known = {key: name for name, keys in (*own, ("answer", ANSWER)) for key in keys.split(",")}
    for name, menu in MENUS.items():
        if not given.get(name, "").startswith(UNBOUND):
            key = key_in(given, name)
            known |= {f"{key}{space}{letter}": each for letter, each in menu.entries.items() for space in ("", " ")}
    return known | {key.strip(): name for name, keys in given.items() for key in keys.split(",")}


def menu_of(name: str, keymap: Mapping[str, str]) -> str:
    """A menu read out: each letter with what it does; all menus where none is named.

    Raises:
        InputError: There is none of this key.
    """
    titles = {action.id: action.title.partition(":")[0] for action in ACTIONS}
    keys = {key_in(keymap, each): menu for each, menu in MENUS.items()}
    chosen = MENUS.get(name) or keys.get(name.strip())
    if chosen is not None:
        return "; ".join(f"{letter} {titles[meaning]}" for letter, meaning in chosen.entries.items()) + "."
    listed = ", ".join(f"{key} {menu.title}" for key, menu in keys.items() if key)
    if name.strip():
        raise InputError(f"there is no menu {name.strip()[:20]!r}: {listed}")
    return f"menus are {listed}: menu and one of these keys reads it out."


def read(line: str, known: Mapping[str, str]) -> Typed:
    """Command of a line; an empty one is the next step.

    Raises:
        InputError: It is neither a key nor a command.
    """
    typed = line.strip()
    if not typed:
        return Typed("step.next")
    if typed[0] in ":/":
        return Typed("go" if typed[0] == ":" else known.get("slash", "find"), words=typed[1:].strip())
    word, _, rest = re.sub(r"^go to\b", "go", typed, flags=re.IGNORECASE).partition(" ")
    if word.casefold() in COMMANDS:
        meaning, rest = COMMANDS[word.casefold()], rest.strip()
        moves = meaning.startswith(("next", "before", "cursor.", "layer."))
        if moves and re.fullmatch(r"[0-9]{1,4}", rest):  # how far
            return Typed(meaning, int(rest))
        return Typed(meaning, words=rest)
    match = re.fullmatch(r"([0-9]{0,4}) ?(.+)", typed)
    if match is not None:
        key = _SHORT.get(match[2], match[2])
        meaning = known.get(key) or (known.get(key_name(key), "") if len(key) == 1 or key in _SPECIAL else "")
        if meaning:
            return Typed(meaning, min(int(match[1] or 1), MOST))
    meaning = known.get(word) or known.get(key_name(word), "")
    if meaning in ASKS:
        return Typed(meaning, words=rest.strip())
    raise InputError(f"{typed[:60]!r} is neither a key nor a command: help lists them")


def key_name(key: str) -> str:
    """The name of a key that a terminal sends."""
    return _SPECIAL.get(key) or name_of_key(key)


def pressed(terminal: int) -> Iterator[str]:
    """Keys of a terminal as they are pressed, an arrow as one; read byte by byte, so that a line can follow."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while byte := os.read(terminal, 1):
        if byte == ESCAPE:  # bytes that follow it at once are one key with it
            while len(byte) < LONGEST_SEQUENCE and select.select([terminal], [], [], AT_ONCE)[0]:
                more = os.read(terminal, 1)
                byte += more
                if not more or (len(byte) > len(b"\x1b[") and (more.isalpha() or more == b"~")):
                    break
            yield byte.decode("ascii", errors="replace").replace("\x1bO", "\x1b[")
        elif key := decoder.decode(byte):
            yield key


# Help

MOVING, MOVES = "arrows or h j k l", "{cursor.left} {cursor.down} {cursor.up} {cursor.right}"

HELP = (
    "Keys are those of the screen, a number in front says how often: {step.next} next step, {step.back} back,"
    f" {MOVING} the cell,"
    " {head.back} {head.next} head, {layer.back} {layer.next} layer, {sublayer.next} sublayer,"
    " {tour} the tour and its next stop, tour and a name another one, leave or {back} the end of it,"
    " {cursor.choose} how the cell was made, {softmax} the softmax of the row, naive and safe, {go} a step,"
    " {find} finds a token, a step or a word and {match.next} the next match,"
    " {sentence.edit} a sentence, {cell.edit} a value, {open} another model, {breaks} what to break,"
    " {predict} a question on the step, r the answer to it,"
    " {menu.look} {menu.act} {menu.run} {menu.compare} {menu.backward} {menu.mine} menus, which are read out,"
    f" {{undo}} undo, {{quit}} quit; commands are {', '.join(COMMANDS)}."
)


def help_of(keymap: Mapping[str, str]) -> str:
    """Keys and commands that can be typed, with the keys that the user gave to meanings."""
    own = any(name.startswith("cursor.") for name in keymap)
    return hint_in(keymap, HELP.replace(MOVING, MOVES) if own else HELP)


def only_on_the_screen(meaning: str) -> str:
    """That a key does nothing here, and what does it without a screen."""
    title = next((action.title for action in ACTIONS if action.id == meaning), meaning)
    command = WITHOUT_A_SCREEN.get(meaning)
    return f"{title.partition(':')[0]!r} is for the screen" + (
        f": `tui-transformer {command}` does it without one" if command else "; help lists what can be typed here"
    )


WITHOUT_A_SCREEN: Mapping[str, str] = {
    "export": "show STEP --out FILE",
    "train": "train",
    "lens": "lens",
    "links": "links",
    "rollout": "rollout",
    "features": "features FILE",
    "graph": "graph",
    "poster": "poster STEP --cell HEAD,ROW,COLUMN",
    "heads.all": "heads",
    "ablate": "ablate",
    "patch": "patch",
    "compare": "diff",
    "cuts": "vocab compare",
    "exercises": "exercise",
    "chart.next": "chart STEP",
}
"""Commands that do what a key opens a screen for."""
