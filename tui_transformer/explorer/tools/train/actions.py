"""Everything that can be done on the Train screen, in one table."""

from __future__ import annotations

from tui_transformer.explorer.shell.actions import Action

ACTIONS = (
    Action("train.go-on", "space", "go_on", "Go on, or pause after the step", "train", "space"),
    Action("train.one", "n", "one", "One step: one batch, and wait", "one step", "n"),
    Action("train.rate-up", "plus,equals_sign", "scale_rate(2)", "Double the learning rate", "rate ×2 ÷2", "+ -"),
    Action("train.rate-down", "minus", "scale_rate(0.5)", "Halve the learning rate"),
    Action("train.explore", "e", "explore", "Explore the model as it is", "explore", "e"),
    Action("train.part", "tab", "other_part(1)", "The next part, where one is shown at a time"),
    Action("train.part-back", "shift+tab", "other_part(-1)", "The part before"),
    Action("train.rate", "r", "rate", "Set the learning rate", "rate", "r"),
    Action("train.head-next", "right_square_bracket", "head(1)", "The next head", "head", "[ ]"),
    Action("train.head-back", "left_square_bracket", "head(-1)", "The head before"),
    Action("train.layer-next", "right_curly_bracket", "layer(1)", "The next layer", "layer", "{ }"),
    Action("train.layer-back", "left_curly_bracket", "layer(-1)", "The layer before"),
    Action("train.kind", "a", "kind", "The next kind of attention: self, cross", "attention", "a"),
    Action("train.save", "s", "save", "Write a checkpoint now", "save", "s"),
    Action("train.scrub", "F", "scrub", "Step through the checkpoints so far", "checkpoints", "F"),
    Action("train.quit", "q", "quit", "Save, and quit the program", "save and quit", "q"),
    Action("train.theme", "ctrl+t", "app.next_theme", "Dark or light"),
    Action("train.suspend", "ctrl+z", "app.suspend_process", "Suspend (fg comes back)"),
    Action("train.help", "question_mark,f1", "help", "Help on this screen", "help", "?"),
    Action("train.leave", "escape", "leave", "Leave: training goes on, or pauses, or ends", "leave", "esc"),
)
