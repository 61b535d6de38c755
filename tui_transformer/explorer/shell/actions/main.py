"""Actions of the main screen, of its panes, and its line of keys."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.explorer.shell.actions.dialogs import ACROSS, CHOOSE, EVERY_WAY, HEAD, HELP, LAYER, UP_DOWN, ZOOM
from tui_transformer.explorer.shell.keys import IN_MENUS, MENUS, Action, in_menu
from tui_transformer.records import replace


def _opens(name: str, title: str, short: str = "") -> Action:
    """What opens the tool of its own name."""
    return Action(name, f"open('{name.replace('.', '-')}')", title, short)


def _go(name: str, how: str, title: str, short: str = "", shown: str = "", of: str = "") -> Action:
    """What the navigation of the main screen does."""
    return Action(name, f"navigate({how})", title, short, shown, of)


_ACTIONS = (
    Action("step.next", "step('operation', 1)", "Next step", "next", "space"),
    Action("step.back", "step('operation', -1)", "Previous step", "back", "backspace"),
    _go("head.next", "'turn_head', 1", "Next head", "head", "[ ]", HEAD),
    _go("head.back", "'turn_head', -1", "Previous head"),
    Action("layer.next", "step('layer', 1)", "Next layer", "layer", "{ }", LAYER),
    Action("layer.back", "step('layer', -1)", "Previous layer"),
    Action("sublayer.next", "step('sublayer', 1)", "Next sublayer", "sublayer", of="sublayer.next sublayer.back"),
    Action("sublayer.back", "step('sublayer', -1)", "Previous sublayer", "previous sublayer"),
    *(Action(name, f"menu('{name}')", f"Menu: {menu.title}", menu.title) for name, menu in MENUS.items()),
    Action("sentence.edit", "edit('sentence')", "Edit the sentence", "sentence"),
    Action("find", "find", "Find a token of the sentence, a step, a word of the vocabulary", "find"),
    Action("match.next", "match(1)", "Next match of what was looked for"),
    Action("match.back", "match(-1)", "Match before"),
    Action("target.edit", "edit('target')", "Edit the target of an encoder–decoder", "target"),
    _go("vocabulary.open", "'follow_vocabulary'", "The vocabulary; while it is shown, another one", "vocabulary"),
    _opens("cuts", "How several vocabularies cut the sentence", "vocabularies"),
    Action("help", "app.help", "Help on the focused pane", "help", "?"),
    Action("quit", "app.quit", "Quit", "quit", "q"),
    Action("backward", "backward", "Backward: gradients from the loss back, and forward again", "backward"),
    _opens("targets", "Set the targets of the loss", "targets"),
    _opens("compare", "Compare with another trace, and end it", "compare"),
    _opens("compare.sentence", "Compare with another sentence", "a sentence"),
    _opens("compare.dump", "Compare with a dump: what another program computed", "a dump"),
    _opens("compare.checkpoint", "Compare with a checkpoint; where compared, end it", "a checkpoint, or end"),
    _opens("compare.precision", "Compare with the same in float64, or float32", "precision"),
    _go("compare.first", "'follow_first_difference'", "Go to the first step that differs", "first difference"),
    _go("overlay", "'next_shown'", "Values, gradient or other trace, difference", "beside"),
    _go("weights", "'follow_weights'", "Show the weight of this step, and back", "weights"),
    Action("cell.edit", "edit('cell')", "Edit the cell, or any step or weight: += 1, *= 0.5, = mean", "edit", "e"),
    Action("ablate", "open('ablation')", "Ablate: what each head, layer, position or neuron does", "ablate"),
    _opens("ablate.head", "Ablate this head (zero)", "this head"),
    _opens("ablate.head.mean", "Ablate this head (mean)"),
    _opens("ablate.position", "Ablate this position (zero)"),
    _opens("ablate.position.mean", "Ablate this position (mean)"),
    _opens("patch", "Patch this step from another sentence", "patch"),
    _opens("patching", "Tables of patches: every position, head or layer from another sentence", "tables of patches"),
    _opens("circuits", "Circuits of weights: OV, QK, composition of heads", "circuits"),
    _opens("terms", "Direct logit attribution: what every head, layer and embedding writes", "what heads write"),
    _opens("inputs", "What every token adds: gradient × input, integrated gradients", "what tokens add"),
    _opens("measure", "Measure ablations and patches by a logit, a difference, KL, the loss", "measured by"),
    Action("undo", "history('undo')", "Undo the last change", "undo", "u"),
    Action("redo", "history('redo')", "Redo"),
    _opens("settings", "Settings: sizes, seed, masks, device", "settings"),
    _opens("draw.again", "Draw again: other random weights, from the next seed", "draw again"),
    _opens("breaks", "Break it: without ÷ √d_k, positions, mask …, and what each changes", "break it"),
    Action("heads.all", "open('heads')", "All heads at once, by layer or by a measure", "all heads"),
    _opens("links", "The strongest links of attention", "links"),
    _opens("rollout", "Attention rollout: what reached which token", "rollout"),
    _opens("poster", "Poster: the way back from this number to the words", "poster"),
    _opens("features", "Features of a dictionary: the strongest, and their words", "features"),
    _opens("graph", "Attribution graph: what leads to the answer, and by what", "what led to it"),
    _opens("probes", "Probes: which labels of texts are read from every layer", "probes"),
    _opens("arcs", "Arcs: who looks at whom, as lines between words", "arcs"),
    _opens("lens", "Logit lens: which word each layer spells, and each head raises", "lens"),
    _opens("similar", "Compare with another sentence: cosine, and what every pair of tokens gives", "how alike"),
    _opens("nearest", "Words nearest to a word, or to king - man + woman", "nearest words"),
    _opens("survey", "Survey: heads by a measure over many texts, and the strongest examples", "survey"),
    _opens("score", "How likely the text is: surprise of every token, perplexity", "likelihood"),
    _opens("softmax", "Softmax of this row, naive and safe; break the naive one", "softmax"),
    _opens("item.next", "Next sentence of the batch", "next of batch"),
    _opens("item.back", "Sentence of the batch before", "batch before"),
    _go("chart.next", "'next_chart'", "Next chart", "chart"),
    _go("scale", "'share_scale'", "One colour scale for all layers, or one a step", "scale"),
    _go("hide.special", "'hide', 'special'", "Hide special tokens in attention, the rest renormalised", "hide special"),
    _go("hide.first", "'hide', 'first'", "Hide the first token in attention, the rest renormalised", "hide first"),
    Action("export", "export", "Export what is shown: CSV, JSON, NPZ, SVG or text", "export"),
    Action("copy.cell", "copy('cell')", "Copy the cell"),
    Action("copy.row", "copy('row')", "Copy the row", "copy row"),
    _opens("generate", "Write on, token by token, with the KV cache", "write"),
    _opens("train", "Train a model, and watch it learn", "train"),
    _opens("checkpoints", "Step through the checkpoints of a training run", "checkpoints"),
    Action("tour", "tour", "Guided tour", "tour", "t"),
    Action("bookmark", "bookmark", "Bookmark: append this place to a lecture, which --tour opens", "bookmark"),
    _opens("exercises", "Exercises: write a transformer, step by step", "exercises"),
    Action("open", "open('open')", "Open another model: trained, recent, on this computer, a path", "open", "o"),
    Action("go", "go", "Go to a step, a layer or a number", "go to", ":"),
    Action("predict", "predict", "Predict, then reveal: a question on this step", "predict", "p"),
    _go("whole", "'turn_whole'", "The whole on one screen, and back", "whole", "0"),
    _go("zoom", "'zoom'", "Zoom: this pane in the whole terminal, and back", "zoom"),
    Action("messages", "app.messages", "Messages: what was said", "messages"),
    Action("theme", "app.next_theme", "Dark or light", "dark or light"),
    Action("record", "record", "Record what is shown, and end it: a film, a moving picture, a page", "record"),
    Action("keys", "app.choose_keys", "Keys: menus, or the classic ones", "keys"),
    Action("pane.next", "next_pane(1)", "Next pane"),
    Action("pane.back", "next_pane(-1)", "Previous pane"),
    *(
        Action(f"pane.{pane}", f"pane('{pane}')", f"Go to the {pane}")
        for pane in ("sentence", "steps", "heads", "matrix", "cell", "chart")
    ),
    Action("back", "back", "Back one level; ends a computation"),
    Action("suspend", "app.suspend_process", "Suspend (fg comes back)"),
    Action("cursor.top", "first_row", "First row", "first row"),
)
ACTIONS = tuple(
    replace(each, direct=False, shown=in_menu(each.id) if each.id == "overlay" else "") if each.id in IN_MENUS else each
    for each in _ACTIONS
)
"""Those of the main screen, which has menus: what is in one has no key of its own, and is not in the line of keys."""

CARD: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Go": (
        ("step.next step.back", "next, previous step"),
        (EVERY_WAY, "the cell"),
        (HEAD, "head"),
        (LAYER, "same step, other layer"),
        ("go", "to a step"),
        ("find", "find"),
        ("match.next match.back", "next, previous match"),
        ("back", "out, back"),
    ),
    "Look": (
        (CHOOSE, "look inside"),
        ("pane.next", "next pane"),
        ("pane.sentence", "to 6: a pane"),
        ("whole", "the whole"),
        ("zoom", "this pane alone"),
        ("tour", "a tour"),
        ("predict", "predict"),
        ("help", "this card"),
    ),
    "Change": (
        ("sentence.edit", "the sentence"),
        ("cell.edit", "the cell"),
        ("undo redo", "undo, redo"),
        ("copy.cell", "copy the cell"),
        ("open", "another model"),
        ("suspend", "suspend"),
        ("ctrl+p", "everything by name"),
        ("quit", "quit"),
    ),
}
"""The plain keys, in groups, as the card has them."""

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
        Action("", "", "Terms in order, or the largest first", "order", of="terms.order"),
    ),
    "chart": (Action("", "navigate('next_chart')", "The next chart", "next chart", "g d", "chart.next"),),
    "vocabulary": (
        Action("", "", "The word's row of the embedding", "its vector", "enter", CHOOSE),
        Action("", "", "Find a word", "find", of="find"),
        Action(
            "", "navigate('follow_vocabulary')", "Another vocabulary", "another vocabulary", "g v", "vocabulary.open"
        ),
    ),
    "text": (Action("", "", "Higher or lower temperature", "temperature", "+ -", ZOOM),),
    "tour": (
        Action("", "", "The next stop", "next stop", "enter", CHOOSE),
        Action("", "", "The stop before, the next stop", "stop", "← →", ACROSS),
        Action("", "", "Leave the tour", "leave the tour", "esc", "back"),
    ),
    "last stop": (
        Action("", "", "The end of the tour", "end", "enter", CHOOSE),
        Action("", "", "The stop before", "back", "←", "cursor.left"),
        Action("", "", "Leave the tour", "leave the tour", "esc", "back"),
    ),
    "question": (
        Action("", "", "Choose an answer, by its number or the arrows", "choose", "↑ ↓", UP_DOWN),
        Action("", "", "Show what is right", "answer", "enter", CHOOSE),
        Action("", "", "Leave the question open, and show the stop", "skip", "→", "cursor.right"),
        Action("", "", "Leave the tour", "leave the tour", "esc", "back"),
    ),
}
"""Actions of the focused pane, or of a tour's card, its last stop and its question, which come first in the line."""

ON_CARD = frozenset({"step.next", "step.back", "tour"})
"""Actions whose keys the card of a tour has for itself."""

CELL_COUNTED = Action("", "", "The cell beside", "cell", of="h j k l")
COUNTED = (
    *(
        replace(each, action="")  # a click types the key, which is counted
        for each in ACTIONS
        if each.id in ("step.next", "step.back", "head.next", "layer.next", "sublayer.next")
    ),
    CELL_COUNTED,
    Action("", "", "No count", "no count", "esc", "back"),
)
"""The line of keys while a count is typed."""

ALWAYS = ("overlay", "help", "quit")
"""Actions that the line of keys ends with, however short it is; the first only where there is an overlay."""

MENU_KEYS = Action("", "", "Menus, which show themselves", "menus", of=" ".join(MENUS))
"""The keys of all menus together, where there is no room for each."""

KEY_LINE = (
    "step.next",
    *MENUS,
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
    "find",
)
"""Actions before those, as far as there is room: the most useful first."""

TOUR = (
    Action("cursor.right", "ask('Next')", "The next stop", "next", "→"),
    Action("step.next", "ask('Next')", "The next stop"),
    Action("cursor.choose", "ask('Answered')", "What is chosen is the answer; without a question the next stop"),
    Action("cursor.up", "turn(-1)", "The answer before; without a question the lines above"),
    Action("cursor.down", "turn(1)", "The next answer; without a question the lines below"),
    Action("cursor.left", "ask('Back')", "The stop before", "back", "←"),
    Action("step.back", "ask('Back')", "The stop before"),
    Action("back", "ask('Left')", "Leave the tour", "leave", "esc"),
)
TOUR_AFTER = (Action("", "", "The tour that goes on from here", "next tour", "t", "tour"),)
"""Of the card at the last stop, where another tour goes on."""

ASKED_BY_TOUR = FOCUSED["question"]
"""Of the card while its question is open."""

PREDICT = (
    Action("", "", "Choose an answer, or type another", "choose, or type", "↑↓", "up down"),
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
    Action("terms.order", "screen.navigate('turn_order')", "Terms in order, or the largest first"),
    Action("second", "follow_second", "Follow the second factor of a product"),
)
TEMPERATURE = (
    Action("cursor.wider", "screen.navigate('warm', 1)", "Higher temperature"),
    Action("cursor.narrower", "screen.navigate('warm', -1)", "Lower temperature"),
)
VOCABULARY = (Action("find", "search", "Find a word in the vocabulary"),)
