"""Actions that several screens have."""

from __future__ import annotations

from tui_transformer.explorer.shell.keys import Action

HELP = Action("help", "app.help", "What is shown here", "help", "?")
THEME = Action("theme", "app.next_theme", "Dark or light")
SUSPEND = Action("suspend", "app.suspend_process", "Suspend (fg comes back)")
CHOOSE_SHOWN = Action("", "", "Go to what is under the cursor", "go there", "enter")
CELL_SHOWN = Action("", "", "Move the cell", "cell", "← ↑ ↓ →")
WIDTH_SHOWN = Action("", "", "Wider or narrower cells", "width", "+ -")
HIDING = (
    Action("hide.special", "hide('special')", "Hide special tokens, and show them again", "hide special", "i"),
    Action("hide.first", "hide('first')", "Hide the first token, and show it again", "hide first", "I"),
)
A_HEAD = (
    Action("head.next", "turn('head', 1)", "The next head", "head", "[ ]"),
    Action("head.back", "turn('head', -1)", "The head before"),
    Action("layer.next", "turn('layer', 1)", "The next layer", "layer", "{ }"),
    Action("layer.back", "turn('layer', -1)", "The layer before"),
    Action("kind", "turn('kind', 1)", "The next kind of attention: self, cross", "attention", "f"),
)
LEAVE = Action("back", "leave", "Leave without a change", "leave", "esc")
