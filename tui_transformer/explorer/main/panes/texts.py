"""The one-line texts of the main screen: title, crumbs, summary of the cell, panes, keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.edits import how_set
from tui_transformer.engine.gradient_explanation import GRADIENT
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Parameter, Softmax
from tui_transformer.explorer.main.panes.cell_lines import near_words, number
from tui_transformer.explorer.widgets.labels import Inks, spread
from tui_transformer.guide.texts import StepText, step_text
from tui_transformer.model.model import Model
from tui_transformer.session.edit_format import active, broken
from tui_transformer.session.open_session import model_name
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.tour_stop import offer
from tui_transformer.text.display import visible
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.views.inside.cell import short_name

SOFTMAX = Softmax().formula

NEAR, NEAR_WIDTH = 2, 32
"""Nearest words of the one line, and the columns that they have."""


def device(session: Session) -> str:
    """Library and precision: `NumPy float32`."""
    backend = session.model.backend
    return f"{backend.name} {backend.dtype}"


def vocabulary_name(model: Model, words: Vocabulary) -> str:
    """The name of a vocabulary: the model's name, where it lies in the model's folder."""
    own = model.folder is not None and words.path is not None and words.path.parent == model.folder
    return model.name if own else words.name


def where(session: Session, stop: str) -> str:
    """How far one is: `step 11 of 25`, or that a weight is looked at."""
    stops = session.stops
    return f"step {stops.index(stop) + 1} of {len(stops)}" if stop in stops else "beside the steps"


def state(session: Session, stop: str) -> str:
    """How far one is, and before it the edits, which way one goes, or what is compared."""
    changes = (broken(session), active(session.edits, session.base.program))
    edits = "".join(f"{visible(each)} · " for each in changes if each)
    return f"{edits}{_direction(session)}{where(session, stop)}"


def _direction(session: Session) -> str:
    if session.backward:
        return f"← backward · {_loss(session)}"
    if session.overlay.kind != "trace":
        return ""
    return f"beside {visible(session.overlay.label)} · " if session.comparison is not None else "comparing · "


def _loss(session: Session) -> str:
    if not session.went_back:
        return ""
    gradients = session.gradients
    return (
        f"{'loss' if gradients.start is None else visible(gradients.start.description)} {spoken(gradients.loss, 4)} · "
    )


def title(session: Session, state: str, spent: str, width: int, inks: Inks) -> Text:
    """Program, model, how far one is, device and time."""
    left = Text(" tui-transformer", inks.accent).append(f"   {model_name(session)}", inks.quiet)
    right = Text(state, inks.plain).append(f"{device(session)}{spent} ", inks.quiet)
    return spread(left, right, width)


def crumbs(session: Session, stop: str, scene: StepScene | None, width: int, inks: Inks) -> Text:
    """Layer ▸ sublayer ▸ step, as far as there is room, its formula; at the right the head and how far one is."""
    program = session.trace.program
    head = "" if scene is None or scene.view.heads < 2 else f"head {scene.place.head} of {scene.view.heads}  "
    way = f"← {_loss(session)}" if session.backward else ""
    broke = f"{broken(session)}  " if session.breaks else ""
    count = len(session.edits)
    edits = f"{count} edit{'s' * (count > 1)}  " if count else ""
    right = Text(
        f"{broke}{edits}{way}{head}{where(session, stop).removeprefix('step ').replace(' of ', '/')} ", inks.plain
    )
    name = f" {step_text(stop).title if stop in program.by_name else stop_title(session, stop)} "
    groups = _groups(session, stop)
    while groups and cell_len(f" {''.join(groups)}{name}") >= width - right.cell_len:
        groups.pop(0)
    line = Text(" ", inks.plain).append("".join(groups), inks.quiet).append(name, inks.marked)
    if scene is not None:
        of_gradient = scene.working is not None and scene.working.name.startswith(GRADIENT)
        formula = scene.working.formula if of_gradient and scene.working is not None else scene.view.formula
        line.append(f"  {formula}" if formula else "", inks.quiet)
    return spread(line, right, width)


def _groups(session: Session, stop: str) -> list[str]:
    program = session.trace.program
    if stop not in program.by_name:
        return []
    step = program.step(stop)
    return [f"{group_title(group)} ▸ " for group in dict.fromkeys((step.layer, step.sublayer)) if group != stop]


def group_title(group: str) -> str:
    """A layer or sublayer by its text, a layer with its number."""
    number_of = group.rpartition(".")[2]
    return step_text(group).label + (f" {number_of}" if number_of.isdigit() else "")


ROUNDING = 1e-3
"""How far from 1 a row of rounded shares may sum to."""


def scale_note(scene: StepScene) -> str:
    """Remarks on the colours."""
    if scene.hidden or scene.view.formula != SOFTMAX:
        return scene.hidden
    values = scene.tile.values
    whole, without_keys = values.shape[1] == scene.view.columns.size, np.isnan(values).all(axis=1)
    sums = np.nansum(values[~without_keys], axis=1) if whole else np.empty(0)
    if (abs(sums - 1) > ROUNDING).any():
        return f"rows sum to {spoken(sums.min(), 4)} to {spoken(sums.max(), 4)}"
    if scene.view.edited and not len(sums):
        return ""  # of rows that are not drawn whole nothing is known
    return "a row without a visible key sums to 0" if whole and without_keys.any() else "every row sums to 1"


def step_words(session: Session, stop: str) -> StepText:
    """The texts of a stop; a matrix that is given, and a weight, have their own."""
    program = session.trace.program
    if stop in program.by_name and isinstance(program.step(stop).op, Parameter):
        return step_text("given")
    return step_text("weight") if stop in program.weights else step_text(stop)


def stop_title(session: Session, stop: str) -> str:
    """The title of a stop: a step by its text, a weight by its name."""
    if stop in (VOCABULARY, TEXT, LOSS) or stop in session.trace.program.by_name:
        return step_text(stop).label
    return stop


def matrix_titles(session: Session, scene: StepScene, *, wide: bool, both: bool) -> tuple[str, ...]:
    """Name and shape of what the matrix pane shows; with label and head, where no other line says them.

    The longest comes first; the others are for panes that have no room for it.
    """
    view, shape = scene.view, shape_text(session.trace.program.shape(scene.view.name))
    label = stop_title(session, view.name)
    if not wide:
        return f"{view.name} · {shape}", view.name
    head = [f"head {scene.place.head} of {view.heads}"] if view.heads > 1 else []
    alone = () if both else ([label, view.name, *head, shape],)
    parts = (*alone, [view.name, *head, shape], [label, *head, shape], [label, *(head if both else [shape])])
    return tuple(dict.fromkeys(" · ".join(dict.fromkeys(part)) for part in parts))


def summary(session: Session, stop: str, scene: StepScene | None, inks: Inks, tour: str) -> Text:
    """The cell in one line, or the tour with its key; below what the step is, or how its gradient comes back."""
    line = Text(offer(session, stop, tour), inks.accent) if scene is None else _cell_line(session, scene, inks)
    meaning, *ways = tuple(_ways_back(session, stop)) or (step_words(session, stop).what,)
    return line.append(f"\n{' · '.join((*ways, meaning))}", inks.quiet)


def _cell_line(session: Session, scene: StepScene, inks: Inks) -> Text:
    """Row → column, value, formula, difference."""
    view, place = scene.view, scene.place
    sides = ((view.rows, place.row), (view.columns, place.column))
    row, column = (axis.label(index) if axis.name else "" for axis, index in sides)
    line = Text("", inks.plain).append(
        f"{row} → {column}" if row and column else row or column, inks.plain + Style(bold=True)
    )
    working = scene.working
    if working is not None:
        of = "∂loss " if working.name.startswith(GRADIENT) else ""
        line.append(f"  {of}{number(working.stored)}", inks.accent)
        for value in scene.values:
            line.append(f"  {value.symbol} {number(value.value)}", inks.plain)
        if not scene.values:
            line.append(f"  = {working.formula}", inks.quiet)
            line.append(f"   difference {number(working.difference, 2)}", inks.quiet)
        if edited := how_set(session.trace.edits, working.name, working.index):
            line.append(f"  {visible(edited)}", inks.accent)
        for i, near in enumerate(scene.near or ()):
            line.append(f"  {visible(near.of)} ≈ " if i else "  nearest ", inks.quiet)
            line.append(near_words(near.words[:NEAR], NEAR_WIDTH), inks.plain)
    return line


def tabs(panes: Mapping[str, int], active: str, inks: Inks) -> Text:
    """The panes with their digits, the active one in brackets."""
    line = Text(" ", inks.quiet)
    for name, digit in panes.items():
        label = f"{digit} {name}"
        line.append(f"[{label}]" if name == active else f" {label} ", inks.accent if name == active else inks.quiet)
        line.append(" ", inks.quiet)
    return line


def about(session: Session, stop: str, tour: str) -> str:
    """The tour with its key, where it is offered; meaning of a step, its purpose and what to look at, line by line."""
    words = step_words(session, stop)
    parts = (offer(session, stop, tour), *_ways_back(session, stop), words.what, words.why, words.look)
    return "\n".join(part for part in parts if part)


def _ways_back(session: Session, stop: str) -> Iterator[str]:
    """In the backward pass, what the gradient is and how it comes back through every step that reads the value."""
    program = session.trace.program
    if not session.backward or stop == LOSS or not session.went_back:
        return
    yield step_text("gradient").what
    gradients = session.gradients.values
    for step in program.readers(program.aliases.get(stop, stop)):
        if step.name in gradients and stop in gradients:
            yield f"From {short_name(step.name)}: {step.op.gradient_formula(step.inputs.index(stop))}"
