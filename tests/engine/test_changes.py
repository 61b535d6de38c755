"""Values set, added and multiplied, and functions: beside the same by hand, forwards and backwards."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.changes import Add, Apply, Scale, Set
from tui_transformer.engine.edits import Ablate, Patch
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
CONTEXT, STREAM = "decoder.0.self_attention.context", "decoder.0.output"
VECTOR = np.linspace(-1, 1, 16)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load(
        "decoder", device="cpu", dtype="float64", layers=2, heads=4, d_model=16, d_ff=12, norm="pre", bias=True
    )


@pytest.fixture
def trace(model: Model) -> Trace:
    return model.trace(ids=IDS)


def with_values(trace: Trace, name: str, values: np.ndarray) -> np.ndarray:
    return trace.edited([Patch.of(name, values)])["output.logits"]


@pytest.mark.parametrize(
    ("change", "made"),
    [
        (Add("0.output", 4 * VECTOR), lambda x: x + 4 * VECTOR),
        (Add("0.output", VECTOR, rows=range(1, 3)), lambda x: x + VECTOR * np.isin(np.arange(5), [1, 2])[:, None]),
        (Scale("0.output", 0.5, columns=range(3)), lambda x: x * np.where(np.arange(16) < 3, 0.5, 1)),
        (Set("0.output", 0.25), lambda x: np.full_like(x, 0.25)),
        (Apply("0.output", function=np.tanh), np.tanh),
    ],
)
def test_a_change_is_what_its_formula_says(trace, change, made):
    edited = trace.edited([change])
    wanted = made(trace[STREAM])
    np.testing.assert_allclose(edited[STREAM], wanted, atol=1e-12)
    np.testing.assert_allclose(edited["output.logits"], with_values(trace, STREAM, wanted), atol=1e-12)
    assert np.shares_memory(edited[CONTEXT], trace[CONTEXT])


def test_a_head_is_changed_alone(trace):
    edited = trace.edited([Scale("0.self_attention.context", 0.0, heads=range(2, 3))])
    wanted = trace.edited([Ablate(CONTEXT, (range(2, 3), range(5), range(4)))])
    np.testing.assert_array_equal(edited["output.logits"], wanted["output.logits"])


def test_windows_of_a_step_that_is_not_kept_have_the_changes(model):
    name = "decoder.0.self_attention.weights"
    changes = [Scale(name, 2.0, rows=range(1, 4)), Apply(name, function=lambda x: x / x.sum(axis=-1, keepdims=True))]
    kept, dropped = (model.trace(ids=IDS, budget=budget).edited(changes) for budget in (1 << 30, 0))
    region = range(1, 3), range(2, 5), range(1, 4)
    np.testing.assert_array_equal(dropped.window(name, region), kept[name][1:3, 2:5, 1:4])
    np.testing.assert_allclose(dropped["output.logits"], kept["output.logits"], atol=1e-12)


@pytest.mark.parametrize("axis", [-3, -2, -1])
def test_a_function_sees_all_its_cells_in_whatever_window_is_asked_for(model, axis):
    name = "decoder.0.self_attention.weights"
    change = Apply(name, function=lambda x: x - x.mean(axis=axis, keepdims=True))
    kept, dropped = (model.trace(ids=IDS, budget=budget).edited([change]) for budget in (1 << 30, 0))
    region = range(1, 3), range(2, 5), range(1, 4)
    np.testing.assert_allclose(dropped.window(name, region), kept[name][1:3, 2:5, 1:4], atol=1e-15)
    part = Apply(name, function=lambda x: x - x.mean(axis=axis, keepdims=True), rows=range(1, 4), columns=range(2))
    kept, dropped = (model.trace(ids=IDS, budget=budget).edited([part]) for budget in (1 << 30, 0))
    np.testing.assert_allclose(dropped.window(name, region), kept[name][1:3, 2:5, 1:4], atol=1e-15)


def test_changes_add_up_in_order(trace):
    edited = trace.edited([Add("0.output", 1.0)]).edited([Scale("0.output", 2.0)])
    np.testing.assert_allclose(edited[STREAM], (trace[STREAM] + 1) * 2, atol=1e-12)


def test_weights_are_set_from_arrays(model, trace):
    name = "decoder.0.feed_forward.output.weight"
    other = np.random.default_rng(0).standard_normal(trace.program.shape(name))
    edited = trace.edited([Patch.of("0.feed_forward.output.weight", other)])
    np.testing.assert_array_equal(edited[name], other)
    wanted = trace["decoder.0.feed_forward.activation"] @ other + trace["decoder.0.feed_forward.output.bias"]
    np.testing.assert_allclose(edited["decoder.0.feed_forward.output"], wanted, atol=1e-12)
    halved = trace.edited([Scale(name, 0.5), Add("0.feed_forward.output.bias", np.ones(16))])
    np.testing.assert_array_equal(halved[name], trace[name] / 2)
    assert not np.array_equal(model.trace(ids=IDS)[name], halved[name])


@pytest.mark.parametrize(
    "change",
    [Add("0.output", VECTOR), Scale("0.output", VECTOR, rows=range(1, 4)), Set("0.output", 0.1, rows=range(2))],
)
def test_gradients_pass_through_a_change_as_through_its_formula(trace, change):
    edited, targets = trace.edited([change]), [5, 3, 6, 4, -1]
    computed = gradients(edited, targets)
    name, step = "decoder.0.feed_forward.output.bias", 1e-6
    for column in (0, 7):
        way = np.eye(16)[column] * step
        losses = [gradients(edited.edited([Add(name, sign * way)]), targets).loss for sign in (1, -1)]
        assert computed.values[name][column] == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5, abs=1e-10)
    explained = explain_gradient(edited, computed, targets, "decoder.0.feed_forward.output", (2, 3))
    assert explained.recomputed == pytest.approx(explained.stored, abs=1e-12)


def test_no_gradient_passes_through_a_function(trace):
    with pytest.raises(InputError, match="by a function of yours"):
        gradients(trace.edited([Apply("0.output", function=np.tanh)]), [5, 3, 6, 4, -1])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (Add("nothing", 1.0), "no step is called"),
        (Add("0.output", np.ones(7)), "values of 7 do not fit the 5 × 16 of decoder.0"),
        (Set("0.output", float("nan")), "not by NaN"),
        (Set("0.output", 1.0, heads=range(1)), "has no heads: leave them out"),
        (Set("0.output", 1.0, rows=range(4, 6)), "has no rows 4 to 5: use 0 to 4"),
        (Set("tokens", 1.0), "holds whole numbers"),
        (Set("input.ids", 1.0), "is an input"),
        (
            Ablate("decoder.0.feed_forward.output.weight", (range(12), range(16)), mean=True),
            "has no mean over positions",
        ),
    ],
)
def test_what_cannot_be_changed_is_refused(trace, change, says):
    with pytest.raises(InputError, match=says):
        trace.edited([change])


def test_a_function_has_to_keep_the_shape(trace):
    with pytest.raises(InputError, match="the function gave 1 × 5 × 3, not 1 × 5 × 16 numbers"):
        _ = trace.edited([Apply("0.output", function=lambda x: x[..., :3])])[STREAM]
