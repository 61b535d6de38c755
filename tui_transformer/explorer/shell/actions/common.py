"""Actions that several screens have."""

from __future__ import annotations

from tui_transformer.explorer.shell.keys import Action

ACROSS, UP_DOWN = "cursor.left cursor.right", "cursor.up cursor.down"
EVERY_WAY = "cursor.left cursor.up cursor.down cursor.right"
ZOOM, CHOOSE = "cursor.wider cursor.narrower", "cursor.choose"
HEAD, LAYER = "head.back head.next", "layer.back layer.next"
"""Meanings whose keys are shown together, in their order."""

HELP = Action("help", "app.help", "What is shown here", "help", "?")
THEME = Action("theme", "app.next_theme", "Dark or light")
SUSPEND = Action("suspend", "app.suspend_process", "Suspend (fg comes back)")
CHOOSE_SHOWN = Action("", "", "Go to what is under the cursor", "go there", "enter", CHOOSE)
CELL_SHOWN = Action("", "", "Move the cell", "cell", "← ↑ ↓ →", EVERY_WAY)
WIDTH_SHOWN = Action("", "", "Wider or narrower cells", "width", "+ -", ZOOM)
HIDING = (
    Action("hide", "hide", "Hide special tokens, the first token, both, or none", "hide"),
    Action("hide.special", "hide('special')", "Hide special tokens, and show them again", "hide special"),
    Action("hide.first", "hide('first')", "Hide the first token, and show it again", "hide first"),
)
A_HEAD = (
    Action("head.next", "turn('head', 1)", "The next head", "head", "[ ]", HEAD),
    Action("head.back", "turn('head', -1)", "The head before"),
    Action("layer.next", "turn('layer', 1)", "The next layer", "layer", "{ }", LAYER),
    Action("layer.back", "turn('layer', -1)", "The layer before"),
    Action("kind", "turn('kind', 1)", "The next kind of attention: self, cross", "attention", "f"),
)
LEAVE = Action("back", "leave", "Leave without a change", "leave", "esc")
