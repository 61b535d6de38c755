"""Actions of the tools, each a screen of its own."""

from __future__ import annotations

from tui_transformer.explorer.shell.actions.common import (
    A_HEAD,
    ACROSS,
    CELL_SHOWN,
    CHOOSE,
    CHOOSE_SHOWN,
    HEAD,
    HELP,
    HIDING,
    LAYER,
    SUSPEND,
    THEME,
    WIDTH_SHOWN,
    ZOOM,
)
from tui_transformer.explorer.shell.keys import Action

OVERVIEW = (
    HELP,
    Action("back", "leave", "Back to the main screen", "back", "esc"),
    Action("quit", "leave", "Back to the main screen"),
)
HEADS = (
    Action("", "", "Open the head in the main screen", "open", "enter", CHOOSE),
    Action("order", "order", "Order by the next measure", "order", "r"),
    Action("reverse", "reverse", "Reverse the order", "reverse", "^r"),
    *HIDING,
    Action("kind", "group", "The next kind of attention: encoder, decoder, cross", "source", "f"),
    Action("", "", "Larger or smaller pictures", "size", "+ -", ZOOM),
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
    Action("layer.next", "layer(1)", "Up to the next layer", "layer", "{ }", LAYER),
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
LENS = (
    Action("kind", "kind", "By layer, or what every head raises", "by layer, head", "f"),
    Action("mean", "mean", "By head: less its mean over the tokens, or not", "less mean", "M"),
    Action("open", "tuned", "The tuned lens, fitted on the lines of a text file, or the plain one", "tuned", "o"),
    CELL_SHOWN,
    CHOOSE_SHOWN,
    WIDTH_SHOWN,
)
ABLATION = (
    Action("", "", "Make the ablation in the main screen", "ablate", "enter", CHOOSE),
    Action("step.on", "go_on", "Go on where it was ended", "go on", "N"),
    Action("kind", "scope", "Heads, layers, positions, neurons", "of what", "f"),
    Action("layer.next", "place(1)", "The next layer", "layer", "{ }", LAYER),
    Action("layer.back", "place(-1)", "The layer before"),
    Action("mean", "mean", "Set to 0, or to the mean over the positions", "0 or mean", "M"),
    Action("order", "reverse", "Largest or smallest effect first", "order", "r"),
    Action("measure", "measure", "Measure by a logit, a difference, KL, the loss", "measure", "#"),
    Action("answer", "positions", "Where the model answers, or all positions", "positions", "*"),
    Action("back", "end", "End the computation; then leave"),
)
SURVEY = (
    Action("", "", "The texts in which it is strongest", "strongest texts", "enter", CHOOSE),
    Action("order", "order", "The next measure", "measure", "r"),
    Action("find", "find", "A measure by its name", "by name", "^f"),
    Action("reverse", "reverse", "Reverse the order", "reverse", "^r"),
    Action("kind", "part", "The next part: heads, neurons, the logit lens", "part", "f"),
)
EXAMPLES = (Action("", "", "Open the text in the main screen, where it is strongest", "open", "enter", CHOOSE),)
PATCHING = (
    Action("", "", "Patch the cell in the main screen", "patch", "enter", CHOOSE),
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
    Action("head.next", "head(1)", "The next head", "head", "[ ]", HEAD),
    Action("head.back", "head(-1)", "The head before"),
    Action("layer.next", "layer(1)", "The same head of the next layer", "layer", "{ }", LAYER),
    Action("layer.back", "layer(-1)", "The same head of the layer before"),
    Action("", "", "The head in the main screen", "go there", "enter", CHOOSE),
    CELL_SHOWN,
    WIDTH_SHOWN,
)
TERMS = (
    Action("order", "order", "The largest first, or in the order of the data", "order", "r"),
    Action("kind", "kind", "Feed-forward layers whole, or neuron by neuron", "layers, neurons", "f"),
    Action("measure", "measure", "The word whose logit it is, or two", "words", "#"),
    Action("", "", "To the step of the term", "go there", "enter"),
)
CHECKPOINTS = (
    Action("step.next", "step(1)", "The next checkpoint", "checkpoint", "← →", ACROSS),
    Action("step.back", "step(-1)", "The checkpoint before"),
    Action("cursor.right", "step(1)", "The next checkpoint"),
    Action("cursor.left", "step(-1)", "The checkpoint before"),
    *(Action(f"cursor.{first}", "step(-1000000)", "The first checkpoint") for first in ("top", "row-start")),
    *(Action(f"cursor.{last}", "step(1000000)", "The last checkpoint") for last in ("bottom", "row-end")),
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
    Action(
        "cursor.wider", "scale_rate(2)", "Double the learning rate", "rate ×2 ÷2", "+ -", "cursor.wider cursor.narrower"
    ),
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
    Action("step.back", "backward", "Back to the token before", "back", "←", "cursor.left"),
    Action("cursor.left", "backward", "Back to the token before"),
    Action("", "", "Choose the token by hand", "by hand", "↑↓ enter", "cursor.up cursor.down cursor.choose"),
    Action("settings", "settings", "How the next token is chosen", "settings", ","),
    Action("generate.temperature", "settings('temperature')", "Set the temperature"),
    Action("generate.top-k", "settings('top_k')", "Set top-k"),
    Action("generate.top-p", "settings('top_p')", "Set top-p"),
    Action("generate.seed", "settings('seed')", "Set the seed"),
    Action("sentence.edit", "sentence", "Edit the prompt, or the source", "prompt", "/"),
    Action("undo", "undo", "Undo: the text as it was before a choice", "undo", "u"),
    Action("redo", "redo", "Redo"),
    Action("layer.next", "other_layer(1)", "Cache of the next layer", "layer", "{ }", LAYER),
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
    Action(
        "",
        "",
        "Open its step in the main screen, on its model and sentence",
        "open its step",
        "enter x",
        "cursor.choose export",
    ),
    Action("explore", "explore", "Take it to the main screen: its model, sentence and step"),
    Action("export", "explore", "Take it out of the list, to the main screen"),
)
ARCS = (
    Action("", "", "Open the strongest cell of the query in the main screen", "open", "enter", CHOOSE),
    Action("kind", "source", "One head, the strongest of all, the rollout", "head, all, rollout", "f"),
    Action("head.next", "head(1)", "The next head", "head", "[ ]", HEAD),
    Action("head.back", "head(-1)", "The head before"),
    Action("layer.next", "layer(1)", "The next attention", "layer", "{ }", LAYER),
    Action("layer.back", "layer(-1)", "The attention before"),
)
BREAKING = (
    Action("", "", "Break it, or mend it", "switch", "enter", CHOOSE),
    Action("mend", "mend", "Mend everything"),
    Action("undo", "turn_back('undo')", "Undo the last switch", "undo", "u"),
    Action("redo", "turn_back('redo')", "Redo"),
)
