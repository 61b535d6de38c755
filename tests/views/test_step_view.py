"""Views of steps, their gradients and differences, and tiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.engine.changes import Set
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.views import step_view
from tui_transformer.views.step_view import Labels, Limits, Place, extremes, place_of, scale_for, tile_extremes, view_of
from tui_transformer.views.view import Axis, Scale, Tile, View, window_of

# Views of steps and weights: sides, labels, windows, extremes, thumbnails
WORDS = ("the", "waves\x1b[31m", "crashed")
LABELS = Labels({"tokens": WORDS}, lambda index: f"word{index}")
WEIGHTS = "decoder.0.self_attention.weights"
MASKED = "decoder.0.self_attention.masked"
SCORES = "decoder.0.self_attention.scores"


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


def test_a_window_holds_only_the_cells_asked_for_of_the_head_and_batch_item(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, LABELS, head=2)
    assert np.array_equal(view.window(range(1, 3), range(2)), trace[WEIGHTS][2, 1:3, :2])
    # a batch item
    trace = Model.load("encoder", device="cpu").trace(ids=[[1, 2], [3, 4]])
    view = view_of(trace, "tokens", LABELS, item=1)
    assert view.window(range(2), range(1)).ravel().tolist() == [3, 4]


def test_axes_are_labelled_harmlessly_by_tokens_and_words(trace: Trace) -> None:
    view = view_of(trace, WEIGHTS, LABELS)
    assert view.rows.label(0) == view.columns.label(0) == "the"
    assert "\x1b" not in view.rows.label(1)
    assert view_of(trace, "output.logits", LABELS).columns.label(4) == "word4"
    assert view_of(trace, "embedding.output", LABELS).columns.label(4) == "4"
    # words of another sentence are not used
    view = view_of(trace, WEIGHTS, Labels({"tokens": ("only", "two")}))
    assert [view.rows.label(index) for index in range(3)] == ["0", "1", "2"]


def test_a_view_has_the_form_kind_and_heads_of_its_step(trace: Trace) -> None:
    # one number a token stands upright, a bias lies
    assert view_of(trace, "tokens", LABELS).shape == (3, 1)
    assert view_of(trace, "decoder.0.feed_forward.hidden.bias", LABELS).shape == (1, 128)
    # shares are sequential, signed values diverging
    assert view_of(trace, WEIGHTS, LABELS).kind == "sequential"
    assert view_of(trace, MASKED, LABELS).kind == "diverging"
    assert view_of(trace, "tokens", LABELS).integer
    assert not view_of(trace, MASKED, LABELS).integer
    # heads, where there are some
    view = view_of(trace, WEIGHTS, LABELS, head=3)
    assert (view.head, view.heads) == (3, 8)
    view = view_of(trace, "embedding.output", LABELS)
    assert (view.head, view.heads) == (None, 0)
    # an alias shows the step that it stands for
    alias = view_of(trace, "decoder.0.output", LABELS)
    step = view_of(trace, trace.program.aliases["decoder.0.output"], LABELS)
    assert (alias.name, alias.formula, alias.kind) == ("decoder.0.output", step.formula, step.kind)


def test_a_head_or_a_step_that_is_not_there_is_refused(trace: Trace) -> None:
    for name, head in ((WEIGHTS, 8), (WEIGHTS, -1), ("embedding.output", 1)):
        with pytest.raises(InputError, match=f"{name} has no head {head}: use 0"):
            view_of(trace, name, LABELS, head=head)
    with pytest.raises(InputError, match="no step is called"):
        view_of(trace, "encoder.9.output", LABELS)


def test_a_place_names_the_cell_that_its_view_shows(trace: Trace) -> None:
    for name in (WEIGHTS, "embedding.output", "tokens", "decoder.0.feed_forward.hidden.bias"):
        axes = trace.program.axes(name)
        index = tuple(axis.size - 1 for axis in axes)
        place = place_of(axes, index)
        assert step_view.index_of(axes, place) == index
        view = view_of(trace, name, LABELS, head=place.head)
        row, column = range(place.row, place.row + 1), range(place.column, place.column + 1)
        assert view.window(row, column)[0, 0] == trace[name][index]
    assert place_of(trace.program.axes(WEIGHTS), (2, 1, 0)) == Place(2, 1, 0)


def test_scales_reach_to_the_ends_and_positions_on_them_are_cut_there() -> None:
    assert (scale_for("diverging", -1.0, 3.0).low, scale_for("diverging", -1.0, 3.0).high) == (-3.0, 3.0)
    assert (scale_for("sequential", 0.2, 0.7).low, scale_for("sequential", 0.2, 0.7).high) == (0.2, 0.7)
    for kind in ("diverging", "sequential"):
        scale = scale_for(kind, 0.0, 0.0)
        assert scale.low < scale.high
    scale = Scale("diverging", -2.0, 2.0)
    values = np.array([-3.0, -2.0, 0.0, 1.0, 2.0, 9.0, -math.inf, math.inf])
    assert scale.position(values).tolist() == [0.0, 0.0, 0.5, 0.75, 1.0, 1.0, 0.0, 1.0]
    assert np.isnan(scale.position(np.array([math.nan]))).all()
    assert Scale("sequential", 1.0, 1.0).position(np.array([1.0])).tolist() == [0.0]
    few, many = Limits(-1.0, 2.0), Limits(-90.0, 3.0, 2.5)
    assert step_view.joined(few, many) == (-90.0, 3.0, 2.5)
    assert step_view.joined(few, Limits(-1.0, 5.0)) == (-1.0, 5.0, math.inf)


def test_extremes_are_over_all_heads_without_masked_cells(trace: Trace) -> None:
    values = trace[MASKED]
    finite = values[np.isfinite(values)]
    assert extremes(trace, MASKED) == (finite.min(), finite.max(), math.inf)
    assert extremes(trace, "embedding.tokens.weight") is not None
    # without a finite value they are flat
    hidden = trace.edited((Set(SCORES, -np.inf),))
    assert extremes(hidden, SCORES) == (0.0, 0.0, math.inf)
    assert tile_extremes(np.array([[1.0, -np.inf], [np.nan, -1.5]]))[:2] == (-1.5, 1.0)
    assert tile_extremes(np.full((2, 2), -np.inf))[:2] == (0.0, 0.0)
    # shares reach as far as the largest, what is set does not
    changed = trace.edited(tuple(Set(name, 90.0, 0, 0, 0) for name in (WEIGHTS, SCORES)))
    assert extremes(changed, WEIGHTS).usual == math.inf
    assert extremes(changed, SCORES).usual < 90.0 / step_view.OUTLIER
    # of what is not kept they are not known
    dropped = Model.load("encoder", device="cpu").trace(ids=[1, 2, 3], budget=0)
    assert extremes(dropped, "encoder.0.self_attention.weights") is None


@pytest.mark.parametrize("size", [7 * 16, 3_000, step_view.AT_A_TIME + 5])
def test_one_outlier_does_not_flatten_what_else_there_is(size: int) -> None:
    values = np.random.default_rng(0).normal(size=size)
    plain = tile_extremes(values)
    assert plain == (values.min(), values.max(), math.inf)
    values[size // 2] = -1000.0
    low, high, usual = tile_extremes(values)
    assert (low, high) == (-1000.0, plain.high)
    assert usual == np.percentile(abs(values), 99.5, method="lower")
    scale = scale_for("diverging", low, high, usual)
    assert (scale.low, scale.high, scale.farthest) == (-usual, usual, -1000.0)
    assert scale.beyond(values).sum() == (abs(values) > usual).sum() < size / 100


def test_what_is_mostly_nothing_or_the_same_has_no_outliers() -> None:
    sparse = np.zeros(1000)
    sparse[3] = 5.0
    for values in (sparse, np.zeros(10), np.full(10, 2.5), np.array([7.0])):
        assert tile_extremes(values).usual == math.inf
        assert not scale_for("sequential", *tile_extremes(values)).farthest


def head_of(trace: Trace, name: str, head: int) -> View:
    return view_of(trace, name, Labels(), head=head)


def test_a_thumbnail_of_a_small_head_is_itself_and_of_what_is_not_kept_leaves_no_row_out(trace: Trace) -> None:
    assert np.array_equal(step_view.thumbnail(head_of(trace, MASKED, 1), 12, 24), trace[MASKED][1])
    # of what is not kept
    model, name, ids = Model.load("encoder", device="cpu"), "encoder.0.self_attention.weights", [1, 2, 3, 4, 5, 6, 7, 1]
    small = step_view.thumbnail(head_of(model.trace(ids=ids, budget=0), name, 5), 4, 8, at_a_time=16)
    assert np.allclose(small, model.trace(ids=ids)[name][5].reshape(4, 2, 8).max(axis=1), atol=1e-6)


@pytest.mark.parametrize("cells", [1, 1 << 18])
def test_a_thumbnail_keeps_the_value_farthest_from_zero(cells: int) -> None:
    trace = Model.load("decoder", device="cpu").trace(ids=[1, 2, 3, 4, 5, 6, 7, 1])
    values = trace[MASKED][0]
    small = step_view.thumbnail(head_of(trace, MASKED, 0), 4, 4, at_a_time=cells)
    assert small.shape == (4, 4)
    for row, column in np.ndindex(4, 4):
        block = values[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        finite = block[np.isfinite(block)]
        expected = finite[np.abs(finite).argmax()] if finite.size else -np.inf
        assert small[row, column] == expected


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


# The gradient of a view, and the difference of two
VALUE = "encoder.0.self_attention.value"


def test_a_gradient_is_seen_as_its_step_head_by_head():
    trace = Model.load("encoder").trace("the waves crashed")
    values = gradients(trace, [[1, 2, 3]]).values
    for name, head in ((VALUE, 3), ("embedding.output", 0), ("encoder.0.feed_forward.hidden.weight", 0)):
        view = view_of(trace, name, Labels(), head=head)
        seen = step_view.gradient_of(view, trace.program.axes(name), values[name])
        whole = values[name][head] if values[name].ndim == 3 else values[name]
        assert np.array_equal(seen.window(range(1, 3), range(1)), whole[1:3, :1])
        assert seen.title == f"∂loss/∂{name}"
        assert (seen.kind, seen.shape, seen.name) == ("diverging", view.shape, name)


def test_the_difference_of_two_views():
    # it covers what both have, and names labels that differ
    first, second = (Model.load("encoder").trace(text) for text in ("the waves crashed", "the shore"))
    labels = [Labels({"tokens": words}) for words in (("the", "waves", "crashed"), ("the", "shore"))]
    views = [view_of(trace, VALUE, names) for trace, names in zip((first, second), labels, strict=True)]
    seen = step_view.difference_of(*views)
    assert seen.shape == (2, 1)
    assert [seen.rows.label(i) for i in range(2)] == ["the", "waves/shore"]
    wanted = first[VALUE][0, :2].astype(float) - second[VALUE][0]
    assert np.array_equal(seen.window(range(2), range(1)), wanted)
    # of two masked cells it is 0
    view = view_of(Model.load("decoder").trace("the waves crashed"), MASKED, Labels())
    assert not step_view.difference_of(view, view).window(range(3), range(3)).any()


# Scales and tiles
def grid() -> View:
    window = window_of(np.arange(12.0).reshape(3, 4))
    return View("grid", "grid", Axis("row", 3, str), Axis("column", 4, str), "sequential", window)


def test_a_tile_is_cut_to_the_matrix_and_covers_what_it_holds() -> None:
    tile = grid().tile(range(-5, 2), range(2, 99))
    assert (tile.row, tile.column) == (0, 2)
    assert tile.values.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    # outside it has no cells
    for rows, columns in ((range(7, 9), range(4)), (range(3), range(9, 11)), (range(-9, -3), range(8, 2))):
        tile = grid().tile(rows, columns)
        assert tile.values.size == 0
        assert 0 <= tile.row <= 3
        assert 0 <= tile.column <= 4
    assert grid().shape == (3, 4)
    tile = Tile(1, 2, np.zeros((2, 2)))
    assert tile.covers(range(1, 3), range(2, 4))
    assert tile.covers(range(1, 2), range(3, 4))
    beyond = (
        (range(3), range(2, 4)),
        (range(1, 3), range(1, 4)),
        (range(1, 4), range(2, 4)),
        (range(1, 3), range(2, 5)),
    )
    assert not any(tile.covers(rows, columns) for rows, columns in beyond)
