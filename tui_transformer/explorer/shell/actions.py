"""Everything that can be done, in one table: keys, help lines and the command palette are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True)
class Action:
    """One thing to do.

    Attributes:
        id: Its name for remapping keys.
        keys: Keys, separated by commas.
        action: What the main screen runs.
        title: What it does, for the palette and the help.
        short: A word for the line of keys; "" for none.
        shown: How the keys are written in that line; by default as they are.
    """

    id: str
    keys: str
    action: str
    title: str
    short: str = ""
    shown: str = ""

    def binding(self) -> Binding:
        """The key binding."""
        return Binding(self.keys, self.action, self.title, show=False, id=self.id, tooltip=self.title)


ACTIONS = (
    Action("step.next", "space,n", "step('operation', 1)", "Next step", "next", "space"),
    Action("step.back", "backspace,p", "step('operation', -1)", "Previous step", "back", "backspace"),
    Action("head.next", "right_square_bracket", "head(1)", "Next head", "head", "[ ]"),
    Action("head.back", "left_square_bracket", "head(-1)", "Previous head"),
    Action("layer.next", "right_curly_bracket", "step('layer', 1)", "Next layer", "layer", "{ }"),
    Action("layer.back", "left_curly_bracket", "step('layer', -1)", "Previous layer"),
    Action("sublayer.next", "s", "step('sublayer', 1)", "Next sublayer", "sublayer", "s S"),
    Action("sublayer.back", "S", "step('sublayer', -1)", "Previous sublayer"),
    Action("sentence.edit", "slash", "sentence", "Edit the sentence", "sentence", "/"),
    Action("target.edit", "T", "target", "Edit the target of an encoder–decoder"),
    Action("vocabulary.open", "v", "vocabulary", "Show the vocabulary", "vocabulary", "v"),
    Action("cuts", "V", "open('cuts')", "How several vocabularies cut the sentence"),
    Action("help", "question_mark,f1", "help", "Help on the focused pane", "help", "?"),
    Action("quit", "q", "app.quit", "Quit", "quit", "q"),
    Action("backward", "b", "backward", "Backward: gradients from the loss back, and forward again", "backward", "b"),
    Action("targets", "B", "open('targets')", "Set the targets of the loss"),
    Action("compare", "d", "open('compare')", "Compare with another trace, and end it", "compare", "d"),
    Action("compare.first", "D", "first_difference", "Go to the first step that differs"),
    Action("beside", "z", "shown", "Values, gradient or other trace, difference", "beside", "z"),
    Action("weights", "w", "weights", "Show the weight of this step, and back", "weights", "w"),
    Action("cell.edit", "e", "edit_cell", "Edit the cell under the cursor", "edit", "e"),
    Action("ablate", "A", "open('ablation')", "Ablate: what each head, layer, position or neuron does", "ablate", "A"),
    Action("ablate.head", "a", "open('ablate-head')", "Ablate this head (zero)"),
    Action("ablate.head.mean", "M", "open('ablate-head-mean')", "Ablate this head (mean)"),
    Action("ablate.position", "o", "open('ablate-position')", "Ablate this position (zero)"),
    Action("ablate.position.mean", "O", "open('ablate-position-mean')", "Ablate this position (mean)"),
    Action("patch", "P", "open('patch')", "Patch this step from another sentence", "patch", "P"),
    Action("undo", "u", "undo", "Undo the last change", "undo", "u"),
    Action("redo", "U", "redo", "Redo"),
    Action("settings", "comma", "open('settings')", "Settings: sizes, seed, masks, device", "settings", ","),
    Action("heads.all", "H", "open('heads')", "All heads at once, by layer or by a measure", "all heads", "H"),
    Action("links", "K", "open('links')", "The strongest links of attention"),
    Action("rollout", "R", "open('rollout')", "Attention rollout: what reached which token"),
    Action("lens", "L", "open('lens')", "Logit lens: which word each layer spells", "lens", "L"),
    Action("chart.next", "c", "next_chart", "Next chart", "chart", "c"),
    Action("scale", "m", "scale", "One colour scale for all layers, or one a step", "scale", "m"),
    Action("hide.special", "i", "hide('special')", "Hide special tokens in attention, the rest renormalised"),
    Action("hide.first", "I", "hide('first')", "Hide the first token in attention, the rest renormalised"),
    Action("export", "x", "export", "Export what is shown: CSV, JSON, NPZ, SVG or text", "export", "x"),
    Action("copy.cell", "y", "copy_cell", "Copy the cell"),
    Action("copy.row", "Y", "copy_row", "Copy the row"),
    Action("generate", "W", "open('generate')", "Write on, token by token, with the KV cache", "write", "W"),
    Action("train", "ctrl+l", "open('train')", "Train a model, and watch it learn", "train", "^l"),
    Action("checkpoints", "F", "open('checkpoints')", "Step through the checkpoints of a training run"),
    Action("tour", "t", "tour", "Guided tour", "tour", "t"),
    Action("theme", "ctrl+t", "app.next_theme", "Dark or light"),
    Action("pane.next", "tab", "next_pane(1)", "Next pane"),
    Action("pane.back", "shift+tab", "next_pane(-1)", "Previous pane"),
    Action("pane.sentence", "1", "pane('sentence')", "Go to the sentence"),
    Action("pane.steps", "2", "pane('steps')", "Go to the steps"),
    Action("pane.heads", "3", "pane('heads')", "Go to the heads"),
    Action("pane.matrix", "4", "pane('matrix')", "Go to the matrix"),
    Action("pane.cell", "5", "pane('cell')", "Go to the cell"),
    Action("pane.chart", "6", "pane('chart')", "Go to the chart"),
    Action("back", "escape", "back", "Back one level; ends a computation"),
    Action("suspend", "ctrl+z", "app.suspend_process", "Suspend (fg comes back)"),
)

ALWAYS = ("beside", "help", "quit")
"""What the line of keys ends with, however short it is; the first only where something is beside."""

KEY_LINE = (
    "step.next",
    "step.back",
    "head.next",
    "layer.next",
    "sentence.edit",
    "tour",
    "backward",
    "compare",
    "generate",
    "heads.all",
    "train",
    "cell.edit",
    "lens",
    "ablate",
    "settings",
    "vocabulary.open",
    "weights",
    "sublayer.next",
    "patch",
    "chart.next",
    "export",
)
"""What stands before it, as far as there is room: the most useful first."""
