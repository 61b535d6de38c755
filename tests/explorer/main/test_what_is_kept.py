"""Memory of the explorer: how much it keeps of what it has shown."""

from __future__ import annotations

import gc
import weakref

from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.steps import step_lines
from tui_transformer.model import Model
from tui_transformer.session.whole.layer_norms import rungs
from tui_transformer.views.whole import bands


def test_nothing_keeps_a_program_whose_steps_were_listed_and_drawn():
    whole = Model.load("encoder").trace("the cat").program
    program = Program(whole.steps, whole.aliases, whole.weights, whole.givens)
    stops = tuple(step.name for step in program.steps)
    step_lines(program, stops, stops[0])
    bands(program, stops[0])
    rungs(program)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
