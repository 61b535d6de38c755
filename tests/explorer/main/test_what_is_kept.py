"""Memory of the explorer: how much it keeps of what it has shown."""

from __future__ import annotations

import gc
import weakref

from driving import WIDE, exploring

from tui_transformer.engine import parts
from tui_transformer.engine.program import Program
from tui_transformer.explorer.main.panes.steps import step_lines
from tui_transformer.model import Model
from tui_transformer.session.whole.layer_norms import rungs
from tui_transformer.views.whole import bands


def test_nothing_keeps_a_program_whose_steps_were_listed_and_drawn():
    whole = Model.load("encoder").trace("the cat").program
    program = Program(whole.steps, whole.aliases, whole.weights, whole.givens)
    stops = tuple(step.name for step in program.steps)
    step_lines(program, stops, "")
    bands(program, stops[0])
    rungs(program)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


async def test_traces_of_far_sentences_are_gone_before_any_look_through_all_objects():
    async with exploring(WIDE, model="encoder", text="the cat " * 200, whole=True) as explorer:
        explorer.parts.explored.near_bytes = 0
        traces = []
        gc.disable()
        try:
            for count in range(201, 205):
                explorer.parts.port.change(explorer.session.with_text("the cat " * count))
                traces.append(weakref.ref(explorer.session.trace))
                await explorer.settled()
            gone = [trace() is None for trace in traces]
        finally:
            gc.enable()
        assert gone == [True, True, True, False]


async def test_gradients_of_a_long_sentence_are_gone_once_another_is_read():
    async with exploring(WIDE, model="encoder", text="the cat " * 200) as explorer:
        explorer.parts.explored.near_bytes = 1 << 20
        small = explorer.session.with_text("the cat")
        await explorer.press("b")
        long = explorer.session
        assert long.went_back
        assert long.cache.held_bytes >= long.trace.held_bytes + long.gradients.held_bytes > long.trace.held_bytes
        await explorer.change(small)
        assert not long.went_back
        assert long.cache.held_bytes == 0


async def test_gradients_that_do_not_fit_are_refused_before_they_are_computed(monkeypatch):
    async with exploring(WIDE, model="encoder", text="the cat " * 20) as explorer:
        monkeypatch.setattr(parts, "available_memory", lambda: 1 << 10)
        await explorer.press("b")
        assert not explorer.session.went_back
        said = " ".join(explorer.text.split())
        assert "gradients of 40 tokens need" in said or "gradients of 40 tokens need" in " ".join(explorer.messages)
        monkeypatch.undo()
        await explorer.press("b", "b")
        assert explorer.session.went_back
