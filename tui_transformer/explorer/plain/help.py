"""Help without a screen: what can be typed, and which command does what a key does on the screen."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.plain.keys import COMMANDS
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.keymap import hint_in

MOVING, MOVES = "arrows or h j k l", "{cursor.left} {cursor.down} {cursor.up} {cursor.right}"

HELP = (
    "Keys are those of the screen, a number in front says how often: {step.next} next step, {step.back} back,"
    f" {MOVING} the cell,"
    " {head.back} {head.next} head, {layer.back} {layer.next} layer, {sublayer.next} sublayer,"
    " {tour} the tour and its next stop, leave or {back} the end of it,"
    " {cursor.choose} how the cell was made, {softmax} the softmax of the row, naive and safe, {go} a step,"
    " {sentence.edit} a sentence, {cell.edit} a value, {open} another model, {breaks} what to break,"
    " {predict} a question on the step, r the answer to it,"
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
    "generate": "generate",
    "train": "train",
    "lens": "lens",
    "links": "links",
    "rollout": "rollout",
    "heads.all": "heads",
    "ablate": "ablate",
    "patch": "patch",
    "compare": "diff",
    "cuts": "vocab compare",
    "exercises": "exercise",
    "chart.next": "chart STEP",
}
"""Commands that do what a key opens a screen for."""
