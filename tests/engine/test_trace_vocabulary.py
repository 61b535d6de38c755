"""A large vocabulary: logits and probabilities that do not fit the budget come back in windows, and are never whole."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from comparing import cut
from reference import REFERENCES

from tui_transformer.engine import parts
from tui_transformer.engine.backend import POOL
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.ops import Linear, Softmax, Unembed
from tui_transformer.engine.parts import BLOCK_CELLS
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.views.step_view import extremes

LOGITS, PROBABILITIES = "output.logits", "output.probabilities"
FAMILIES = ["bart", "bert", "gpt2", "llama", "marian", "qwen3", "t5", "vanilla-decoder"]
IDS = [2, 5, 3, 6, 4, 7, 1]
WORDS, LENGTH, WIDTH = 20_000, 128, 8


def traces(model: Model, block: int = BLOCK_CELLS) -> tuple[Trace, Trace]:
    """Kept whole, and dropped and made in blocks."""
    given = {"ids": IDS, "decoder_ids": [2, 3, 4] if model.has_decoder else None}
    return model.trace(**given), replace(model.trace(**given, budget=0), block=block)


@pytest.fixture
def runs(monkeypatch) -> list[tuple[int, ...]]:
    """The shapes of what is computed with a vocabulary axis."""
    shapes: list[tuple[int, ...]] = []

    def spying(forward):
        def spy(self, *args, **options):
            result = forward(self, *args, **options)
            shapes.append(result.shape[1:])
            return result

        return spy

    for kind in (Linear, Softmax, Unembed):
        monkeypatch.setattr(kind, "forward", spying(kind.forward))
    return shapes


def large(**more: object) -> Model:
    return Model.load(
        "decoder", device="cpu", vocab_size=WORDS, d_model=WIDTH, heads=1, d_ff=8, max_length=LENGTH, **more
    )


@pytest.mark.parametrize("block", [1, 50, 400])
@pytest.mark.parametrize("family", FAMILIES)
def test_windows_of_logits_and_probabilities_are_slices(family, block):
    kept, dropped = traces(Model.load(REFERENCES / family, device="cpu", dtype="float64"), block)
    for name in (LOGITS, PROBABILITIES):
        rows, columns = kept.program.shape(name)
        for region in ((range(rows - 1, rows), range(columns)), (range(1, 3), range(4, 11)), (range(1), range(2, 3))):
            part = cut(kept[name], region)
            np.testing.assert_allclose(dropped.window(name, region), part, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(dropped[name], kept[name], rtol=1e-11, atol=1e-14)
        assert dropped.explain(name, row=1, column=5).stored == pytest.approx(kept[name][1, 5], rel=1e-11)


@pytest.mark.parametrize("name", [LOGITS, PROBABILITIES])
def test_blocks_cover_the_step_and_are_no_larger_than_a_block(name):
    kept, dropped = traces(Model.load("decoder", device="cpu", dtype="float64"))
    dropped = replace(dropped, block=3 * kept.program.shape(name)[1])
    seen = np.full(kept.program.shape(name), np.nan)
    for (rows, columns), values in dropped.blocks(name):
        assert values.size <= dropped.block
        assert not values.flags.writeable
        seen[rows.start : rows.stop, columns.start : columns.stop] = values
    np.testing.assert_allclose(seen, kept[name], rtol=1e-12)


def test_blocks_compute_what_they_are_made_from_once():
    trace = replace(Model.load("decoder", device="cpu").trace(ids=IDS, budget=0), block=8)
    seen = []
    list(trace.blocks(LOGITS, before=lambda step: seen.append(step.name)))
    assert max(Counter(seen).values()) > 1, "before every block of a step"
    steps = [name for name, _ in groupby(seen)]
    assert len(set(steps)) == len(steps)
    assert LOGITS not in seen


@pytest.mark.parametrize("name", [LOGITS, PROBABILITIES])
def test_the_last_row_is_computed_without_the_others(name, runs):
    trace = large().trace(ids=[1] * LENGTH, budget=1 << 16)
    row = trace.window(name, (range(LENGTH - 1, LENGTH), range(WORDS)))
    assert row.shape == (1, WORDS)
    assert {shape for shape in runs if WORDS in shape} == {(1, WORDS)}


def test_only_the_row_or_column_that_is_asked_for_is_computed(runs):
    large().trace(ids=[1] * LENGTH, budget=0).window(LOGITS, (range(4), range(7, 9)))
    assert (4, 2) in runs
    assert not any(WORDS in shape for shape in runs)


def peak(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "action",
    [
        lambda trace: trace.window(PROBABILITIES, (range(LENGTH - 1, LENGTH), range(WORDS))),
        lambda trace: trace.explain(PROBABILITIES, row=3, column=5),
        lambda trace: trace.compute(),
        lambda trace: trace.compute([LOGITS]),
        lambda trace: extremes(trace, LOGITS),
        lambda trace: [None for _ in trace.blocks(PROBABILITIES)],
    ],
    ids=["window", "explain", "compute", "compute logits", "extremes", "blocks"],
)
def test_no_more_than_a_few_rows_are_ever_there(action):
    POOL.clear()
    trace = replace(large(tie_output=True).trace(ids=[1] * LENGTH, budget=1 << 18), block=4 * WORDS)
    trace.window(LOGITS, (range(1), range(1)))  # weights and residual stream are there
    assert peak(lambda: action(trace)) < LENGTH * WORDS * 4 / 2


def test_a_large_vocabulary_is_not_refused_for_its_logits(monkeypatch):
    monkeypatch.setattr(parts, "available_memory", lambda: LENGTH * WORDS * 2)
    assert not large().trace(ids=[1] * LENGTH, budget=0).plan.names
    monkeypatch.setattr(parts, "available_memory", lambda: 4 * LENGTH * WIDTH)
    with pytest.raises(InputError, match="of memory"):
        large().trace(ids=[1] * LENGTH, budget=0)


def test_an_edited_logit_is_in_windows_and_changes_its_row_of_probabilities():
    kept, dropped = traces(Model.load("decoder", device="cpu", dtype="float64"))
    edits = [Edit(LOGITS, (2, 3), 5.0)]
    wanted, changed = kept.edited(edits), dropped.edited(edits)
    region = (range(1, 4), range(2, 6))
    assert changed.window(LOGITS, region)[1, 1] == 5.0
    np.testing.assert_allclose(changed.window(PROBABILITIES, region), wanted[PROBABILITIES][1:4, 2:6], rtol=1e-12)
    assert changed.explain(LOGITS, row=2, column=3).edited
