"""The backward pass of a whole trace and of weights alone, its loss, and its cells written out by the chain rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from comparing import operands
from reference import REFERENCES, in_float64, slope, trace_of
from refusing import refuses

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.explanation import Sum
from tui_transformer.engine.gradient import (
    NOT_COUNTED,
    Gradients,
    cross_entropy,
    gradients,
    kept_for_backward,
    weight_gradients,
)
from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient, has_gradient
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops import Op, Relu
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
ROUNDING = 1e-15
"""A key's bias moves all scores of a query alike: its true gradient is 0."""
TARGETS = [5, -1, 6, 4, 7]


SIZES = {"d_model": 8, "heads": 2, "d_ff": 6, "norm": "pre", "activation": "gelu", "positions": "learned"}
F64 = numpy_backend("float64")
PAIR = [[2, 5, 3, 6, 4], [3, 3, 2, 7, 6]]
PAIR_TARGETS = [[5, -1, 6, 4, 7], [2, 4, -1, -1, 5]]
COUNTED = np.array([[2, -1, 0], [4, 3, -1]])


def decoder(dtype: str = "float64", **sizes: object) -> Model:
    """A decoder small enough for finite differences, with every kind of weight."""
    options = SIZES | {"bias": True, "tie_output": True, "max_length": 8} | sizes
    return Model.load("decoder", device="cpu", dtype=dtype, **options)


def test_loss_and_every_gradient_equal_the_reference(reference):
    trace, single = reference.trace(), reference.trace("float32")
    computed = gradients(trace, reference.expected["targets"])
    assert computed.loss == pytest.approx(float(reference.expected["loss"]), rel=1e-10)
    table = reference.table("gradient")
    assert set(computed.values) == set(table)
    for name, wanted in table.items():
        assert np.abs(computed.values[name] - wanted).max() <= 1e-8 * np.abs(wanted).max() + ROUNDING, name
    for name, gradient in gradients(single, reference.expected["targets"]).values.items():
        assert (gradient.shape, gradient.dtype) == (single[name].shape, np.float32), name


@pytest.mark.parametrize("step", ["weights", "masked", "query"])
def test_a_cell_set_by_hand_passes_no_gradient_on(step):
    edit = Edit(f"decoder.0.self_attention.{step}", (1, 3, 2), 0.7)
    trace = decoder().trace(ids=IDS).edited([edit])
    for name, index in [("decoder.0.self_attention.query.weight", (3, 6)), ("embedding.tokens.weight", (6, 2))]:
        wanted = slope(trace, name, index, TARGETS)
        assert gradients(trace, TARGETS).values[name][index] == pytest.approx(wanted, rel=1e-6)


def test_gradients_of_a_batch_are_the_mean_over_all_counted_positions_and_do_not_depend_on_what_was_kept():
    model, rows = decoder(), [IDS, [3, 3, 2, 7, 6]]
    targets = [TARGETS, [2, 4, -1, -1, 5]]
    both = gradients(model.trace(ids=rows), targets)
    single = [gradients(model.trace(ids=row), target) for row, target in zip(rows, targets, strict=True)]
    assert both.loss == pytest.approx((4 * single[0].loss + 3 * single[1].loss) / 7, rel=1e-12)
    for name in ("embedding.tokens.weight", "decoder.0.self_attention.value.bias"):
        wanted = (4 * single[0].values[name] + 3 * single[1].values[name]) / 7
        assert np.allclose(both.values[name], wanted, rtol=1e-10, atol=1e-14)
    model = decoder()
    kept, dropped = (gradients(model.trace(ids=IDS, budget=budget), TARGETS) for budget in (1 << 20, 0))
    assert all(np.array_equal(kept.values[name], dropped.values[name]) for name in kept.values)
    computed = gradients(decoder().trace(ids=IDS), TARGETS).values
    with pytest.raises(TypeError):
        computed["output.logits"] = 0
    with pytest.raises(ValueError, match="read-only"):
        computed["output.logits"][0, 0] = 0


def test_targets_that_do_not_fit_are_refused_and_a_model_without_logits():
    for targets, says in (
        ([1, 2], "1 × 5 token IDs"),
        ([1.0, 2, 3, 4, 5], "1 × 5 token IDs"),
        ([[1, 2], [3]], "same length"),
        ([1, 2, 3, 4, 99], "target 99 is outside"),
        ([1, 2, 3, 4, -2], "target -2 is outside"),
        ([-1] * 5, "at least one"),
    ):
        refuses(says, lambda targets=targets: gradients(decoder().trace(ids=IDS), targets))
    trace = Model.load("encoder-decoder", device="cpu").trace(ids=IDS, decoder_ids=[0, 3, 5])
    refuses("1 × 3 token IDs", lambda: gradients(trace, TARGETS))
    refuses(r"output\.logits", lambda: gradients(Model.load("attention", device="cpu").trace(), [1, 2, 3]))


# Only weights, only norms, and values that an operation says it reads
@pytest.fixture(params=["pre", "post"])
def model(request) -> Model:
    return in_float64("decoder", d_model=8, heads=2, d_ff=6, norm=request.param, bias=True, layers=2)


def test_the_gradients_of_the_weights_alone_are_the_same(model):
    whole = gradients(model.trace(ids=PAIR), PAIR_TARGETS, smoothing=0.1)
    loss, alone = weight_gradients(model.trace(ids=PAIR, budget=0), PAIR_TARGETS, smoothing=0.1)
    assert loss.mean == whole.loss
    assert set(alone) == set(model.program(5).weights)
    assert all(np.array_equal(alone[name], whole.values[name]) for name in alone)


def test_the_slope_of_the_smoothed_loss_is_the_gradient_for_which_no_scores_are_kept(model):
    trace = model.trace(ids=PAIR)
    name, index = "decoder.1.feed_forward.hidden.weight", (3, 2)
    wanted = slope(trace, name, index, PAIR_TARGETS, 0.2)
    assert gradients(trace, PAIR_TARGETS, 0.2).values[name][index] == pytest.approx(wanted, rel=1e-6)
    kept = {name.removeprefix("decoder.0.") for name in kept_for_backward(model.program(5))}
    assert {"self_attention.query", "self_attention.weights", "feed_forward.activation"} <= kept
    assert kept.isdisjoint({"self_attention.scores", "self_attention.scaled", "self_attention.masked"})


@pytest.mark.parametrize("smoothing", [float("nan"), -0.1, 1.0])
def test_a_smoothing_that_cannot_be_is_refused(smoothing):
    trace = in_float64("decoder").trace(ids=PAIR)
    with pytest.raises(InputError, match="label smoothing is a number from 0 to below 1"):
        gradients(trace, PAIR_TARGETS, smoothing=smoothing)


# Cross-entropy with label smoothing
@pytest.fixture
def logits() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((2, 3, 5)) * 3


def written_out(logits: np.ndarray, smoothing: float) -> float:
    """−Σ q log p at every counted position, in loops."""
    losses = []
    for row, target in zip(logits.reshape(-1, 5), COUNTED.reshape(-1), strict=True):
        if target != -1:
            shares = np.exp(row) / np.exp(row).sum()
            wanted = np.full(5, smoothing / 5)
            wanted[target] += 1 - smoothing
            losses.append(-(wanted * np.log(shares)).sum())
    return float(np.mean(losses))


def test_the_loss_is_the_cross_entropy_with_smoothed_targets_and_its_gradient_the_slope(logits):
    for smoothing in (0.0, 0.1, 0.5):
        loss, _ = cross_entropy(F64, logits, COUNTED, smoothing)
        assert loss.mean == pytest.approx(written_out(logits, smoothing), rel=1e-12)
    for smoothing in (0.0, 0.1):
        _, gradient = cross_entropy(F64, logits, COUNTED, smoothing)
        width = 1e-6
        for index in np.ndindex(logits.shape):
            moved = [logits.copy(), logits.copy()]
            moved[0][index] -= width
            moved[1][index] += width
            wanted = (written_out(moved[1], smoothing) - written_out(moved[0], smoothing)) / (2 * width)
            assert gradient[index] == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_the_right_ones_are_counted_and_parts_of_a_batch_add_up_to_the_whole(logits):
    whole, gradient = cross_entropy(F64, logits, COUNTED, 0.1)
    parts = [cross_entropy(F64, logits[i : i + 1], COUNTED[i : i + 1], 0.1, total=4) for i in range(2)]
    assert sum(loss.mean for loss, _ in parts) == pytest.approx(whole.mean, rel=1e-12)
    assert np.allclose(np.concatenate([part for _, part in parts]), gradient, rtol=1e-12, atol=0)
    before = logits.copy()
    cross_entropy(F64, logits, COUNTED, 0.1)
    assert np.array_equal(logits, before)
    _, gradient = cross_entropy(F64, logits, COUNTED, 0.1)
    assert not gradient[COUNTED == -1].any()
    logits[0, 0, 2] = logits[1, 0, 4] = 50
    logits[0, 2, 0] = logits[1, 1, 3] = -50
    logits[0, 1] = 0
    loss, _ = cross_entropy(F64, logits, COUNTED)
    assert (loss.right, loss.counted, loss.accuracy) == (2, 4, 0.5)


# One cell of a gradient, written out by the chain rule

SMALL = {"d_model": 8, "heads": 2, "d_ff": 6, "max_length": 8, "layers": 1}
CASES = {
    "encoder": SMALL,
    "decoder": SMALL | {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True},
    "encoder-decoder": SMALL | {"scale_embedding": True, "bias": True},
}


def traced(name: str, dtype: str = "float64") -> Trace:
    model = Model.load(name, device="cpu", dtype=dtype, **CASES[name])
    return model.trace(ids=IDS[:4], decoder_ids=IDS) if model.has_decoder else model.trace(ids=IDS)


def some_cells(computed: Gradients, name: str, count: int = 3) -> Iterator[tuple[int, ...]]:
    """The cell with the largest gradient, and a few others."""
    array = np.abs(computed.values[name]).ravel()
    rng = np.random.default_rng(3)
    for flat in {int(array.argmax()), *rng.integers(0, array.size, count).tolist()}:
        yield tuple(int(i) for i in np.unravel_index(flat, computed.values[name].shape))


def test_the_residual_stream_collects_a_term_from_every_reader_and_the_logits_a_share_less_the_target():
    trace = traced("decoder")
    computed = gradients(trace, TARGETS)
    explained = explain_gradient(trace, computed, TARGETS, "embedding.output", (1, 2))
    notes = [item.note for item in explained.items if not isinstance(item, Sum) and item.symbol == "+"]
    assert [note.partition(":")[0].removeprefix("via ") for note in notes] == [
        "decoder.0.self_attention.norm",
        "decoder.0.self_attention.residual",
    ]
    terms = [item.value for item in explained.items if not isinstance(item, Sum) and item.symbol == "+"]
    assert explained.equation == f"{spoken(terms[0])} + {bracketed(terms[1])} = {spoken(explained.recomputed)}"
    row = next(place for place, target in enumerate(TARGETS) if target >= 0)
    explained = explain_gradient(trace, computed, TARGETS, trace.program.logits, (row, TARGETS[row]))
    count = sum(target >= 0 for target in TARGETS)
    share = explained.recomputed * count + 1
    assert explained.equation == f"({spoken(share)} − 1) ÷ {count} = {spoken(explained.recomputed)}"


def test_logits_of_a_sentence_are_divided_by_the_counted_positions_of_the_whole_batch():
    trace = in_float64("decoder", **CASES["decoder"]).trace(ids=[IDS, IDS[::-1]])
    targets = [TARGETS, [NOT_COUNTED, *TARGETS[1:-1], NOT_COUNTED]]
    computed, name = gradients(trace, targets), trace.program.logits
    count = sum(target != NOT_COUNTED for row in targets for target in row)
    for item, row in enumerate(targets):
        place = next(place for place, target in enumerate(row) if target != NOT_COUNTED)
        explained = explain_gradient(trace, computed, row, name, (place, row[place]), item)
        assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9)
        assert f"÷ {count} = " in explained.equation


def test_a_weight_collects_the_gradients_of_all_sentences():
    model = in_float64("decoder", **CASES["decoder"])
    trace = model.trace(ids=[IDS, IDS[::-1]])
    targets = [TARGETS, TARGETS]
    computed = gradients(trace, targets)
    name = "decoder.0.feed_forward.hidden.weight"
    explained = explain_gradient(trace, computed, TARGETS, name, (1, 2))
    assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9)
    second = explain_gradient(trace, computed, TARGETS, "decoder.0.feed_forward.hidden", (1, 2), item=1)
    assert second.recomputed == pytest.approx(computed.values["decoder.0.feed_forward.hidden"][1, 1, 2], rel=1e-9)


@pytest.mark.parametrize("step", ["self_attention.weights", "feed_forward.hidden"])
def test_a_cell_set_by_hand_passes_nothing_on(step):
    name = f"decoder.0.{step}"
    trace = traced("decoder")
    index = (0,) * len(trace.program.shape(name))
    trace = trace.edited([Edit(name, index, 0.25)])
    computed = gradients(trace, TARGETS)
    for source in (name, *trace.program.step(name).inputs):
        for place in {index[: computed.values[source].ndim], *some_cells(computed, source)}:
            explained = explain_gradient(trace, computed, TARGETS, source, place)
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9, abs=1e-12)


def test_float32_gradients_and_operations_that_write_no_terms_are_explained(monkeypatch):
    trace = traced("encoder", "float32")
    computed = gradients(trace, TARGETS)
    for name, array in computed.values.items():
        explained = explain_gradient(trace, computed, TARGETS, name, next(some_cells(computed, name)))
        assert abs(explained.difference) <= 1e-5 * max(float(np.abs(array).max()), 1e-3), name
    monkeypatch.setattr(Relu, "explain_backward", Op.explain_backward)
    trace = traced("encoder")
    computed = gradients(trace, TARGETS)
    for index in some_cells(computed, "encoder.0.feed_forward.hidden"):
        explained = explain_gradient(trace, computed, TARGETS, "encoder.0.feed_forward.hidden", index)
        assert explained.recomputed == pytest.approx(explained.stored, rel=1e-12)


def test_what_has_no_gradient_is_said():
    for name, index, said in (
        ("tokens", (0,), "tokens has no gradient"),
        ("output.probabilities", (0, 0), "output.probabilities has no gradient"),
        ("output.logits", (9, 0), r"output.logits has no cell \[9, 0\]"),
    ):
        trace = traced("encoder")
        with pytest.raises(InputError, match=said):
            explain_gradient(trace, gradients(trace, TARGETS), TARGETS, name, index)
    assert has_gradient(Model.load("attention").trace()) == ()


@pytest.mark.parametrize("folder", sorted(REFERENCES.iterdir()), ids=lambda folder: folder.name)
def test_the_gradients_of_every_family_are_explained_by_cells_that_hold_what_is_said(folder):
    trace = trace_of(folder, [1, 4, 2, 5], [0, 3, 5])
    targets = [3, -1, 2, 4][: trace.program.shape("output.logits")[0]]
    computed = gradients(trace, [targets])
    assert set(computed.values) == set(has_gradient(trace)) >= set(trace.program.weights)
    assert has_gradient(trace)[0] == trace.program.logits
    known = {f"{GRADIENT}{name}": array for name, array in computed.values.items()}
    for name in computed.values:
        for index in some_cells(computed, name, count=2 if "vanilla" in folder.name else 0):
            explained = explain_gradient(trace, computed, targets, name, index)
            assert explained.stored == computed.values[name][index]
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-9, abs=1e-12), (name, index)
            assert explained.formula
            assert explained.name == f"{GRADIENT}{name}"
        for operand in (operand for item in explained.items for operand in operands(item)):
            cell = tuple(range(i, i + 1) for i in operand.index)
            own = operand.name in known
            value = known[operand.name][operand.index] if own else trace.window(operand.name, cell).item()
            assert operand.value == value, (name, operand)
