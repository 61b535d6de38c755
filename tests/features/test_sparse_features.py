"""Of the features of a trace those are held that are active, and nothing that is read of them is another number."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from placing import FOLDERS, HERE, STREAM, loaded, model, place_of
from safetensors.numpy import save_file

from tui_transformer import Add, Features, Scale, Set
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.compact import SparseArray, dense, packed
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.features import layer, steps
from tui_transformer.features.layer import Part

FEATURES, PRE = f"{STREAM}.features", f"{STREAM}.pre_activations"
COUNT, TOKENS = 4_096, 24
IDS = [1 + i % 7 for i in range(TOKENS)]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Features:
    """A dictionary of which about one feature in a hundred is active."""
    return written(tmp_path_factory.mktemp("few"), threshold=10.0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Features:
    """One of which half are."""
    return written(tmp_path_factory.mktemp("many"), threshold=0.0)


def written(folder: Path, threshold: float) -> Features:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(32, COUNT))
    weights = {
        "W_enc": rows / np.linalg.norm(rows, axis=0),
        "W_dec": rng.normal(size=(COUNT, 32)),
        "b_enc": np.zeros(COUNT),
        "b_dec": np.zeros(32),
        "threshold": np.full(COUNT, threshold),
    }
    settings = json.loads((HERE / "saelens-jumprelu" / "cfg.json").read_text())
    (folder / "cfg.json").write_text(json.dumps(settings | {"d_sae": COUNT, "d_in": 32}))
    save_file({name: each.astype(np.float64) for name, each in weights.items()}, folder / "sae_weights.safetensors")
    return Features.load(folder)


def traced(features: Features, ids: Any = IDS, **how: Any) -> Trace:
    return model().with_features(features, STREAM).trace(ids=ids, **how)


def test_the_cells_that_are_not_zero_are_held_and_what_half_is_active_of_is_held_whole(few, many):
    trace = traced(few)
    before = trace.held_bytes
    values = trace[FEATURES]
    active = np.count_nonzero(values)
    assert 0 < active < values.size / 20
    kept = trace._held[FEATURES]
    assert isinstance(kept, SparseArray)
    assert kept.nbytes == active * 12  # 8 of a number, 4 of its place
    grown = trace.held_bytes - before
    own = [trace._held[name] for name in trace.held if name != FEATURES]
    dense = sum({id(each if each.base is None else each.base): each.nbytes for each in own}.values())  # some are views
    assert grown == dense + kept.nbytes
    np.testing.assert_array_equal(values, np.where(trace[PRE] > 10.0, trace[PRE], 0))
    assert f"{trace.held_bytes / 2**20:,.1f} MiB" in repr(trace)
    # half is active
    trace = traced(many)
    assert np.count_nonzero(trace[FEATURES]) > trace[FEATURES].size / 4
    assert not isinstance(trace._held[FEATURES], SparseArray)
    step = next(iter(trace.program.steps))
    assert not replace(step, name="loss.features", axes=()).mostly_zero


@pytest.mark.parametrize("name", FOLDERS)
def test_every_dictionary_gives_the_same_held_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def trace() -> Trace:
        return model().with_features(loaded(name), place_of(loaded(name))).trace(ids=IDS)

    wanted = trace()
    values = {step.name: wanted[step.name] for step in wanted.program.steps}
    by_hand = gradients(wanted, [1] * TOKENS).values
    monkeypatch.setattr("tui_transformer.engine.computation.WORTH", math.inf)
    found = trace()
    for step, right in values.items():
        np.testing.assert_array_equal(found[step], right, err_msg=step)
    held = [name for name in found.held if isinstance(found._held[name], SparseArray)]
    assert {each.rpartition(".")[2] for each in held} == {"features", "encoded"}
    for each, right in gradients(found, [1] * TOKENS).values.items():
        np.testing.assert_array_equal(right, by_hand[each], err_msg=each)


def test_windows_explanations_and_blocks_are_of_the_same_numbers(few: Features) -> None:
    trace = traced(few)
    values, rng = trace[FEATURES], np.random.default_rng(3)
    for _ in range(20):
        (top, bottom), (left, right) = (sorted(rng.integers(0, size + 1, 2)) for size in values.shape)
        window = trace.window(FEATURES, (range(top, bottom), range(left, right)))
        np.testing.assert_array_equal(window, values[top:bottom, left:right])
    for index in np.argwhere(values)[:5].tolist():
        explained = trace.explain_cell(FEATURES, tuple(index))
        assert explained.stored == values[tuple(index)] == pytest.approx(explained.recomputed, abs=1e-9)
    np.testing.assert_array_equal(np.concatenate([part for _, part in trace.blocks(FEATURES)]), values)


def test_a_batch_its_sentences_and_edits(few: Features) -> None:
    rows = [IDS, IDS[::-1], [3] * TOKENS]
    batch = traced(few, rows)
    singles = [traced(few, row) for row in rows]
    for item, single in enumerate(singles):
        np.testing.assert_allclose(batch[FEATURES][item], single[FEATURES], rtol=0, atol=1e-12)
        sentence = batch.sentence(item)
        assert isinstance(sentence._held[FEATURES], SparseArray)
        np.testing.assert_array_equal(sentence[FEATURES], batch[FEATURES][item])
        window = batch.window(FEATURES, (range(3, 9), range(100, 900)), item)
        np.testing.assert_array_equal(window, batch[FEATURES][item, 3:9, 100:900])
    strongest = int(singles[0][FEATURES].max(axis=0).argmax())
    by = [[Scale(FEATURES, feature=strongest, by=0)], [Scale(FEATURES, 2.0, columns=strongest)]]
    _ = singles[0][FEATURES]
    each = singles[0].edited_each(by)
    for item, edits in enumerate(by):
        alone = singles[0].edited(edits)
        np.testing.assert_allclose(each["output.logits"][item], alone["output.logits"], rtol=0, atol=1e-12)
        wanted = singles[0][FEATURES].copy()
        wanted[:, strongest] *= 2.0 * item
        np.testing.assert_array_equal(alone[FEATURES], wanted)
    assert not np.array_equal(each["output.logits"][0], each["output.logits"][1])


def test_a_feature_is_named_once_and_scaled_by_something(few: Features) -> None:
    trace = traced(few)
    wrongs = (
        ({"columns": 3, "feature": 3, "by": 0}, "columns or feature"),
        ({"feature": 3}, "give by"),
        ({"values": 2.0, "by": 3.0}, "nothing else"),
    )
    for wrong, says in wrongs:
        with pytest.raises(UsageError, match=says):
            Scale(FEATURES, **wrong)
    for change in (Set(FEATURES, 1.0, feature=[3, 9]), Add(FEATURES, 2.0, feature=[3, 9])):
        by_columns = type(change)(FEATURES, change.values, columns=[3, 9])
        one, other = (trace.edited([each])["output.logits"] for each in (change, by_columns))
        np.testing.assert_array_equal(one, other)


def test_where_not_all_fits_active_features_stay(few: Features, monkeypatch: pytest.MonkeyPatch) -> None:
    all_of_it = traced(few)
    least = all_of_it.program.step_cells() * 8 - 2 * TOKENS * COUNT * 8
    trace = traced(few, budget=least)
    assert PRE not in trace.plan.names
    assert {FEATURES, f"{STREAM}.encoded"} <= trace.plan.names
    trace.compute()
    assert trace.held_bytes <= least
    wanted = all_of_it[FEATURES][2:5, 50:700]
    ran = Counter[str]()
    monkeypatch.setattr(Part, "cells", lambda part, *_, **__: ran.update([part.name]))
    trace.weights.let_go()
    for part in (trace.window(FEATURES, (range(2, 5), range(50, 700))), trace[FEATURES][2:5, 50:700]):
        np.testing.assert_array_equal(part, wanted)
    assert not ran


def test_more_than_was_counted_is_held_only_where_everything_fits(many: Features) -> None:
    whole = traced(many)
    total = whole.program.step_cells() * 8
    roomy, tight = (traced(many, budget=each) for each in (total, total - TOKENS * COUNT * 8))
    for trace in (roomy, tight):
        assert FEATURES in trace.plan.names
        trace.compute()
        assert trace.held_bytes <= trace.budget
        for name in (FEATURES, f"{STREAM}.reconstruction", "output.logits"):
            np.testing.assert_allclose(trace[name], whole[name], rtol=0, atol=1e-12)
        window = trace.window(FEATURES, (range(2, 5), range(50, 700)))
        np.testing.assert_allclose(window, whole[FEATURES][2:5, 50:700], rtol=0, atol=1e-12)
    assert FEATURES in roomy.held
    assert FEATURES not in tight.held


@pytest.mark.parametrize("activity", ["few", "many"])
def test_a_dictionary_that_is_too_large_is_read_once(activity, request, monkeypatch):
    features = request.getfixturevalue(activity)
    whole = traced(features)
    monkeypatch.setattr(steps, "MOST_HELD", 32)
    monkeypatch.setattr(layer, "BLOCK", 1_024)
    read, cells = Counter[str](), Part.cells

    def counted(part: Part, *index: Any, **how: Any) -> Any:
        found = cells(part, *index, **how)
        read[part.name] += found.size
        return found

    monkeypatch.setattr(Part, "cells", counted)
    trace = traced(features, budget=whole.program.step_cells() * 8 - 2 * TOKENS * COUNT * 8)
    trace.block = 4 * COUNT
    logits = trace["output.logits"]
    np.testing.assert_allclose(logits, whole["output.logits"], rtol=0, atol=1e-12)
    assert read["W_enc"] == 2 * 32 * COUNT  # of features, and of those that no change reaches
    np.testing.assert_allclose(trace[FEATURES], whole[FEATURES], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 5, 7), (3, 5, 7), (2, 9), (1, 0, 7)])
def test_a_sparse_array_is_the_array(shape: tuple[int, ...]) -> None:
    backend, rng = numpy_backend("float64", "of a test"), np.random.default_rng(1)
    values = rng.normal(size=shape) * (rng.random(shape) < 0.2)
    whole = tuple(map(slice, shape))
    kept = packed(backend, shape, [(whole, values)])
    np.testing.assert_array_equal(dense(kept), values)
    for _ in range(30):
        part = tuple(slice(*sorted(rng.integers(0, size + 1, 2).tolist())) for size in shape)
        np.testing.assert_array_equal(kept[part], values[part])
    for start in range(shape[0]):
        np.testing.assert_array_equal(kept[start : start + 1], values[start : start + 1])
    half = shape[-1] // 2
    pieces = [(*whole[:-1], part) for part in (slice(half, shape[-1]), slice(0, half))]
    joined = packed(backend, shape, [(piece, values[piece]) for piece in pieces])
    np.testing.assert_array_equal(joined.places, kept.places)
    np.testing.assert_array_equal(joined.cells, kept.cells)
