"""The whole as bands of boxes: every step of what is shown is in one box, in order, and no column is left out."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer import Model
from tui_transformer.views.step_view import pooled
from tui_transformer.views.whole import bands, stacks_of

FAMILIES = sorted(path.name for path in REFERENCES.iterdir() if (path / "config.json").exists())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_the_layers_that_are_shown_is_in_one_box(family: str) -> None:
    model = Model.load(REFERENCES / family)
    program = model.program(3, 2) if model.has_decoder else model.program(3)
    outside = {step.name for step in program.steps if not step.layer.rpartition(".")[2].isdigit()}
    for layer in chain(*stacks_of(program)):
        stop = next(step.name for step in program.steps if step.layer == layer)
        shown = bands(program, stop)
        steps = [step for band in shown for step in band.steps]
        assert len(steps) == len(set(steps))
        own = {step.name for step in program.steps if step.layer == layer}
        assert own <= set(steps)
        assert outside <= set(steps)
    # a box shows its last step but joined heads
    for band in bands(program, program.steps[0].name):
        for box in band.boxes:
            others = [step for step in box.steps if not step.endswith(".concat")]
            assert box.last == others[-1]


def test_what_is_shown_of_a_stack_is_one_layer_and_the_same_of_both() -> None:
    program = Model.load("dates").trace("May 3, 2021").program
    names = [band.name for band in bands(program, "encoder.1.self_attention.weights")]
    assert "encoder.1.self_attention" in names
    assert "encoder.0.self_attention" not in names
    assert "decoder.1.cross_attention" in names


def test_the_bands_of_the_tutorials_encoder_are_those_of_the_paper() -> None:
    program = Model.load("question").trace("where did the old sailor hide the map ?").program
    shown = bands(program, "tokens")
    names = ["embedding", "encoder.0.self_attention", "encoder.0.feed_forward", "output"]
    assert [band.name for band in shown] == names
    first = {"tokens": "", "embedding.tokens": "▸", "embedding.positions": "+", "embedding.output": "="}
    assert [(box.last, box.sign) for box in shown[0].boxes] == [*first.items()]


def test_a_narrow_picture_keeps_the_entry_of_largest_magnitude_of_its_neighbours() -> None:
    trace = Model.load("question").trace("where did the old sailor hide the map ?")
    name = "encoder.0.feed_forward.hidden"
    whole = trace[name]
    narrow = pooled(whole[2:6], 10, axis=1)
    assert narrow.shape == (4, 10)
    for row in range(4):
        for column in range(10):
            start, stop = 128 * column // 10, 128 * (column + 1) // 10
            cells = whole[2 + row, start:stop]
            assert narrow[row, column] == cells[np.argmax(np.abs(cells))]
