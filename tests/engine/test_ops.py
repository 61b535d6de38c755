"""Promises of every operation, by the table of operations, and the equation that a working closes with."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest
from comparing import operands, random_region
from hypothesis import strategies as st
from op_cases import BATCH, CASES, Case, Given

from tui_transformer.engine import ops
from tui_transformer.engine.axis import slices, within
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.explanation import Sum, Value, Working
from tui_transformer.engine.number_format import equation_of, spoken
from tui_transformer.engine.ops.base import RESULT

F64, F32 = numpy_backend("float64"), numpy_backend("float32")
STEP = 1e-6
OVERWRITING = [name for name, make in CASES.items() if make(np.random.default_rng(0)).op.overwrites]
WORDS = ("no key is visible", "the row of padding", "not chosen")
NAMES = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "max": max, "exp": math.exp}


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
    assert listed | {ops.Op} == {each for each in vars(ops).values() if isinstance(each, type)}


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


def worked_out(left: str) -> float:
    """The left side of an equation as a number."""
    text = left.replace("−∞", "(-inf)").replace("−", "-").replace("·", "*").replace("÷", "/")
    text = re.sub(r"e\^\(", "exp(", text)
    return eval(text, {"__builtins__": {}, "inf": math.inf, **NAMES})  # noqa: S307 - of our own numbers


def test_an_explanation_gives_the_cell_from_the_cells_it_names_and_closes_with_its_equation(case):
    whole = result_of(case)
    item = whole.shape[0] - 1
    sources = [given.source(str(i), item) for i, given in enumerate(case.inputs)]
    for index in np.ndindex(*case.shape):
        working = case.op.explain(index, *sources)
        assert working.result == pytest.approx(float(whole[item][index]), rel=1e-12, abs=1e-12)
        named = [operand for entry in working.items for operand in operands(entry)]
        assert {operand.name for operand in named} == named_inputs(case, index)
        for operand in named:
            assert operand.value == sources[int(operand.name)].cell(*operand.index)
        for total in (entry for entry in working.items if isinstance(entry, Sum)):
            assert len(total.running) == len(total) == len(total.contributions)
            assert total.running[-1] == pytest.approx(total.total, rel=1e-12, abs=1e-14)
            if total.unit == "product":
                assert np.array_equal(total.contributions, total.factors[0].values * total.factors[1].values)
        left, _, right = equation_of(working).rpartition(" = ")
        assert right == spoken(working.result)
        if left not in WORDS and " … " not in left:
            assert worked_out(left) == pytest.approx(working.result, rel=2e-3, abs=2e-3)


def test_an_explanation_of_a_gradient_gives_the_cell_of_the_backward_pass(case, rng):
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    gradient = rng.standard_normal(output.shape)
    slopes = case.op.backward(F64, gradient, output, *inputs)
    for toward, given in enumerate(case.inputs):
        if given.differentiable:
            assert case.op.gradient_formula(toward)
            items = range(1) if given.batched else range(len(output))  # a weight collects those of all sentences
            for index in np.ndindex(*given.shape):
                workings = [explained_backward(case, index, toward, item, gradient, output) for item in items]
                wanted = slopes[toward][(0, *index) if given.batched else index]
                assert sum(working.result for working in workings) == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)


def explained_backward(case: Case, index, toward: int, item: int, gradient, output) -> Working:
    """The working of a gradient's cell; its operands hold what the cells that they name hold."""
    inputs = [given.source(str(i), item) for i, given in enumerate(case.inputs)]
    results = [Given(values).source(name, item) for name, values in (("∂y", gradient), ("y", output))]
    working = case.op.explain_backward(index, toward, *results, *inputs)
    sources = {source.name: source for source in (*inputs, *results)}
    for operand in (operand for entry in working.items for operand in operands(entry)):
        assert operand.value == sources[operand.name].cell(*operand.index)
    return working


@pytest.mark.parametrize("name", OVERWRITING)
def test_writing_over_the_first_input_gives_the_same(name, rng):
    case = CASES[name](rng)
    inputs = case.on(F64)
    written = case.op.forward(F64, *inputs, out=inputs[0])
    assert np.array_equal(written, result_of(case))
    assert np.shares_memory(written, inputs[0])


def test_float32_stays_float32_and_is_near_float64(case, rng):
    inputs = case.on(F32)
    output = case.op.forward(F32, *inputs)
    assert output.dtype == (np.int64 if case.op.integer else np.float32)
    np.testing.assert_allclose(output, result_of(case), rtol=1e-5, atol=2e-6)
    share = rng.standard_normal(output.shape).astype(np.float32)
    slopes = case.op.backward(F32, share, output, *inputs)
    assert {gradient.dtype for gradient in slopes if gradient is not None} <= {np.dtype(np.float32)}


def test_backward_reads_nothing_but_what_the_operation_says_and_nothing_is_changed(case, rng):
    inputs = case.on(F64)
    output = case.op.forward(F64, *inputs)
    share, before = rng.standard_normal(output.shape), output.copy()
    given_share = share.copy()
    wanted = case.op.backward(F64, share, output, *inputs)
    for array, old in ((share, given_share), (output, before), *zip(inputs, case.on(F64), strict=True)):
        assert np.array_equal(array, old, equal_nan=True)
    for array, given, slope in zip(inputs, case.inputs, wanted, strict=True):
        assert (None if slope is None else slope.shape) == (array.shape if given.differentiable else None)
    places = case.op.undone_from
    if places is not None:
        inputs = [array if place in places else None for place, array in enumerate(inputs)]
        output = output if RESULT in places else None
    for slope, right in zip(case.op.backward(F64, share, output, *inputs), wanted, strict=True):
        assert right is None if slope is None else np.array_equal(slope, right)


def test_the_result_has_the_shape_of_its_axes_and_the_sign_that_is_said_and_there_is_a_formula_and_a_cost(case):
    result = result_of(case)
    assert result.shape[1:] == case.shape
    assert case.op.signed or result.min() >= 0
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


def test_shares_do_not_overflow_and_of_experts_with_equal_logits_the_first_are_chosen():
    for op in (ops.Softmax(), *(ops.ExpertWeights(2, among_chosen=among) for among in (True, False))):
        shares = op.forward(F32, np.array([[[1e30, 1e30, -1e30]]], dtype=np.float32))
        assert shares.tolist() == [[[0.5, 0.5, 0.0]]]
        assert not ops.Softmax().forward(F64, np.full((BATCH, 3, 4), -np.inf)).any()
    # As of many, which a sort that is not stable mixes.
    shares = ops.ExpertWeights(3).forward(F64, np.tile([1.0, 0.0], (1, 1, 32)))
    assert np.flatnonzero(shares).tolist() == [0, 2, 4]


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


@pytest.mark.parametrize("width", [6, 7])
def test_sines_and_cosines_in_halves_are_the_interleaved_ones(width):
    places = np.array([[0, 1, 40]])
    mixed, halves = (ops.Sinusoid(width, halves=each).forward(F64, places) for each in (False, True))
    assert np.array_equal(halves, np.concatenate([mixed[..., ::2], mixed[..., 1::2]], axis=-1))


def test_activations_at_0_at_1_and_far_out_where_they_are_explained():
    for op, at_1 in ((ops.Silu(), 0.7310585786), (ops.GeluTanh(), 0.8411919906)):
        values = op.forward(F64, np.array([[[0.0, 1.0, 1e50, -1e50]]]))[0, 0]
        np.testing.assert_allclose(values, [0.0, at_1, 1e50, 0.0], rtol=1e-9)
    for op in (ops.Silu(), ops.GeluTanh(), ops.Gelu()):
        source = Given(np.array([[1e300, -1e300]]), batched=False).source("0", 0)
        assert [op.explain((0, column), source).result for column in (0, 1)] == [1e300, 0.0]


# The equation that a working closes with
def test_a_long_sum_shows_its_first_term_and_its_last_and_what_does_not_give_the_result_makes_no_equation():
    case = CASES["scores"](np.random.default_rng(5))
    working = case.op.explain((0, 0, 0), *(given.source(str(i), 0) for i, given in enumerate(case.inputs)))
    assert len(working.items[0]) == 2
    assert equation_of(working).count("·") == 2
    assert equation_of(Working((Value("a", 2.0), Value("+ b", 3.0)), 7.0)) == ""
    assert equation_of(Working((Value("a", 2.0), Value("b", 3.0)), 5.0)) == ""
    assert equation_of(Working((Value("a", 2.0), Value("+ b", -3.0), Value("· c", 4.0)), -4.0)) == "(2 + (−3)) · 4 = −4"


@hypothesis.given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back(value):
    text = spoken(value, 17)
    assert "-" not in text.partition("e")[0]
    assert float(text.replace("−", "-")) == value


@pytest.mark.parametrize(
    ("value", "text"), [(1.1e-5, "1.1e-5"), (-0.0, "0"), (2e12, "2e12"), (-math.inf, "−∞"), (math.nan, "NaN")]
)
def test_numbers_as_they_are_written(value, text):
    assert spoken(value) == text
