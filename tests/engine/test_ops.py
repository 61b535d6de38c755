"""Promises of every operation, by the table of operations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from comparing import random_region
from op_cases import BATCH, CASES, SHARE, Case, Given

from tui_transformer.engine import ops
from tui_transformer.engine.axis import slices, within
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.explanation import Operand, Sum, Value, Working
from tui_transformer.engine.ops.base import by_rows

F64, F32 = numpy_backend("float64"), numpy_backend("float32")
STEP = 1e-6
OVERWRITING = [name for name, make in CASES.items() if make(np.random.default_rng(0)).op.overwrites]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(params=CASES)
def case(request, rng) -> Case:
    return CASES[request.param](rng)


def subclasses(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def result_of(case: Case, backend=F64):
    return case.op.forward(backend, *case.on(backend))


def weighted_sum(case: Case, share, moved: int, change) -> float:
    """Σ share · result with one input moved; cells at −∞ do not count."""
    inputs = case.on(F64)
    inputs[moved] = inputs[moved] + change
    result = case.op.forward(F64, *inputs)
    return float((share * np.where(np.isfinite(result), result, 0.0)).sum())


def test_every_operation_is_in_the_table():
    ours = {kind for kind in subclasses(ops.Op) if kind.__module__.startswith(ops.__name__)}
    listed = {type(make(np.random.default_rng(0)).op) for make in CASES.values()}
    assert {kind for kind in ours if not inspect.isabstract(kind)} == listed
    assert {kind.__name__ for kind in listed} | {"Op"} == set(ops.__all__)


def test_the_result_has_the_shape_of_its_axes(case):
    assert result_of(case).shape[1:] == case.shape


def test_gradients_are_central_differences(case, rng):
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    share = np.where(np.isfinite(output), rng.standard_normal(output.shape), 0.0)
    slopes = case.op.backward(F64, share, output, *inputs)
    assert len(slopes) == len(inputs)
    for i, (given, gradient) in enumerate(zip(case.inputs, slopes, strict=True)):
        assert (gradient is not None) == given.differentiable
        if given.differentiable:
            direction = rng.standard_normal(inputs[i].shape)
            ends = (weighted_sum(case, share, i, sign * STEP * direction) for sign in (1, -1))
            slope = next(ends) - next(ends)
            assert (gradient * direction).sum() == pytest.approx(slope / (2 * STEP), rel=1e-6, abs=1e-9)


def test_a_window_is_the_part_of_the_whole(case, rng):
    whole, inputs = result_of(case), case.on(F64)
    for _ in range(20):
        region = random_region(rng, case.shape)
        wide = case.op.widen(region, case.shapes, case.shape)
        reads = case.op.reads(wide, case.shapes)
        parts = [x[given.region(part)] for x, given, part in zip(inputs, case.inputs, reads, strict=True)]
        made = case.op.forward(F64, *parts)[within(region, wide)]
        np.testing.assert_allclose(made, whole[slices(region)], rtol=1e-12, atol=1e-14)


def named_operands(item: Sum | Value) -> Iterator[Operand]:
    if isinstance(item, Sum):
        yield from (factor.operand(term) for factor in item.factors for term in range(len(item)))
    elif item.source is not None:
        yield item.source


def named_inputs(case: Case, index: tuple[int, ...]) -> set[str]:
    """The inputs that an explanation has to name: all but what only says which cell is hidden, or where a given is."""
    if isinstance(case.op, ops.Given):
        return set()
    if isinstance(case.op, ops.Extend):
        return {str(int(index[1] >= case.shapes[0][1]))}
    if isinstance(case.op, ops.Concat):
        return {str(index[-1] // case.shapes[0][-1])}
    if isinstance(case.op, ops.LayerNormByHead):
        return {"0", str(1 + index[0])}
    if isinstance(case.op, ops.OfExpert):
        last = len(case.inputs) - 1
        chosen = case.inputs[last].values[-1, index[0], case.op.expert]
        return {str(i) for i in range(last)} if chosen else {str(last)}
    stays = isinstance(case.op, ops.Rotate) and index[-1] >= 2 * case.op.half
    return {"0"} if stays or isinstance(case.op, ops.Mask) else {str(i) for i in range(len(case.inputs))}


def test_an_explanation_gives_the_cell_from_the_cells_it_names(case):
    whole = result_of(case)
    item = whole.shape[0] - 1
    for index in np.ndindex(*case.shape):
        sources = [given.source(str(i), item) for i, given in enumerate(case.inputs)]
        working = case.op.explain(index, *sources)
        assert working.result == pytest.approx(float(whole[item][index]), rel=1e-12, abs=1e-12)
        operands = [operand for entry in working.items for operand in named_operands(entry)]
        assert {operand.name for operand in operands} == named_inputs(case, index)
        for operand in operands:
            assert operand.value == sources[int(operand.name)].cell(*operand.index)


def test_the_running_sum_ends_at_the_total(case):
    sources = [given.source(str(i), 0) for i, given in enumerate(case.inputs)]
    working = case.op.explain(tuple(size - 1 for size in case.shape), *sources)
    for total in (entry for entry in working.items if isinstance(entry, Sum)):
        assert len(total.running) == len(total) == len(total.contributions)
        assert total.running[-1] == pytest.approx(total.total, rel=1e-12, abs=1e-14)


def test_products_are_the_products_of_their_factors(case):
    sources = [given.source(str(i), 0) for i, given in enumerate(case.inputs)]
    working = case.op.explain((0,) * len(case.shape), *sources)
    for total in (entry for entry in working.items if isinstance(entry, Sum) and entry.unit == "product"):
        assert np.array_equal(total.contributions, total.factors[0].values * total.factors[1].values)


def test_an_explanation_of_a_gradient_gives_the_cell_of_the_backward_pass(case, rng):
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    gradient = rng.standard_normal(output.shape)
    slopes = case.op.backward(F64, gradient, output, *inputs)
    for toward, given in enumerate(case.inputs):
        if given.differentiable:
            assert case.op.gradient_formula(toward)
            for index in np.ndindex(*given.shape):
                workings = [
                    explained_backward(case, index, toward, item, gradient, output)
                    for item in items(given, len(output))
                ]
                wanted = slopes[toward][(0, *index) if given.batched else index]
                assert sum(working.result for working in workings) == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)


def items(given: Given, batch: int) -> range:
    """A weight collects the gradients of all sentences."""
    return range(1) if given.batched else range(batch)


def explained_backward(case: Case, index, toward: int, item: int, gradient, output) -> Working:
    """The working of a gradient's cell; its operands hold what the cells that they name hold."""
    inputs = [given.source(str(i), item) for i, given in enumerate(case.inputs)]
    results = [Given(values).source(name, item) for name, values in (("∂y", gradient), ("y", output))]
    working = case.op.explain_backward(index, toward, *results, *inputs)
    sources = {source.name: source for source in (*inputs, *results)}
    for operand in (operand for entry in working.items for operand in named_operands(entry)):
        assert operand.value == sources[operand.name].cell(*operand.index)
    return working


@pytest.mark.parametrize("name", OVERWRITING)
def test_writing_over_the_first_input_gives_the_same(name, rng):
    case = CASES[name](rng)
    inputs = case.on(F64)
    written = case.op.forward(F64, *inputs, out=inputs[0])
    assert np.array_equal(written, result_of(case))
    assert np.shares_memory(written, inputs[0])


def test_inputs_stay_as_they_are_and_gradients_have_their_shapes(case, rng):
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    slopes = case.op.backward(F64, rng.standard_normal(output.shape), output, *inputs)
    assert all(np.array_equal(after, before) for after, before in zip(inputs, case.on(F64), strict=True))
    for array, given, slope in zip(inputs, case.inputs, slopes, strict=True):
        assert (None if slope is None else slope.shape) == (array.shape if given.differentiable else None)


def test_float32_stays_float32(case, rng):
    inputs = case.on(F32)
    output = case.op.forward(F32, *inputs)
    assert output.dtype == (np.int64 if case.op.integer else np.float32)
    share = rng.standard_normal(output.shape).astype(np.float32)
    slopes = case.op.backward(F32, share, output, *inputs)
    assert {gradient.dtype for gradient in slopes if gradient is not None} <= {np.dtype(np.float32)}


def test_float32_is_near_float64(case):
    np.testing.assert_allclose(result_of(case, F32), result_of(case), rtol=1e-5, atol=2e-6)


def test_there_is_a_formula_and_a_cost(case):
    assert case.op.formula.strip() == case.op.formula != ""
    assert isinstance(case.op.flops(*case.axes), int)


@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("linear", 4 * 6 * (2 * 6)),
        ("linear with bias", 4 * 6 * (2 * 6 + 1)),
        ("unembed", 4 * 6 * (2 * 6)),
        ("scores", 3 * 4 * 5 * (2 * 2)),
        ("context", 3 * 4 * 2 * (2 * 5)),
        ("add three", 2 * 4 * 6),
        ("merge heads", 0),
        ("embed", 0),
        ("scores of grouped heads", 6 * 4 * 5 * (2 * 2)),
        ("context of grouped heads", 6 * 4 * 2 * (2 * 5)),
        ("gate", 4 * 6),
        ("norm of a sum", 4 * 6 * (7 + 2)),
        ("unembed scaled with bias", 4 * 6 * (2 * 6 + 2)),
    ],
)
def test_the_cost_counts_products_and_sums(name, cost, rng):
    case = CASES[name](rng)
    assert case.op.flops(*case.axes) == cost


def test_values_that_are_not_signed_are_never_negative(case):
    if not case.op.signed:
        assert result_of(case).min() >= 0


def test_softmax_of_a_row_of_minus_infinity_is_zero():
    scores = np.full((BATCH, 3, 4), -np.inf)
    assert not ops.Softmax().forward(F64, scores).any()


def test_softmax_does_not_overflow():
    shares = ops.Softmax().forward(F32, np.array([[[1e30, 1e30, -1e30]]], dtype=np.float32))
    assert shares.tolist() == [[[0.5, 0.5, 0.0]]]


@pytest.mark.parametrize("among_chosen", [True, False])
def test_shares_of_experts_do_not_overflow(among_chosen):
    op = ops.ExpertWeights(2, among_chosen=among_chosen)
    shares = op.forward(F32, np.array([[[1e30, 1e30, -1e30]]], dtype=np.float32))
    assert shares.tolist() == [[[0.5, 0.5, 0.0]]]


def test_of_experts_with_equal_logits_the_first_are_chosen():
    """As of many, which a sort that is not stable mixes."""
    shares = ops.ExpertWeights(3).forward(F64, np.tile([1.0, 0.0], (1, 1, 32)))
    assert np.flatnonzero(shares).tolist() == [0, 2, 4]


@pytest.mark.parametrize("kind", ["scores", "context"])
def test_grouped_heads_are_as_key_heads_repeated(kind, rng):
    case = CASES[f"{kind} of grouped heads"](rng)
    first, second = case.on(F64)
    repeated = np.repeat(second, SHARE, axis=1)
    single = type(case.op)()
    np.testing.assert_allclose(result_of(case), single.forward(F64, first, repeated), rtol=1e-12)
    share = rng.standard_normal(result_of(case).shape)
    grouped, wanted = (
        op.backward(F64, share, None, first, keys) for op, keys in ((case.op, second), (single, repeated))
    )
    np.testing.assert_allclose(grouped[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(
        grouped[1], wanted[1].reshape(BATCH, 2, SHARE, *second.shape[2:]).sum(axis=2), rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["scores", "context"])
@pytest.mark.parametrize(
    ("heads", "computed", "keys"),
    [
        (range(1, 2), range(1, 2), range(1)),
        (range(5, 6), range(5, 6), range(1, 2)),
        (range(2, 4), range(6), range(2)),
        (range(1, 3), range(3), range(1)),
        (range(3, 6), range(3, 6), range(1, 2)),
        (range(4, 4), range(3, 6), range(1, 2)),
    ],
)
def test_a_window_reads_only_the_key_heads_of_its_heads(kind, heads, computed, keys, rng):
    case = CASES[f"{kind} of grouped heads"](rng)
    region = (heads, range(1, 3), range(2))
    wide = case.op.widen(region, case.shapes, case.shape)
    assert wide == (computed, *region[1:])
    read = case.op.reads(wide, case.shapes)
    assert (read[0][0], read[1][0]) == (computed, keys)
    parts = [x[given.region(part)] for x, given, part in zip(case.on(F64), case.inputs, read, strict=True)]
    made = case.op.forward(F64, *parts)[within(region, wide)]
    np.testing.assert_allclose(made, result_of(case)[slices(region)], rtol=1e-12)


def test_rotation_keeps_lengths_and_leaves_place_0_and_the_other_columns(rng):
    case = CASES["rotate in part"](rng)
    x, places = case.on(F64)
    turned = case.op.forward(F64, x, places)
    np.testing.assert_allclose(np.hypot(turned[..., :2], turned[..., 2:4]), np.hypot(x[..., :2], x[..., 2:4]))
    assert np.array_equal(turned[..., 4:], x[..., 4:])
    assert np.array_equal(case.op.forward(F64, x, np.zeros_like(places)), x)


def test_products_of_rotated_vectors_depend_on_the_distance_alone(rng):
    op, pair = ops.Rotate((1.0, 0.02)), rng.standard_normal((1, 1, 2, 4))
    near, far = (op.forward(F64, pair, np.array([places])) for places in ([3, 8], [90, 95]))
    assert (near[0, 0, 0] @ near[0, 0, 1]) == pytest.approx(far[0, 0, 0] @ far[0, 0, 1], rel=1e-10)


def test_a_pair_is_turned_by_place_times_frequency():
    turned = ops.Rotate((0.5, 0.25)).forward(F64, np.array([[[[1.0, 0.0, 0.0, 2.0]]]]), np.array([[3]]))
    wanted = [math.cos(1.5), -2 * math.sin(0.75), math.sin(1.5), 2 * math.cos(0.75)]
    np.testing.assert_allclose(turned[0, 0, 0], wanted)


def test_norm_of_a_sum_is_the_layer_norm_of_the_sum(rng):
    case = CASES["norm of a sum"](rng)
    *parts, gamma, beta = case.on(F64)
    assert np.array_equal(
        result_of(case), ops.LayerNorm(1e-3).forward(F64, ops.Add().forward(F64, *parts), gamma, beta)
    )


def test_rows_have_the_root_mean_square_1_after_rms_norm(rng):
    rows = ops.RmsNorm(1e-12).forward(F64, 30 * rng.standard_normal((2, 4, 6)), np.ones(6))
    np.testing.assert_allclose(np.sqrt((rows**2).mean(axis=-1)), 1, rtol=1e-10)


@pytest.mark.parametrize("width", [6, 7])
def test_sines_and_cosines_in_halves_are_the_interleaved_ones(width):
    places = np.array([[0, 1, 40]])
    mixed, halves = (ops.Sinusoid(width, halves=each).forward(F64, places) for each in (False, True))
    assert np.array_equal(halves, np.concatenate([mixed[..., ::2], mixed[..., 1::2]], axis=-1))


@pytest.mark.parametrize(("op", "at_1"), [(ops.Silu(), 0.7310585786), (ops.GeluTanh(), 0.8411919906)])
def test_activations_at_0_at_1_and_far_out(op, at_1):
    values = op.forward(F64, np.array([[[0.0, 1.0, 1e50, -1e50]]]))[0, 0]
    np.testing.assert_allclose(values, [0.0, at_1, 1e50, 0.0], rtol=1e-9)


@pytest.mark.parametrize("op", [ops.Silu(), ops.GeluTanh(), ops.Gelu()])
def test_an_activation_far_out_is_explained(op):
    source = Given(np.array([[1e300, -1e300]]), batched=False).source("0", 0)
    assert [op.explain((0, column), source).result for column in (0, 1)] == [1e300, 0.0]


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (ops.Softmax(), (some(2, 3, 50, 41),)),
        (ops.Gelu(), (some(2, 70, 33),)),
        (ops.LayerNorm(), (some(2, 70, 33), some(33), some(33))),
    ],
)
def test_blocks_give_the_same_bits_as_the_whole(op, inputs):
    whole = op.forward(F32, *inputs)
    np.testing.assert_array_equal(op.forward(replace(F32, block=123), *inputs), whole)


def test_no_rows_are_no_work():
    by_rows(F32, lambda rows: None, np.empty((0, 4), np.float32))
    assert ops.Gelu().forward(F32, np.empty((1, 0, 4), np.float32)).shape == (1, 0, 4)
