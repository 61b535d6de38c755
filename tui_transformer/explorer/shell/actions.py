"""Actions of every screen, a table a screen: keys, lines of keys, palette and the checks of help are made from it."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.keys import Action

ACTIONS = (
    Action("step.next", "step('operation', 1)", "Next step", "next", "space"),
    Action("step.back", "step('operation', -1)", "Previous step", "back", "backspace"),
    Action("head.next", "head(1)", "Next head", "head", "[ ]"),
    Action("head.back", "head(-1)", "Previous head"),
    Action("layer.next", "step('layer', 1)", "Next layer", "layer", "{ }"),
    Action("layer.back", "step('layer', -1)", "Previous layer"),
    Action("sublayer.next", "step('sublayer', 1)", "Next sublayer", "sublayer", "s S"),
    Action("sublayer.back", "step('sublayer', -1)", "Previous sublayer"),
    Action("sentence.edit", "edit('sentence')", "Edit the sentence", "sentence", "/"),
    Action("target.edit", "edit('target')", "Edit the target of an encoder–decoder"),
    Action("vocabulary.open", "vocabulary", "The vocabulary; while it is shown, another one", "vocabulary", "v"),
    Action("cuts", "open('cuts')", "How several vocabularies cut the sentence"),
    Action("help", "app.help", "Help on the focused pane", "help", "?"),
    Action("quit", "app.quit", "Quit", "quit", "q"),
    Action("backward", "backward", "Backward: gradients from the loss back, and forward again", "backward", "b"),
    Action("targets", "open('targets')", "Set the targets of the loss"),
    Action("compare", "open('compare')", "Compare with another trace, and end it", "compare", "d"),
    Action("compare.first", "first_difference", "Go to the first step that differs"),
    Action("overlay", "shown", "Values, gradient or other trace, difference", "beside", "z"),
    Action("weights", "weights", "Show the weight of this step, and back", "weights", "w"),
    Action("cell.edit", "edit('cell')", "Edit the cell under the cursor", "edit", "e"),
    Action("ablate", "open('ablation')", "Ablate: what each head, layer, position or neuron does", "ablate", "A"),
    Action("ablate.head", "open('ablate-head')", "Ablate this head (zero)"),
    Action("ablate.head.mean", "open('ablate-head-mean')", "Ablate this head (mean)"),
    Action("ablate.position", "open('ablate-position')", "Ablate this position (zero)"),
    Action("ablate.position.mean", "open('ablate-position-mean')", "Ablate this position (mean)"),
    Action("patch", "open('patch')", "Patch this step from another sentence", "patch", "P"),
    Action("patching", "open('patching')", "Tables of patches: every position, head or layer from another sentence"),
    Action("circuits", "open('circuits')", "Circuits of weights: OV, QK, composition of heads"),
    Action("inputs", "open('inputs')", "What every token adds: gradient × input, integrated gradients"),
    Action("measure", "open('measure')", "Measure ablations and patches by a logit, a difference, KL, the loss"),
    Action("undo", "undo", "Undo the last change", "undo", "u"),
    Action("redo", "redo", "Redo"),
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
    Action("lens", "open('lens')", "Logit lens: which word each layer spells", "lens", "L"),
    Action("similar", "open('similar')", "Compare with another sentence: cosine, and what every pair of tokens gives"),
    Action("nearest", "open('nearest')", "Words nearest to a word, or to king - man + woman"),
    Action("survey", "open('survey')", "Survey: heads by a measure over many texts, and the strongest examples"),
    Action("score", "open('score')", "How likely the text is: surprise of every token, perplexity"),
    Action("softmax", "open('softmax')", "Softmax of this row, naive and safe; break the naive one"),
    Action("item.next", "open('item-next')", "Next sentence of the batch", shown="."),
    Action("item.back", "open('item-back')", "Sentence of the batch before"),
    Action("chart.next", "next_chart", "Next chart", "chart", "c"),
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
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter"),
        Action("", "", "From box to box", "box", "←↑↓→"),
    ),
    "sentence": (
        Action("", "", "Edit the sentence", "edit", "enter"),
        Action("", "", "Another word is the current one", "word", "← →"),
    ),
    "steps": (
        Action("", "", "To the numbers of the step", "its numbers", "enter"),
        Action("", "", "From step to step", "step", "↑ ↓"),
    ),
    "heads": (
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter"),
        Action("", "", "The head beside", "head", "← →"),
    ),
    "matrix": (
        Action("", "", "Look inside: the operation with its operands", "look inside", "enter"),
        Action("", "", "The cell beside", "cell", "←↑↓→"),
    ),
    "cell": (
        Action("", "", "Follow the term to the cell that it was read from", "follow", "enter"),
        Action("", "", "Follow the second factor of a product", "second factor", ";"),
        Action("", "", "Terms in order, or the largest first", "order", "r"),
    ),
    "chart": (Action("", "", "The next chart", "next chart", "c"),),
    "vocabulary": (
        Action("", "", "The word's row of the embedding", "its vector", "enter"),
        Action("", "", "Find a word", "find", "^f"),
        Action("", "", "Another vocabulary", "another vocabulary", "v"),
    ),
    "text": (Action("", "", "Higher or lower temperature", "temperature", "+ -"),),
}
"""Actions of the focused pane, which come first in the line of keys."""

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

HELP = Action("help", "app.help", "What is shown here", "help", "?")
THEME = Action("theme", "app.next_theme", "Dark or light")
SUSPEND = Action("suspend", "app.suspend_process", "Suspend (fg comes back)")
CHOOSE_SHOWN = Action("", "", "Go to what is under the cursor", "go there", "enter")
CELL_SHOWN = Action("", "", "Move the cell", "cell", "← ↑ ↓ →")
WIDTH_SHOWN = Action("", "", "Wider or narrower cells", "width", "+ -")

OVERVIEW = (
    HELP,
    Action("back", "leave", "Back to the main screen", "back", "esc"),
    Action("quit", "leave", "Back to the main screen"),
)
HIDING = (
    Action("hide.special", "hide('special')", "Hide special tokens, and show them again", "hide special", "i"),
    Action("hide.first", "hide('first')", "Hide the first token, and show it again", "hide first", "I"),
)
HEADS = (
    Action("", "", "Open the head in the main screen", "open", "enter"),
    Action("order", "order", "Order by the next measure", "order", "r"),
    Action("reverse", "reverse", "Reverse the order", "reverse", "^r"),
    *HIDING,
    Action("kind", "group", "The next kind of attention: encoder, decoder, cross", "source", "f"),
    Action("", "", "Larger or smaller pictures", "size", "+ -"),
    Action("scale", "scale", "One colour scale for all heads, or one for each", "scale", "m"),
)
LINKS = (
    Action("arcs", "arcs", "The same as lines between words", "arcs", "Q"),
    CHOOSE_SHOWN,
    Action("kind", "scope", "All heads, the layer, the head", "all, layer, head", "f"),
    Action("hide.itself", "itself", "Links from a token to itself, shown or not", "to itself", "X"),
    *HIDING,
)
ROLLOUT = (
    Action("arcs", "arcs", "The same as lines between words", "arcs", "Q"),
    Action("layer.next", "layer(1)", "Up to the next layer", "layer", "{ }"),
    Action("layer.back", "layer(-1)", "Up to the layer before"),
    Action("kind", "stack", "Encoder or decoder", "encoder, decoder", "f"),
    CELL_SHOWN,
    WIDTH_SHOWN,
)
SIMILAR = (
    Action("sentence.edit", "sentence", "Compare with another sentence", "other sentence", "/"),
    CELL_SHOWN,
    WIDTH_SHOWN,
)
LENS = (CELL_SHOWN, CHOOSE_SHOWN, WIDTH_SHOWN)
ABLATION = (
    Action("", "", "Make the ablation in the main screen", "ablate", "enter"),
    Action("step.on", "go_on", "Go on where it was ended", "go on", "N"),
    Action("kind", "scope", "Heads, layers, positions, neurons", "of what", "f"),
    Action("layer.next", "place(1)", "The next layer", "layer", "{ }"),
    Action("layer.back", "place(-1)", "The layer before"),
    Action("mean", "mean", "Set to 0, or to the mean over the positions", "0 or mean", "M"),
    Action("order", "reverse", "Largest or smallest effect first", "order", "r"),
    Action("measure", "measure", "Measure by a logit, a difference, KL, the loss", "measure", "#"),
    Action("answer", "positions", "Where the model answers, or all positions", "positions", "*"),
    Action("back", "end", "End the computation; then leave"),
)
SURVEY = (
    Action("", "", "The texts in which it is strongest", "strongest texts", "enter"),
    Action("order", "order", "The next measure", "measure", "r"),
    Action("find", "find", "A measure by its name", "by name", "^f"),
    Action("reverse", "reverse", "Reverse the order", "reverse", "^r"),
    Action("kind", "part", "The next part: heads, neurons, the logit lens", "part", "f"),
)
EXAMPLES = (Action("", "", "Open the text in the main screen, where it is strongest", "open", "enter"),)
A_HEAD = (
    Action("head.next", "turn('head', 1)", "The next head", "head", "[ ]"),
    Action("head.back", "turn('head', -1)", "The head before"),
    Action("layer.next", "turn('layer', 1)", "The next layer", "layer", "{ }"),
    Action("layer.back", "turn('layer', -1)", "The layer before"),
    Action("kind", "turn('kind', 1)", "The next kind of attention: self, cross", "attention", "f"),
)
PATCHING = (
    Action("", "", "Patch the cell in the main screen", "patch", "enter"),
    Action("sentence.edit", "sentence", "Another sentence that values come from", "other sentence", "/"),
    Action("kind", "kind", "Positions, heads, layers", "of what", "f"),
    Action("measure", "measure", "Measure by a logit, a difference, KL, the loss", "measure", "#"),
    Action("step.on", "go_on", "Go on where it was ended", "go on", "N"),
    CELL_SHOWN,
    WIDTH_SHOWN,
    Action("back", "end", "End the computation; then leave"),
)
CIRCUITS = (
    Action("kind", "kind", "OV, QK, composition of all heads, W_Q, W_K, W_V, W_O", "which matrix", "f"),
    Action("head.next", "head(1)", "The next head", "head", "[ ]"),
    Action("head.back", "head(-1)", "The head before"),
    Action("layer.next", "layer(1)", "The same head of the next layer", "layer", "{ }"),
    Action("layer.back", "layer(-1)", "The same head of the layer before"),
    Action("", "", "The head in the main screen", "go there", "enter"),
    CELL_SHOWN,
    WIDTH_SHOWN,
)
CHECKPOINTS = (
    Action("step.next", "step(1)", "The next checkpoint", "checkpoint", "← →"),
    Action("step.back", "step(-1)", "The checkpoint before"),
    Action("cursor.right", "step(1)", "The next checkpoint"),
    Action("cursor.left", "step(-1)", "The checkpoint before"),
    Action("cursor.top", "step(-1000000)", "The first checkpoint"),
    Action("cursor.bottom", "step(1000000)", "The last checkpoint"),
    *A_HEAD,
    Action("cursor.choose", "explore", "Explore this checkpoint", "explore", "enter"),
    Action("explore", "explore", "Explore this checkpoint"),
    Action("compare", "compare", "Compare with the last checkpoint", "compare with the last", "d"),
    Action("sentence.edit", "sentence", "Another sentence", "sentence", "/"),
    Action("open", "run", "The checkpoints of another run", "run", "o"),
)
TRAIN = (
    Action("step.on", "go_on", "Go on, or pause after the step", "train", "N"),
    Action("step.next", "one", "One step: one batch, and wait", "one step", "space"),
    Action("cursor.wider", "scale_rate(2)", "Double the learning rate", "rate ×2 ÷2", "+ -"),
    Action("cursor.narrower", "scale_rate(0.5)", "Halve the learning rate"),
    Action("explore", "explore", "Explore the model as it is", "explore", "E"),
    Action("pane.next", "other_part(1)", "The next part, where one is shown at a time"),
    Action("pane.back", "other_part(-1)", "The part before"),
    Action("settings", "rate", "Set the learning rate", "rate", ","),
    *A_HEAD,
    Action("save", "save", "Write a checkpoint now", "save", "^s"),
    Action("checkpoints", "checkpoints", "Step through the checkpoints so far", "checkpoints", "F"),
    Action("train.quit", "quit", "Save, and quit the program"),
    THEME,
    SUSPEND,
    HELP,
    Action("back", "leave", "Leave: training goes on, or pauses, or ends", "leave", "esc"),
    Action("quit", "leave", "Leave: training goes on, or pauses, or ends"),
)
GENERATE = (
    Action("step.next", "forward", "Write the next token, or go on to it", "write", "space"),
    Action("cursor.right", "forward", "Write the next token, or go on to it"),
    Action("step.on", "write_on", "Write on until the text ends; esc halts", "go on", "N"),
    Action("pane.next", "other_pane", "The list of tokens, or the cache", "cache", "tab"),
    Action("pane.back", "other_pane", "The list of tokens, or the cache"),
    Action("step.back", "backward", "Back to the token before", "back", "←"),
    Action("cursor.left", "backward", "Back to the token before"),
    Action("", "", "Choose the token by hand", "by hand", "↑↓ enter"),
    Action("settings", "settings", "How the next token is chosen", "settings", ","),
    Action("generate.temperature", "settings('temperature')", "Set the temperature"),
    Action("generate.top-k", "settings('top_k')", "Set top-k"),
    Action("generate.top-p", "settings('top_p')", "Set top-p"),
    Action("generate.seed", "settings('seed')", "Set the seed"),
    Action("sentence.edit", "sentence", "Edit the prompt, or the source", "prompt", "/"),
    Action("undo", "undo", "Undo: the text as it was before a choice", "undo", "u"),
    Action("redo", "redo", "Redo"),
    Action("layer.next", "other_layer(1)", "Cache of the next layer", "layer", "{ }"),
    Action("layer.back", "other_layer(-1)", "Cache of the layer before"),
    Action("explore", "explore", "Open the text in the explorer", "explore", "E"),
    Action("export", "export", "Write the text to a file", "export", "x"),
    THEME,
    SUSPEND,
    HELP,
    Action("back", "leave", "Halt; else back to the steps", "leave", "esc"),
    Action("quit", "leave", "Halt; else back to the steps"),
)
EXERCISES = (
    Action("", "", "Open its step in the main screen, on its model and sentence", "open its step", "enter x"),
    Action("explore", "explore", "Take it to the main screen: its model, sentence and step"),
    Action("export", "explore", "Take it out of the list, to the main screen"),
)
ARCS = (
    Action("", "", "Open the strongest cell of the query in the main screen", "open", "enter"),
    Action("kind", "source", "One head, the strongest of all, the rollout", "head, all, rollout", "f"),
    Action("head.next", "head(1)", "The next head", "head", "[ ]"),
    Action("head.back", "head(-1)", "The head before"),
    Action("layer.next", "layer(1)", "The next attention", "layer", "{ }"),
    Action("layer.back", "layer(-1)", "The attention before"),
)
BREAKING = (
    Action("", "", "Break it, or mend it", "switch", "enter"),
    Action("step.next", "switch", "Break it, or mend it"),
    Action("mend", "mend", "Mend everything"),
)
LEAVE = Action("back", "leave", "Leave without a change", "leave", "esc")
CLOSE = Action("back", "leave", "Close the text", "close", "esc")
SCROLL_SHOWN = Action("", "", "Scroll", "scroll", "↑↓")
DIALOG = (LEAVE,)
PROMPT = (
    Action("", "", "Complete the word", "complete", "tab"),
    Action("", "", "What was given before", "lately", "↑↓"),
    Action("", "", "Take what is typed", "ok", "enter"),
    LEAVE,
)
PICK = (
    Action("", "", "Move", "move", "↑↓"),
    Action("", "", "Pick what is under the cursor", "pick", "enter"),
    Action("back", "leave", "Leave without a change", "stay", "esc"),
)
COMPARE = (Action("", "", "Compare with what is under the cursor", "compare", "enter"), LEAVE)
OPEN = (
    Action("", "", "Choose in the list", "choose", "↑↓"),
    Action("", "", "Open what is chosen, or the path that is typed", "open", "enter"),
    LEAVE,
)
FORM = (
    Action("cursor.up", "app.focus_previous", "The field before", "field", "↑↓"),
    Action("cursor.down", "app.focus_next", "The next field"),
    Action("", "", "Choose a value", "choose", "←→"),
    Action("save", "submit", "Take over what is in the form", "apply", "ctrl+s"),
    Action("cursor.choose", "submit", "Take over what is in the form"),
    LEAVE,
)
PATCH = (
    Action("", "", "Choose the part", "part", "tab ←→"),
    Action("help", "app.help", "What is shown here", "help", "F1"),
    Action("cursor.choose", "submit", "Patch", "patch", "enter"),
    LEAVE,
)
READER = (
    SCROLL_SHOWN,
    Action("quit", "leave", "Close the text"),
    Action("cursor.choose", "leave", "Close the text"),
    CLOSE,
)
CUTS = (Action("vocabulary.open", "add", "Add another vocabulary", "add a vocabulary", "v"), CLOSE)
HELP_PAGE = (Action("help", "leave", "Close the help"), SCROLL_SHOWN, CLOSE)
SOFTMAX = (
    Action("cursor.wider", "raise(1)", "Raise all scores by 10", "raise, lower the scores", "+ -"),
    Action("cursor.narrower", "raise(-1)", "Lower all scores by 10"),
    Action("breaks", "break", "Raise the scores until the naive softmax breaks, and back", "break it, mend it", "!"),
    LEAVE,
)
SCORE = (Action("", "", "Higher or lower temperature", "temperature", "+ -"), *READER)
PAGE = (
    Action("cursor.up", "scroll('up')", "A line up"),
    Action("cursor.down", "scroll('down')", "A line down"),
    Action("cursor.page-up", "scroll('page_up')", "A page up"),
    Action("cursor.page-down", "scroll('page_down')", "A page down"),
    Action("step.next", "scroll('page_down')", "The next page"),
    Action("cursor.top", "scroll('home')", "To the top"),
    Action("cursor.bottom", "scroll('end')", "To the bottom"),
)
CHOICE = (
    Action("cursor.right", "turn(1)", "The next value"),
    Action("cursor.left", "turn(-1)", "The value before"),
    Action("step.next", "turn(1)", "The next value"),
)
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
    Action("", "", "Show what is right; then go on", "reveal, then go on", "enter"),
)
INSIDE = (
    Action("", "", "Follow the term to the cell that it was read from", "follow", "enter"),
    Action("second", "second", "Follow the second factor of a product", "second factor", ";"),
    Action("step.next", "step(1)", "The same cell of the next step", "next step", "space"),
    Action("step.back", "step(-1)", "The same cell of the step before", "back", "backspace"),
    Action("cursor.left", "cell(-1)", "The cell before", "cell", "← →"),
    Action("cursor.right", "cell(1)", "The next cell"),
    Action("head.next", "head(1)", "The next head", "head", "[ ]"),
    Action("head.back", "head(-1)", "The head before"),
    Action("quit", "leave", "Out, to the cell that is looked into", "out, here", "q"),
    HELP,
    Action("back", "back", "Back to where it was followed from; then out", "back", "esc"),
)
SENTENCE = (
    Action("cursor.choose", "edit", "Edit the sentence"),
    Action("cursor.left", "token(-1)", "The word before"),
    Action("cursor.right", "token(1)", "The next word"),
)
WHOLE = (
    Action("cursor.left", "box(-1, 0)", "The box before"),
    Action("cursor.right", "box(1, 0)", "The next box"),
    Action("cursor.up", "box(0, -1)", "The box above"),
    Action("cursor.down", "box(0, 1)", "The box below"),
    Action("cursor.choose", "choose", "Look inside: the step in full"),
)
CELL = (
    Action("order", "order", "Terms in order, or the largest first"),
    Action("second", "follow_second", "Follow the second factor of a product"),
)
TEMPERATURE = (
    Action("cursor.wider", "warmer(1)", "Higher temperature"),
    Action("cursor.narrower", "warmer(-1)", "Lower temperature"),
)
VOCABULARY = (Action("find", "search", "Find a word in the vocabulary"),)

SCREENS: Mapping[str, tuple[Action, ...]] = {
    "main": ACTIONS,
    "overview": OVERVIEW,
    "all heads": HEADS,
    "links": LINKS,
    "rollout": ROLLOUT,
    "lens": LENS,
    "similar": SIMILAR,
    "ablation": ABLATION,
    "patching": PATCHING,
    "circuits": CIRCUITS,
    "survey": SURVEY,
    "examples": EXAMPLES,
    "checkpoints": CHECKPOINTS,
    "train": TRAIN,
    "generate": GENERATE,
    "exercises": EXERCISES,
    "arcs": ARCS,
    "breaks": BREAKING,
    "cuts": CUTS,
    "softmax": SOFTMAX,
    "patch": PATCH,
    "dialog": DIALOG,
    "prompt": PROMPT,
    "pick": PICK,
    "compare": COMPARE,
    "open": OPEN,
    "form": FORM,
    "reader": READER,
    "help": HELP_PAGE,
    "page": PAGE,
    "choice": CHOICE,
    "tour": TOUR,
    "predict": PREDICT,
    "cell": CELL,
    "inside": INSIDE,
    "sentence": SENTENCE,
    "whole": WHOLE,
    "words": TEMPERATURE,
    "vocabulary": VOCABULARY,
}
"""Every screen, and every part of one that has keys of its own."""
