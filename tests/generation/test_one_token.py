"""A pass of one token does no more than it has to."""

from __future__ import annotations

import numpy as np
from reference import REFERENCES

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.ops import Mask
from tui_transformer.generation.one_token import Rooms
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

MODEL = Model.load(REFERENCES / "gpt2")
GREEDY = Settings(greedy=True, max_new_tokens=3)


def masked(monkeypatch) -> list[Mask]:
    """The masks that are made from now on."""
    made, forward = [], Mask.forward
    monkeypatch.setattr(Mask, "forward", lambda op, *given, **more: made.append(op) or forward(op, *given, **more))
    return made


def test_a_mask_that_hides_nothing_is_not_made(monkeypatch) -> None:
    writer = Writer(MODEL, GREEDY)
    state = writer.begin((4, 5, 6))
    made = masked(monkeypatch)
    writer.next(state)
    assert not made


def test_a_mask_that_hides_padding_is_made(monkeypatch) -> None:
    model = Model.load(REFERENCES / "bart")
    writer = Writer(model, GREEDY, source=(7, 9, 12, 33), mask=(1, 1, 1, 0))
    state = writer.begin([model.config.start_id or 0])
    made = masked(monkeypatch)
    writer.next(state)
    assert made


def test_arrays_that_grow_together_lie_in_one_piece() -> None:
    rooms, new = Rooms(numpy_backend(), 64, alike=2), np.ones((1, 2, 1, 3), np.float32)
    kept = {name: rooms.extended(name, np.zeros((1, 2, 4, 3), np.float32), new) for name in ("key", "value")}
    first, second = (rooms.rooms[name].memory for name in kept)
    assert first.base is second.base is not None
    longer = rooms.extended("key", kept["key"], 2 * new)
    assert np.shares_memory(longer, kept["key"])
    np.testing.assert_array_equal(longer[0, 0, :, 0], [0, 0, 0, 0, 1, 2])
    assert not np.shares_memory(first, second)
