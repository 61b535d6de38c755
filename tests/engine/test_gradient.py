"""The backward pass of a whole trace."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
ROUNDING = 1e-15
"""A key's bias moves all scores of a query alike: its true gradient is 0."""
TARGETS = [5, -1, 6, 4, 7]


def decoder(dtype: str = "float64", **sizes: object) -> Model:
    """A decoder small enough for finite differences, with every kind of weight."""
    settings = {"d_model": 8, "heads": 2, "d_ff": 6, "norm": "pre", "activation": "gelu", "positions": "learned"}
    options = settings | {"bias": True, "tie_output": True, "max_length": 8} | sizes
    return Model.load("decoder", device="cpu", dtype=dtype, **options)


def slope(trace: Trace, edit: Edit, targets: list[int], width: float = 1e-5) -> float:
    """∂loss by central differences in one cell."""

    def loss(value: float) -> float:
        edits = [other for other in trace.edits if (other.name, other.index) != (edit.name, edit.index)]
        return gradients(trace.edited([*edits, Edit(edit.name, edit.index, value)]), targets).loss

    return (loss(edit.value + width) - loss(edit.value - width)) / (2 * width)


def test_loss_equals_the_reference(reference):
    computed = gradients(reference.trace(), reference.expected["targets"])
    assert computed.loss == pytest.approx(float(reference.expected["loss"]), rel=1e-10)


def test_every_gradient_equals_the_reference(reference):
    computed = gradients(reference.trace(), reference.expected["targets"]).values
    for name, wanted in reference.table("gradient").items():
        assert np.abs(computed[name] - wanted).max() <= 1e-8 * np.abs(wanted).max() + ROUNDING, name


def test_exactly_what_the_reference_differentiates_has_a_gradient(reference):
    computed = gradients(reference.trace(), reference.expected["targets"]).values
    assert set(computed) == set(reference.table("gradient"))


def test_gradients_have_the_shape_and_precision_of_their_values(reference):
    trace = reference.trace("float32")
    for name, gradient in gradients(trace, reference.expected["targets"]).values.items():
        assert gradient.shape == trace[name].shape, name
        assert gradient.dtype == np.float32, name


def test_gradients_are_read_only():
    computed = gradients(decoder().trace(ids=IDS), TARGETS).values
    with pytest.raises(TypeError):
        computed["output.logits"] = 0
    with pytest.raises(ValueError, match="read-only"):
        computed["output.logits"][0, 0] = 0


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("embedding.tokens.weight", (5, 3)),
        ("embedding.positions.weight", (2, 1)),
        ("decoder.0.self_attention.key.weight", (1, 6)),
        ("decoder.0.self_attention.masked", (1, 3, 2)),
        ("decoder.0.self_attention.weights", (0, 4, 1)),
        ("decoder.0.feed_forward.residual", (1, 7)),
        ("decoder.norm.bias", (4,)),
    ],
)
def test_a_gradient_is_the_slope_of_the_loss(name, index):
    trace = decoder().trace(ids=IDS)
    cell = Edit(name, index, float(trace[name][index]))
    assert gradients(trace, TARGETS).values[name][index] == pytest.approx(slope(trace, cell, TARGETS), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("embedding.tokens.weight", (5, 3)),
        ("embedding.positions.weight", (2, 1)),
        ("decoder.embedding.positions.weight", (2, 1)),
        ("encoder.0.self_attention.key.weight", (1, 6)),
        ("encoder.0.feed_forward.residual", (4, 7)),
        ("decoder.0.self_attention.masked", (1, 2, 1)),
        ("decoder.0.cross_attention.key", (1, 4, 2)),
        ("decoder.0.cross_attention.weights", (0, 2, 4)),
        ("encoder.norm.weight", (3,)),
    ],
)
def test_a_gradient_goes_through_cross_attention_to_the_source(name, index):
    sizes = {"d_model": 8, "heads": 2, "d_ff": 6, "norm": "pre", "activation": "gelu", "positions": "learned"}
    model = Model.load("encoder-decoder", device="cpu", dtype="float64", tie_output=True, max_length=8, **sizes)
    trace, targets = model.trace(ids=IDS, decoder_ids=[0, 3, 5]), [3, -1, 7]
    cell = Edit(name, index, float(trace[name][index]))
    computed = gradients(trace, targets).values
    assert computed[name].shape == trace[name].shape
    assert computed[name][index] == pytest.approx(slope(trace, cell, targets), rel=1e-6)
    assert not {"tokens", "decoder.tokens"} & set(computed)


@pytest.mark.parametrize("step", ["weights", "masked", "query"])
def test_a_cell_set_by_hand_passes_no_gradient_on(step):
    edit = Edit(f"decoder.0.self_attention.{step}", (1, 3, 2), 0.7)
    trace = decoder().trace(ids=IDS).edited([edit])
    for name, index in [("decoder.0.self_attention.query.weight", (3, 6)), ("embedding.tokens.weight", (6, 2))]:
        cell = Edit(name, index, float(trace[name][index]))
        assert gradients(trace, TARGETS).values[name][index] == pytest.approx(slope(trace, cell, TARGETS), rel=1e-6)


def test_gradients_of_a_batch_are_the_mean_over_all_counted_positions():
    model, rows = decoder(), [IDS, [3, 3, 2, 7, 6]]
    targets = [TARGETS, [2, 4, -1, -1, 5]]
    both = gradients(model.trace(ids=rows), targets)
    single = [gradients(model.trace(ids=row), target) for row, target in zip(rows, targets, strict=True)]
    assert both.loss == pytest.approx((4 * single[0].loss + 3 * single[1].loss) / 7, rel=1e-12)
    for name in ("embedding.tokens.weight", "decoder.0.self_attention.value.bias"):
        wanted = (4 * single[0].values[name] + 3 * single[1].values[name]) / 7
        assert np.allclose(both.values[name], wanted, rtol=1e-10, atol=1e-14)


def test_gradients_do_not_depend_on_what_was_kept():
    model = decoder()
    kept, dropped = (gradients(model.trace(ids=IDS, budget=budget), TARGETS) for budget in (1 << 20, 0))
    assert all(np.array_equal(kept.values[name], dropped.values[name]) for name in kept.values)


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ([1, 2], "1 × 5 token IDs"),
        ([1.0, 2, 3, 4, 5], "1 × 5 token IDs"),
        ([[1, 2], [3]], "same length"),
        ([1, 2, 3, 4, 99], "target 99 is outside"),
        ([1, 2, 3, 4, -2], "target -2 is outside"),
        ([-1] * 5, "at least one"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, says):
    with pytest.raises(InputError, match=says):
        gradients(decoder().trace(ids=IDS), targets)


def test_targets_of_an_encoder_decoder_are_as_long_as_its_decoder_reads():
    trace = Model.load("encoder-decoder", device="cpu").trace(ids=IDS, decoder_ids=[0, 3, 5])
    with pytest.raises(InputError, match="1 × 3 token IDs"):
        gradients(trace, TARGETS)


def test_a_model_without_logits_has_no_gradients():
    with pytest.raises(InputError, match=r"output\.logits"):
        gradients(Model.load("attention", device="cpu").trace(), [1, 2, 3])
