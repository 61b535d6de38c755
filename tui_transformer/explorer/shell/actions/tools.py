"""What the keys of every tool do: a row a screen, by the name that help and the list of keys have for it."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.actions.dialogs import ACROSS, CHOOSE, EVERY_WAY, HEAD, HELP, LAYER, ZOOM
from tui_transformer.explorer.shell.keys import Action

OVERVIEW = (
    HELP,
    Action("back", "leave", "Back to the main screen", "back", "esc"),
    Action("quit", "leave", "Back to the main screen"),
)
"""What every overview has besides its own."""

THEME = Action("theme", "app.next_theme", "Dark or light")
SUSPEND = Action("suspend", "app.suspend_process", "Suspend (fg comes back)")
CHOOSE_SHOWN = Action("", "", "Go to what is under the cursor", "go there", "enter", CHOOSE)
CELL_SHOWN = Action("", "", "Move the cell", "cell", "← ↑ ↓ →", EVERY_WAY)
WIDTH_SHOWN = Action("", "", "Wider or narrower cells", "width", "+ -", ZOOM)
CELLS = (CELL_SHOWN, WIDTH_SHOWN)
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
MEASURE = Action("measure", "measure", "Measure by a logit, a difference, KL, the loss", "measure")
HEADS = (
    Action("head.next", "head(1)", "The next head", "head", "[ ]", HEAD),
    Action("head.back", "head(-1)", "The head before"),
)
GO_ON = (
    Action("step.next", "go_on", "Go on where it was ended", "go on"),
    Action("step.on", "go_on", "Go on where it was ended", direct=False),
)
EXPLORE = Action("explore", "explore", "Explore it in the main screen", direct=False)
END = Action("back", "end", "End the computation; then leave")

TOOLS: Mapping[str, tuple[Action, ...]] = {
    "overview": OVERVIEW,
    "all heads": (
        Action("", "", "Open the head in the main screen", "open", of=CHOOSE),
        Action("order", "order", "Order by the next measure", "order"),
        Action("reverse", "reverse", "Reverse the order", "reverse"),
        *HIDING,
        Action("sentence.edit", "sentence", "Edit the sentence: everything follows every letter", "sentence"),
        Action("kind", "group", "The next kind of attention: encoder, decoder, cross", "source"),
        Action("", "", "Larger or smaller pictures", "size", of=ZOOM),
        Action("scale", "scale", "One colour scale for all heads, or one for each", "scale"),
    ),
    "links": (
        Action("arcs", "arcs", "The same as lines between words", "arcs"),
        CHOOSE_SHOWN,
        Action("kind", "scope", "All heads, the layer, the head", "all, layer, head"),
        Action("hide.itself", "itself", "Links from a token to itself, shown or not", "to itself"),
        *HIDING,
    ),
    "rollout": (
        Action("arcs", "arcs", "The same as lines between words", "arcs"),
        Action("layer.next", "layer(1)", "Up to the next layer", "layer", "{ }", LAYER),
        Action("layer.back", "layer(-1)", "Up to the layer before"),
        Action("kind", "stack", "Encoder or decoder", "encoder, decoder"),
        *CELLS,
    ),
    "features": (
        Action("cursor.right", "token(1)", "The next token", "token", of=ACROSS),
        Action("cursor.left", "token(-1)", "The token before"),
        Action("", "", "The feature's cell in the main screen", "go there", of=CHOOSE),
        Action("layer.next", "place", "The next step that has features", "step", "}"),
    ),
    "graph": (
        Action("cursor.right", "into", "What leads to the node under the cursor", "in and back", of=ACROSS),
        Action("cursor.left", "back", "Back to the node that it leads to"),
        Action("", "", "The node's cell in the main screen", "go there", of=CHOOSE),
        Action("kind", "kind", "Feed-forward layers whole, or their strongest neurons", "layers, neurons"),
        Action("measure", "measure", "The words whose logits lead back", "words"),
        END,
    ),
    "probes": (
        CHOOSE_SHOWN,
        Action("open", "file", "Another file of texts with labels", "texts"),
        Action("kind", "kind", "Ridge or logistic regression, difference of means", "which probe"),
        Action("export", "write", "Write the direction: NPY, as steering takes it", "direction"),
        *GO_ON,
        *CELLS,
        END,
    ),
    "poster": (
        Action("", "", "The cell in the main screen", "go there", of=CHOOSE),
        Action("cursor.wider", "levels(1)", "One level further back", "levels", "+ -", ZOOM),
        Action("cursor.narrower", "levels(-1)", "One level less"),
        Action("export", "export", "Write the poster: SVG, PNG or text", "write"),
    ),
    "lens": (
        Action("kind", "kind", "By layer, or what every head raises", "by layer, head"),
        Action("mean", "mean", "By head: less its mean over the tokens, or not", "less mean"),
        Action("open", "tuned", "The tuned lens, fitted on the lines of a text file, or the plain one", "tuned"),
        CELL_SHOWN,
        CHOOSE_SHOWN,
        WIDTH_SHOWN,
    ),
    "similar": (Action("sentence.edit", "sentence", "Compare with another sentence", "other sentence"), *CELLS),
    "ablation": (
        Action("", "", "Make the ablation in the main screen", "ablate", of=CHOOSE),
        *GO_ON,
        Action("kind", "scope", "Heads, layers, positions, neurons", "of what"),
        Action("layer.next", "place(1)", "The next layer", "layer", "{ }", LAYER),
        Action("layer.back", "place(-1)", "The layer before"),
        Action("mean", "mean", "Set to 0, or to the mean over the positions", "0 or mean"),
        Action("order", "reverse", "Largest or smallest effect first", "order"),
        MEASURE,
        Action("answer", "positions", "Where the model answers, or all positions", "positions"),
        END,
    ),
    "patching": (
        Action("", "", "Patch the cell in the main screen; of a path, go to its sender", "open", of=CHOOSE),
        Action("sentence.edit", "sentence", "Another sentence that values come from", "other sentence"),
        Action("kind", "kind", "Positions, heads, layers, paths", "of what"),
        Action("layer.next", "receivers(1)", "Of paths: the next kind of what they lead to", "to what", "{ }", LAYER),
        Action("layer.back", "receivers(-1)", "Of paths: the kind before"),
        MEASURE,
        Action("copy.cell", "copy_line", "Copy the line for the shell that makes this table", "shell line"),
        *GO_ON,
        *CELLS,
        END,
    ),
    "circuits": (
        Action("kind", "kind", "OV, QK, composition of all heads, W_Q, W_K, W_V, W_O", "which matrix"),
        *HEADS,
        Action("layer.next", "layer(1)", "The same head of the next layer", "layer", "{ }", LAYER),
        Action("layer.back", "layer(-1)", "The same head of the layer before"),
        Action("", "", "The head in the main screen", "go there", of=CHOOSE),
        *CELLS,
    ),
    "terms": (
        Action("order", "order", "The largest first, or in the order of the data", "order"),
        Action("kind", "kind", "Feed-forward layers whole, or neuron by neuron", "layers, neurons"),
        Action("measure", "measure", "The word whose logit it is, or two", "words"),
        Action("", "", "To the step of the term", "go there", of=CHOOSE),
    ),
    "survey": (
        Action("", "", "The texts in which it is strongest", "strongest texts", of=CHOOSE),
        Action("order", "order", "The next measure", "measure"),
        Action("find", "find", "A measure by its name", "by name"),
        Action("reverse", "reverse", "Reverse the order", "reverse"),
        Action("kind", "part", "The next part: heads, neurons, the logit lens", "part"),
    ),
    "examples": (Action("", "", "Open the text in the main screen, where it is strongest", "open", of=CHOOSE),),
    "checkpoints": (
        Action("step.next", "step(1)", "The next checkpoint", "checkpoint", of=ACROSS),
        Action("step.back", "step(-1)", "The checkpoint before"),
        Action("cursor.right", "step(1)", "The next checkpoint"),
        Action("cursor.left", "step(-1)", "The checkpoint before"),
        *(Action(f"cursor.{first}", "step(-1000000)", "The first checkpoint") for first in ("top", "row-start")),
        *(Action(f"cursor.{last}", "step(1000000)", "The last checkpoint") for last in ("bottom", "row-end")),
        *A_HEAD,
        Action("cursor.choose", "explore", "Explore this checkpoint", "explore"),
        EXPLORE,
        Action("compare", "compare", "Compare with the last checkpoint", "compare with the last"),
        Action("sentence.edit", "sentence", "Another sentence", "sentence"),
        Action("open", "run", "The checkpoints of another run", "run"),
    ),
    "train": (
        Action("step.on", "go_on", "Go on, or pause after the step", "train"),
        Action("step.next", "one", "One step: one batch, and wait", "one step"),
        Action("cursor.wider", "scale_rate(2)", "Double the learning rate", "rate ×2 ÷2", of=ZOOM),
        Action("cursor.narrower", "scale_rate(0.5)", "Halve the learning rate"),
        Action("cursor.choose", "explore", "Explore the model as it is", "explore"),
        EXPLORE,
        Action("pane.next", "other_part(1)", "The next part, where one is shown at a time"),
        Action("pane.back", "other_part(-1)", "The part before"),
        Action("settings", "rate", "Set the learning rate", "rate"),
        *A_HEAD,
        Action("export", "save", "Write a checkpoint now", "write it"),
        Action("save", "save", "Write a checkpoint now"),
        Action("open", "checkpoints", "Step through the checkpoints so far", "checkpoints"),
        Action("checkpoints", "checkpoints", "Step through the checkpoints so far", direct=False),
        Action("train.quit", "quit", "Save, and quit the program"),
        THEME,
        SUSPEND,
        HELP,
        Action("back", "leave", "Leave: training goes on, or pauses, or ends", "leave", "esc"),
        Action("quit", "leave", "Leave: training goes on, or pauses, or ends"),
    ),
    "generate": (
        Action("step.next", "forward", "Write the next token, or go on to it", "write"),
        Action("cursor.right", "forward", "Write the next token, or go on to it"),
        Action("step.on", "write_on", "Write on until the text ends; esc halts", "go on"),
        Action("cursor.wider", "steer(1)", "More of what is added; the text is written anew", "strength", of=ZOOM),
        Action("cursor.narrower", "steer(-1)", "Less of what is added"),
        Action("pane.next", "other_pane", "The list of tokens, or the cache", "cache"),
        Action("pane.back", "other_pane", "The list of tokens, or the cache"),
        Action("step.back", "backward", "Back to the token before", "back", of="cursor.left"),
        Action("cursor.left", "backward", "Back to the token before"),
        Action("", "", "Choose the token by hand", "by hand", "↑↓ enter", "cursor.up cursor.down cursor.choose"),
        Action("cell.edit", "direction", "Add a direction or a feature to a step: steering", "steer"),
        Action("settings", "settings", "How the next token is chosen", "settings"),
        Action("generate.temperature", "settings('temperature')", "Set the temperature"),
        Action("generate.top-k", "settings('top_k')", "Set top-k"),
        Action("generate.top-p", "settings('top_p')", "Set top-p"),
        Action("generate.seed", "settings('seed')", "Set the seed"),
        Action("sentence.edit", "sentence", "Edit the prompt, or the source", "prompt"),
        Action("copy.cell", "copy_line", "Copy the line for the shell that writes it", "shell line"),
        Action("undo", "turn_back('undo')", "Undo: the text as it was before a choice", "undo"),
        Action("redo", "turn_back('redo')", "Redo"),
        Action("layer.next", "other_layer(1)", "Cache of the next layer", "layer", "{ }", LAYER),
        Action("layer.back", "other_layer(-1)", "Cache of the layer before"),
        Action("open", "explore", "Open the text in the explorer", "explore"),
        EXPLORE,
        Action("export", "export", "Write the text to a file", "export"),
        THEME,
        SUSPEND,
        HELP,
        Action("back", "leave", "Halt; else back to the steps", "leave", "esc"),
        Action("quit", "leave", "Halt; else back to the steps"),
    ),
    "exercises": (
        Action(
            "",
            "",
            "Open its step in the main screen, on its model and sentence",
            "open its step",
            of=f"{CHOOSE} export",
        ),
        EXPLORE,
        Action("export", "explore", "Take it out of the list, to the main screen"),
    ),
    "arcs": (
        Action("", "", "Open the strongest cell of the query in the main screen", "open", of=CHOOSE),
        Action("sentence.edit", "sentence", "Edit the sentence: everything follows every letter", "sentence"),
        Action("kind", "source", "One head, the strongest of all, the rollout", "head, all, rollout"),
        *HEADS,
        Action("layer.next", "layer(1)", "The next attention", "layer", "{ }", LAYER),
        Action("layer.back", "layer(-1)", "The attention before"),
    ),
    "breaks": (
        Action("", "", "Break it with this number, or mend it", "switch", of=CHOOSE),
        Action("cursor.right", "slide(1)", "A larger number; the answer follows", "number", of=ACROSS),
        Action("cursor.left", "slide(-1)", "A smaller number"),
        Action("cursor.wider", "slide(1)", "A larger number"),
        Action("cursor.narrower", "slide(-1)", "A smaller number"),
        *HEADS,
        Action("layer.next", "head(0, 1)", "The same head of the next attention", "layer", "{ }", LAYER),
        Action("layer.back", "head(0, -1)", "The same head of the attention before"),
        Action("sentence.edit", "sentence", "Another sentence: at first one on which the break matters", "sentence"),
        Action("mend", "switch", "Mend everything"),
        *GO_ON,
        Action("undo", "turn_back('undo')", "Undo the last switch", "undo"),
        Action("redo", "turn_back('redo')", "Redo"),
        END,
    ),
}
