"""From an example of a survey to the main screen: its model, its text, and the cell where it is strongest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.survey.table import Example
from tui_transformer.engine.parts import layer_outputs
from tui_transformer.engine.targets import KINDS
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.port import Port
from tui_transformer.model import Model
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import PLAIN, ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import Place

CONTEXT = "context"


def open_example(port: Port, example: Example, then: Callable[[], None]) -> None:
    """Explore the text of an example; undo goes back.

    Args:
        port: The explorer.
        example: What is opened.
        then: Called before it is shown, so that screens in front can leave.
    """

    def show(place: tuple[Session, Position]) -> None:
        then()
        port.change(*place)

    before = port.session
    port.ask("example", AT_ONCE + 1, lambda task: _opened(before, example, task.report), show)


def _opened(before: Session, example: Example, report: Callable[[str], None]) -> tuple[Session, Position]:
    session = session_of(before, example)
    session.trace.compute(before=lambda step: report(step.name))
    return session, position_of(session.trace, example)


def session_of(before: Session, example: Example) -> Session:
    """The text, alone, on the model of the survey; that is loaded where another is open.

    Raises:
        InputError: There is no such model any more.
    """
    if not is_of(before.model, example):
        named = example.model, example.vocab or None, before.model.backend.device, example.dtype, example.seed
        return open_session(ModelOptions(*named, budget=before.budget, cut=True), example.text, None)
    alone = replace(
        before,
        edits=(),
        cut=True,
        framing=PLAIN,
        batch=(),
        item=0,
        pair=None,
        mask=None,
        decoder_text="",
        decoder_ids=None,
        breaks=(),
        overlay=NOTHING,
        targets=None,
    )
    return alone.with_text(example.text)


def is_of(model: Model, example: Example) -> bool:
    """Whether a model is certainly the one of a survey: random weights and another vocabulary are loaded again."""
    words = model.vocabulary
    own = words is None or words.path is None or words.path.parent == model.folder
    if model.folder is None or example.vocab or not own or example.dtype != model.backend.dtype.name:
        return False
    other = find_model(example.model)
    return other is not None and other.folder.resolve() == model.folder.resolve()


def position_of(trace: Trace, example: Example) -> Position:
    """The cell where an example is strongest: of a head its row of weights, at the key with the largest.

    Raises:
        InputError: The model has no such head, neuron or layer.
    """
    if example.neuron is not None:
        return Position(_step(trace, "neuron", example), Place(0, example.position, example.neuron))
    if example.head is None:
        outputs = layer_outputs(trace.program)
        last = len(outputs) - 1
        output = outputs[last if example.layer is None else min(max(example.layer, 0), last)]
        return Position(output, Place(0, example.position, 0))
    if example.measure == CONTEXT:
        return Position(_step(trace, "head", example), Place(example.head, example.position, 0))
    attention = next((each for each in attentions(trace.program, example.part) if each.layer == example.layer), None)
    if attention is None or example.head >= attention.heads:
        raise InputError(f"the model has no {example.part} of layer {example.layer} with a head {example.head}")
    row = min(example.position, attention.queries.size - 1)
    head = range(example.head, example.head + 1)
    weights = trace.window(attention.name, (head, range(row, row + 1), range(attention.keys.size)))
    return Position(attention.name, Place(example.head, row, int(np.argmax(weights))))


def _step(trace: Trace, kind: str, example: Example) -> str:
    stack, _, sublayer = example.part.partition(" ")
    place = f"{stack}.{example.layer}.{sublayer.replace('-', '_')}"
    return KINDS[kind].steps(trace.program, place)[0]
