"""Views of steps and weights: sides, labels, windows, extremes, thumbnails."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.views.step_view import (
    Labels,
    Place,
    extremes,
    index_of,
    place_of,
    scale_for,
    thumbnail,
    tile_extremes,
    view_of,
)
from tui_transformer.views.view import View

WORDS = ("the", "waves\x1b[31m", "crashed")
LABELS = Labels({"tokens": WORDS}, lambda index: f"word{index}")
WEIGHTS = "decoder.0.self_attention.weights"
MASKED = "decoder.0.self_attention.masked"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Model.load("decoder", device="cpu", bias=True).trace(ids=[1, 2, 3])


def every_name(trace: Trace) -> tuple[str, ...]:
    return (*trace.names, *trace.program.weights, *trace.program.givens)


def test_every_step_weight_and_input_has_a_view_with_its_values(trace: Trace) -> None:
    for name in every_name(trace):
        axes = trace.program.axes(name)
        view = view_of(trace, name, LABELS, head=axes[0].size - 1 if len(axes) == 3 else 0)
        shown = view.window(range(view.rows.size), range(view.columns.size))
        whole = trace[name][-1] if len(axes) == 3 else trace[name]
        assert np.array_equal(shown.ravel(), whole.ravel()), name
        assert shown.shape == view.shape


def test_a_window_holds_only_the_cells_asked_for(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, LABELS, head=2)
    assert np.array_equal(view.window(range(1, 3), range(2)), trace[WEIGHTS][2, 1:3, :2])


def test_tokens_and_words_label_their_axes_harmlessly(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, LABELS)
    assert view.rows.label(0) == view.columns.label(0) == "the"
    assert "\x1b" not in view.rows.label(1)
    assert view_of(trace, "output.logits", LABELS).columns.label(4) == "word4"
    assert view_of(trace, "embedding.output", LABELS).columns.label(4) == "4"


def test_words_of_another_sentence_are_not_used(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, Labels({"tokens": ("only", "two")}))
    assert [view.rows.label(index) for index in range(3)] == ["0", "1", "2"]


def test_one_number_a_token_stands_upright_and_a_bias_lies(trace: Trace) -> None:
    assert view_of(trace, "tokens", LABELS).shape == (3, 1)
    assert view_of(trace, "decoder.0.feed_forward.hidden.bias", LABELS).shape == (1, 128)


def test_shares_are_sequential_and_signed_values_diverging(trace: Trace) -> None:
    assert view_of(trace, WEIGHTS, LABELS).kind == "sequential"
    assert view_of(trace, MASKED, LABELS).kind == "diverging"
    assert view_of(trace, "tokens", LABELS).integer
    assert not view_of(trace, MASKED, LABELS).integer


def test_heads_are_told_only_where_there_are_heads(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, LABELS, head=3)
    assert (view.head, view.heads) == (3, 8)
    view = view_of(trace, "embedding.output", LABELS)
    assert (view.head, view.heads) == (None, 0)


@pytest.mark.parametrize(("name", "head"), [(WEIGHTS, 8), (WEIGHTS, -1), ("embedding.output", 1)])
def test_a_head_that_is_not_there_is_refused(trace: Trace, name: str, head: int) -> None:
    with pytest.raises(InputError, match=f"{name} has no head {head}: use 0"):
        view_of(trace, name, LABELS, head=head)


def test_a_step_that_is_not_there_is_refused(trace: Trace) -> None:
    with pytest.raises(InputError, match="no step is called"):
        view_of(trace, "encoder.9.output", LABELS)


def test_an_alias_shows_the_step_that_it_stands_for(trace: Trace) -> None:
    alias = view_of(trace, "decoder.0.output", LABELS)
    step = view_of(trace, trace.program.aliases["decoder.0.output"], LABELS)
    assert (alias.name, alias.formula, alias.kind) == ("decoder.0.output", step.formula, step.kind)


@pytest.mark.parametrize("name", [WEIGHTS, "embedding.output", "tokens", "decoder.0.feed_forward.hidden.bias"])
def test_a_place_names_the_cell_that_its_view_shows(trace: Trace, name: str) -> None:
    axes = trace.program.axes(name)
    index = tuple(axis.size - 1 for axis in axes)
    place = place_of(axes, index)
    assert index_of(axes, place) == index
    view = view_of(trace, name, LABELS, head=place.head)
    row, column = range(place.row, place.row + 1), range(place.column, place.column + 1)
    assert view.window(row, column)[0, 0] == trace[name][index]


def test_the_batch_item_is_the_one_asked_for() -> None:
    trace = Model.load("encoder", device="cpu").trace(ids=[[1, 2], [3, 4]])
    view = view_of(trace, "tokens", LABELS, item=1)
    assert view.window(range(2), range(1)).ravel().tolist() == [3, 4]


def test_scales_reach_from_the_smallest_to_the_largest_value_or_around_zero() -> None:
    assert (scale_for("diverging", -1.0, 3.0).low, scale_for("diverging", -1.0, 3.0).high) == (-3.0, 3.0)
    assert (scale_for("sequential", 0.2, 0.7).low, scale_for("sequential", 0.2, 0.7).high) == (0.2, 0.7)
    for kind in ("diverging", "sequential"):
        scale = scale_for(kind, 0.0, 0.0)
        assert scale.low < scale.high


def test_extremes_are_over_all_heads_without_masked_cells(trace: Trace) -> None:
    values = trace[MASKED]
    finite = values[np.isfinite(values)]
    assert extremes(trace, MASKED) == (finite.min(), finite.max())
    assert extremes(trace, "embedding.tokens.weight") is not None


def test_extremes_of_what_is_not_kept_are_not_known() -> None:
    trace = Model.load("encoder", device="cpu").trace(ids=[1, 2, 3], budget=0)
    assert extremes(trace, "encoder.0.self_attention.weights") is None


def test_a_tile_of_masked_cells_has_flat_extremes() -> None:
    assert tile_extremes(np.array([[1.0, -np.inf], [np.nan, -4.0]])) == (-4.0, 1.0)
    assert tile_extremes(np.full((2, 2), -np.inf)) == (0.0, 0.0)


def head_of(trace: Trace, name: str, head: int) -> View:
    return view_of(trace, name, Labels(), head=head)


def test_a_small_head_is_its_own_thumbnail(trace: Trace) -> None:
    assert np.array_equal(thumbnail(head_of(trace, MASKED, 1), 12, 24), trace[MASKED][1])


@pytest.mark.parametrize("cells", [1, 1 << 18])
def test_a_thumbnail_keeps_the_value_farthest_from_zero(cells: int) -> None:
    trace = Model.load("decoder", device="cpu").trace(ids=[1, 2, 3, 4, 5, 6, 7, 1])
    values = trace[MASKED][0]
    small = thumbnail(head_of(trace, MASKED, 0), 4, 4, at_a_time=cells)
    assert small.shape == (4, 4)
    for row, column in np.ndindex(4, 4):
        block = values[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        finite = block[np.isfinite(block)]
        expected = finite[np.abs(finite).argmax()] if finite.size else -np.inf
        assert small[row, column] == expected


def test_a_thumbnail_of_what_is_not_kept_leaves_no_row_out() -> None:
    model, name, ids = Model.load("encoder", device="cpu"), "encoder.0.self_attention.weights", [1, 2, 3, 4, 5, 6, 7, 1]
    small = thumbnail(head_of(model.trace(ids=ids, budget=0), name, 5), 4, 8, at_a_time=16)
    assert np.allclose(small, model.trace(ids=ids)[name][5].reshape(4, 2, 8).max(axis=1), atol=1e-6)


def test_index_and_place_of_a_head_agree() -> None:
    axes = Model.load("encoder", device="cpu").program(3).axes("encoder.0.self_attention.weights")
    assert place_of(axes, (2, 1, 0)) == Place(2, 1, 0)


@pytest.mark.parametrize("budget", [0, 1 << 20])
@pytest.mark.parametrize("model", ["t5", "bart", "gpt2"])
def test_a_tile_beside_the_matrix_has_no_cells_and_asks_for_none(model: str, budget: int) -> None:
    """A tile may come late, when a smaller matrix is shown."""
    trace = Model.load(REFERENCES / model, device="cpu").trace(ids=[1, 2, 3], budget=budget)
    for name in every_name(trace):
        view = view_of(trace, name, LABELS)
        rows, columns = view.shape
        assert view.tile(range(rows + 4, rows + 9), range(columns)).values.shape == (0, columns), name
        assert view.tile(range(rows), range(columns + 4, columns + 9)).values.shape == (rows, 0), name
