"""Actions of the main screen, of its panes, and its line of keys."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.actions.common import ACROSS, CHOOSE, EVERY_WAY, HEAD, HELP, LAYER, UP_DOWN, ZOOM
from tui_transformer.explorer.shell.keys import Action

ACTIONS = (
    Action("step.next", "step('operation', 1)", "Next step", "next", "space"),
    Action("step.back", "step('operation', -1)", "Previous step", "back", "backspace"),
    Action("head.next", "head(1)", "Next head", "head", "[ ]", HEAD),
    Action("head.back", "head(-1)", "Previous head"),
    Action("layer.next", "step('layer', 1)", "Next layer", "layer", "{ }", LAYER),
    Action("layer.back", "step('layer', -1)", "Previous layer"),
    Action("sublayer.next", "step('sublayer', 1)", "Next sublayer", "sublayer", "s S", "sublayer.next sublayer.back"),
    Action("sublayer.back", "step('sublayer', -1)", "Previous sublayer"),
    Action("sentence.edit", "edit('sentence')", "Edit the sentence", "sentence", "/"),
    Action("target.edit", "edit('target')", "Edit the target of an encoder–decoder"),
    Action(
        "vocabulary.open",
        "navigate('follow_vocabulary')",
        "The vocabulary; while it is shown, another one",
        "vocabulary",
        "v",
    ),
    Action("cuts", "open('cuts')", "How several vocabularies cut the sentence"),
    Action("help", "app.help", "Help on the focused pane", "help", "?"),
    Action("quit", "app.quit", "Quit", "quit", "q"),
    Action("backward", "backward", "Backward: gradients from the loss back, and forward again", "backward", "b"),
    Action("targets", "open('targets')", "Set the targets of the loss"),
    Action("compare", "open('compare')", "Compare with another trace, and end it", "compare", "d"),
    Action("compare.first", "navigate('follow_first_difference')", "Go to the first step that differs"),
    Action("overlay", "navigate('next_shown')", "Values, gradient or other trace, difference", "beside", "z"),
    Action("weights", "navigate('follow_weights')", "Show the weight of this step, and back", "weights", "w"),
    Action("cell.edit", "edit('cell')", "Edit the cell, or any step or weight: += 1, *= 0.5, = mean", "edit", "e"),
    Action("ablate", "open('ablation')", "Ablate: what each head, layer, position or neuron does", "ablate", "A"),
    Action("ablate.head", "open('ablate-head')", "Ablate this head (zero)"),
    Action("ablate.head.mean", "open('ablate-head-mean')", "Ablate this head (mean)"),
    Action("ablate.position", "open('ablate-position')", "Ablate this position (zero)"),
    Action("ablate.position.mean", "open('ablate-position-mean')", "Ablate this position (mean)"),
    Action("patch", "open('patch')", "Patch this step from another sentence", "patch", "P"),
    Action("patching", "open('patching')", "Tables of patches: every position, head or layer from another sentence"),
    Action("circuits", "open('circuits')", "Circuits of weights: OV, QK, composition of heads"),
    Action("terms", "open('terms')", "Direct logit attribution: what every head, layer and embedding writes"),
    Action("inputs", "open('inputs')", "What every token adds: gradient × input, integrated gradients"),
    Action("measure", "open('measure')", "Measure ablations and patches by a logit, a difference, KL, the loss"),
    Action("undo", "history('undo')", "Undo the last change", "undo", "u"),
    Action("redo", "history('redo')", "Redo"),
    Action("settings", "open('settings')", "Settings: sizes, seed, masks, device", "settings", ","),
    Action("draw.again", "open('draw-again')", "Draw again: other random weights, from the next seed"),
    Action(
        "breaks",
        "open('breaks')",
        "Break it: without ÷ √d_k, positions, mask …, and what each changes",
        "break it",
        "!",
    ),
    Action("heads.all", "open('heads')", "All heads at once, by layer or by a measure", "all heads", "H"),
    Action("links", "open('links')", "The strongest links of attention"),
    Action("rollout", "open('rollout')", "Attention rollout: what reached which token"),
    Action("arcs", "open('arcs')", "Arcs: who looks at whom, as lines between words", "arcs", "Q"),
    Action("lens", "open('lens')", "Logit lens: which word each layer spells, and each head raises", "lens", "L"),
    Action("similar", "open('similar')", "Compare with another sentence: cosine, and what every pair of tokens gives"),
    Action("nearest", "open('nearest')", "Words nearest to a word, or to king - man + woman"),
    Action("survey", "open('survey')", "Survey: heads by a measure over many texts, and the strongest examples"),
    Action("score", "open('score')", "How likely the text is: surprise of every token, perplexity"),
    Action("softmax", "open('softmax')", "Softmax of this row, naive and safe; break the naive one"),
    Action("item.next", "open('item-next')", "Next sentence of the batch", shown="."),
    Action("item.back", "open('item-back')", "Sentence of the batch before"),
    Action("chart.next", "navigate('next_chart')", "Next chart", "chart", "c"),
    Action("scale", "scale", "One colour scale for all layers, or one a step", "scale", "m"),
    Action("hide.special", "hide('special')", "Hide special tokens in attention, the rest renormalised"),
    Action("hide.first", "hide('first')", "Hide the first token in attention, the rest renormalised"),
    Action("export", "export", "Export what is shown: CSV, JSON, NPZ, SVG or text", "export", "x"),
    Action("copy.cell", "copy('cell')", "Copy the cell"),
    Action("copy.row", "copy('row')", "Copy the row"),
    Action("generate", "open('generate')", "Write on, token by token, with the KV cache", "write", "W"),
    Action("train", "open('train')", "Train a model, and watch it learn", "train", "^l"),
    Action("checkpoints", "open('checkpoints')", "Step through the checkpoints of a training run"),
    Action("tour", "tour", "Guided tour", "tour", "t"),
    Action("bookmark", "bookmark", "Bookmark: append this place to a lecture, which --tour opens", "bookmark", "^b"),
    Action("exercises", "open('exercises')", "Exercises: write a transformer, step by step"),
    Action("open", "open('open')", "Open another model: trained, recent, on this computer, a path", "open", "o"),
    Action("go", "go", "Go to a step, a layer or a number", "go to", ":"),
    Action("predict", "predict", "Predict, then reveal: a question on this step", "predict", "p"),
    Action("whole", "whole", "The whole on one screen, and back", "whole", "0"),
    Action("zoom", "zoom", "Zoom: this pane in the whole terminal, and back", "zoom", "Z"),
    Action("messages", "app.messages", "Messages: what was said"),
    Action("theme", "app.next_theme", "Dark or light"),
    Action("pane.next", "next_pane(1)", "Next pane"),
    Action("pane.back", "next_pane(-1)", "Previous pane"),
    Action("pane.sentence", "pane('sentence')", "Go to the sentence"),
    Action("pane.steps", "pane('steps')", "Go to the steps"),
    Action("pane.heads", "pane('heads')", "Go to the heads"),
    Action("pane.matrix", "pane('matrix')", "Go to the matrix"),
    Action("pane.cell", "pane('cell')", "Go to the cell"),
    Action("pane.chart", "pane('chart')", "Go to the chart"),
    Action("back", "back", "Back one level; ends a computation"),
    Action("suspend", "app.suspend_process", "Suspend (fg comes back)"),
)
FOCUSED: Mapping[str, tuple[Action, ...]] = {
    "whole": (
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter", CHOOSE),
        Action("", "", "From box to box", "box", "←↑↓→", EVERY_WAY),
    ),
    "sentence": (
        Action("", "", "Edit the sentence", "edit", "enter", CHOOSE),
        Action("", "", "Another word is the current one", "word", "← →", ACROSS),
    ),
    "steps": (
        Action("", "", "To the numbers of the step", "its numbers", "enter", CHOOSE),
        Action("", "", "From step to step", "step", "↑ ↓", UP_DOWN),
    ),
    "heads": (
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter", CHOOSE),
        Action("", "", "The head beside", "head", "← →", ACROSS),
    ),
    "matrix": (
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter", CHOOSE),
        Action("", "", "The cell beside", "cell", "←↑↓→", EVERY_WAY),
    ),
    "cell": (
        Action("", "", "Follow the term to the cell that it was read from", "follow", "enter", CHOOSE),
        Action("", "", "Follow the second factor of a product", "second factor", ";", "second"),
        Action("", "", "Terms in order, or the largest first", "order", "r", "order"),
    ),
    "chart": (Action("", "", "The next chart", "next chart", "c", "chart.next"),),
    "vocabulary": (
        Action("", "", "The word's row of the embedding", "its vector", "enter", CHOOSE),
        Action("", "", "Find a word", "find", "^f", "find"),
        Action("", "", "Another vocabulary", "another vocabulary", "v", "vocabulary.open"),
    ),
    "text": (Action("", "", "Higher or lower temperature", "temperature", "+ -", ZOOM),),
    "tour": (
        Action("", "", "The next stop", "next stop", "enter", CHOOSE),
        Action("", "", "The stop before, the next stop", "stop", "← →", ACROSS),
        Action("", "", "Leave the tour", "leave the tour", "esc", "back"),
    ),
}
"""Actions of the focused pane, or of the card of a tour, which come first in the line of keys."""

ON_CARD = frozenset({"step.next", "step.back", "tour"})
"""Actions whose keys the card of a tour has for itself."""

COUNTED = (
    *(each for each in ACTIONS if each.id in ("step.next", "step.back", "head.next", "layer.next", "sublayer.next")),
    Action("", "", "The cell beside", "cell", "h j k l", EVERY_WAY),
    Action("", "", "No count", "no count", "esc", "back"),
)
"""The line of keys while a count is typed."""

ALWAYS = ("overlay", "help", "quit")
"""Actions that the line of keys ends with, however short it is; the first only where there is an overlay."""

KEY_LINE = (
    "step.next",
    "step.back",
    "head.next",
    "layer.next",
    "sentence.edit",
    "tour",
    "whole",
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
    "go",
    "predict",
    "open",
)
"""Actions before those, as far as there is room: the most useful first."""

TOUR = (
    Action("cursor.right", "ask('Next')", "The next stop", "next", "→"),
    Action("step.next", "ask('Next')", "The next stop"),
    Action("cursor.choose", "ask('Next')", "The next stop"),
    Action("cursor.left", "ask('Back')", "The stop before", "back", "←"),
    Action("step.back", "ask('Back')", "The stop before"),
    Action("back", "ask('Left')", "Leave the tour", "leave", "esc"),
)
PREDICT = (
    Action("", "", "Choose an answer, or type another", "choose, or type", "↑↓"),
    Action("", "", "Leave the question open", "skip", "space"),
    Action("", "", "Show what is right; then go on", "reveal", "enter"),
)
PREDICTED = (Action("", "", "Go on", "go on", "enter"),)
INSIDE = (
    Action("", "", "Follow the term to the cell that it was read from", "follow", "enter", CHOOSE),
    Action("second", "second", "Follow the second factor of a product", "second factor", ";"),
    Action("step.next", "step(1)", "The same cell of the next step", "next step", "space"),
    Action("step.back", "step(-1)", "The same cell of the step before", "back", "backspace"),
    Action("cursor.left", "cell(-1)", "The cell before", "cell", "← →", ACROSS),
    Action("cursor.right", "cell(1)", "The next cell"),
    Action("head.next", "head(1)", "The next head", "head", "[ ]", HEAD),
    Action("head.back", "head(-1)", "The head before"),
    Action("quit", "leave", "Out, to the cell that is looked into", "out, here", "q"),
    HELP,
    Action("back", "back", "Back to where it was followed from; then out", "back", "esc"),
)
SENTENCE = (
    Action("cursor.choose", "edit", "Edit the sentence"),
    Action("cursor.left", "screen.navigate('turn_token', -1)", "The word before"),
    Action("cursor.right", "screen.navigate('turn_token', 1)", "The next word"),
)
WHOLE = (
    Action("cursor.left", "screen.navigate('go_to_box', -1, 0)", "The box before"),
    Action("cursor.right", "screen.navigate('go_to_box', 1, 0)", "The next box"),
    Action("cursor.up", "screen.navigate('go_to_box', 0, -1)", "The box above"),
    Action("cursor.down", "screen.navigate('go_to_box', 0, 1)", "The box below"),
    Action("cursor.choose", "screen.navigate('look_inside')", "Look inside: the step in full"),
)
CELL = (
    Action("order", "screen.navigate('turn_order')", "Terms in order, or the largest first"),
    Action("second", "follow_second", "Follow the second factor of a product"),
)
TEMPERATURE = (
    Action("cursor.wider", "screen.navigate('warm', 1)", "Higher temperature"),
    Action("cursor.narrower", "screen.navigate('warm', -1)", "Lower temperature"),
)
VOCABULARY = (Action("find", "search", "Find a word in the vocabulary"),)
