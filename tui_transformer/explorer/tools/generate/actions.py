"""Everything that can be done on the screen that writes on, in one table."""

from __future__ import annotations

from tui_transformer.explorer.shell.actions import Action

ACTIONS = (
    Action("generate.forward", "space,right,l", "forward", "Write the next token, or go on to it", "write", "space"),
    Action("generate.auto", "a", "write_on", "Write on until the text ends; esc halts", "go on", "a"),
    Action("generate.pane", "tab,shift+tab", "other_pane", "The list of tokens, or the cache", "cache", "tab"),
    Action("generate.backward", "backspace,left,h", "backward", "Back to the token before", "back", "←"),
    Action("generate.choose", "", "", "Choose the token by hand", "by hand", "↑↓ enter"),
    Action("generate.settings", "comma,g", "settings", "How the next token is chosen", "settings", ","),
    Action("generate.temperature", "t", "settings('temperature')", "Set the temperature"),
    Action("generate.top-k", "K", "settings('top_k')", "Set top-k"),
    Action("generate.top-p", "P", "settings('top_p')", "Set top-p"),
    Action("generate.seed", "s", "settings('seed')", "Set the seed"),
    Action("generate.prompt", "slash", "sentence", "Edit the prompt, or the source", "prompt", "/"),
    Action("generate.undo", "u", "undo", "Undo: the text as it was before a choice", "undo", "u"),
    Action("generate.redo", "U", "redo", "Redo"),
    Action("generate.layer-next", "right_curly_bracket", "other_layer(1)", "Cache of the next layer", "layer", "{ }"),
    Action("generate.layer-back", "left_curly_bracket", "other_layer(-1)", "Cache of the layer before"),
    Action("generate.explore", "e", "explore", "Open the text in the explorer", "explore", "e"),
    Action("generate.export", "x", "export", "Write the text to a file", "export", "x"),
    Action("generate.theme", "ctrl+t", "app.next_theme", "Dark or light"),
    Action("generate.suspend", "ctrl+z", "app.suspend_process", "Suspend (fg comes back)"),
    Action("generate.help", "question_mark,f1", "help", "Help on this screen", "help", "?"),
    Action("generate.leave", "escape,q", "leave", "Halt; else back to the steps", "leave", "esc"),
)
