"""Answers: likely tokens, scores of texts, two models, experts, and the softmax as it is written."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plain_numpy import softmax
from reference import REFERENCES, in_float64
from refusing import refuses

from tui_transformer.analysis.expert_load import expert_load, expert_step, expert_steps
from tui_transformer.analysis.score import likely_at, score
from tui_transformer.analysis.two_models import loss_of
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.changes import Scale
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import LOGITS, cross_entropy
from tui_transformer.engine.program import PROBABILITIES
from tui_transformer.engine.targets import parse
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.model import Model
from tui_transformer.session.softmax_row import breaking_point, softmaxes

# The most likely tokens at a place: those of the trace, and of softmax(logits ÷ T)


@pytest.fixture(scope="module")
def trace():
    return Model.load("decoder").trace("the waves crashed")


def test_at_any_temperature_the_probabilities_are_those_of_the_logits_divided_by_it(trace):
    words = likely_at(trace, 1, 3)
    shares = trace[PROBABILITIES][1]
    assert [each.token for each in words] == np.argsort(-shares, kind="stable")[:3].tolist()
    assert [each.probability for each in words] == shares[[each.token for each in words]].tolist()
    assert [each.logit for each in words] == trace[LOGITS][1][[each.token for each in words]].tolist()
    for temperature in (0.25, 2.0, 100.0):
        cooled = np.sort(softmax(trace[LOGITS][2].astype(float) / temperature))[::-1]
        words = likely_at(trace, 2, 4, temperature)
        np.testing.assert_allclose([each.probability for each in words], cooled[:4], rtol=1e-9)
        assert [each.token for each in words] == [each.token for each in likely_at(trace, 2, 4)]
    # at 0 the largest logit takes all, and the order stays
    words = likely_at(trace, 0, 3, 0.0)
    assert [each.probability for each in words] == [1, 0, 0]
    assert [each.token for each in words] == [each.token for each in likely_at(trace, 0, 3)]
    edited = trace.edited([Edit(PROBABILITIES, (0, 4), 0.9)])
    assert likely_at(edited, 0, 1)[0].token == 4
    for temperature in (-1.0, float("nan"), float("inf")):
        refuses("temperature", lambda temperature=temperature: likely_at(trace, 0, 1, temperature), UsageError)


# The score of a text: by the loss of training, by hand, and at temperatures
TARGETS = (2, 3, -1)


@pytest.fixture(scope="module")
def short() -> Trace:
    return in_float64("decoder").trace(ids=[1, 2, 3])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_mean_is_the_loss_that_training_lessens(short: Trace, smoothing: float) -> None:
    targets = np.array([TARGETS])
    loss, _ = cross_entropy(numpy_backend("float64"), short["output.logits"][None].copy(), targets, smoothing)
    scored = score(short, TARGETS, smoothing=smoothing)
    assert scored.cross_entropy == pytest.approx(loss.mean, abs=1e-12)


def test_every_token_by_hand(short: Trace) -> None:
    scored = score(short, TARGETS, temperature=0.5)
    logits = short["output.logits"] / 0.5
    for token, position, target in zip(scored.tokens, (0, 1), (2, 3), strict=True):
        shares = softmax(logits[position])
        assert (token.position, token.token) == (position, target)
        assert token.probability == pytest.approx(shares[target])
        assert token.rank == 1 + sum(shares > shares[target])
    assert scored.log_probability == pytest.approx(sum(math.log(token.probability) for token in scored.tokens))
    assert scored.perplexity == pytest.approx(math.exp(-scored.log_probability / 2))


def test_a_perplexity_and_a_rank_of_what_is_no_number_are_none(short: Trace) -> None:
    broken = short.edited([Scale("output.logits", 1e30), Scale("output.logits", 1e30)] * 6)
    scored = score(broken, TARGETS)
    assert np.isnan(scored.log_probability)
    assert np.isnan(scored.perplexity)
    assert [token.rank for token in scored.tokens] == [0, 0]


def test_what_cannot_be_scored_is_refused(short: Trace) -> None:
    for temperature in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="temperature"):
            score(short, TARGETS, temperature=temperature)
    for smoothing in (-0.1, 1.0, math.nan):
        refuses("smoothing", lambda smoothing=smoothing: score(short, TARGETS, smoothing=smoothing), UsageError)
    refuses("no token is predicted", lambda: score(short, (-1, -1, -1)))


# Losses of a second model are measured where they were put
IDS = [5, 9, 2, 7, 11, 3]


def traced(family="llama"):
    return in_float64(family).trace(ids=IDS)


def test_a_model_loses_nothing_beside_itself_and_parts_that_only_one_has_are_left_out():
    loss = loss_of(traced(), traced())
    assert [each.name for each in loss.layers] == ["decoder.0.output", "decoder.1.output"]
    assert all((each.error, each.cosine) == (0.0, pytest.approx(1.0)) for each in loss.layers)
    assert all((each.error, each.divergence) == (0.0, 0.0) for each in loss.heads)
    assert (loss.logits.divergence, loss.logits.agreeing, loss.logits.positions) == (0.0, 6, 6)
    other = in_float64("bert").trace(ids=IDS)
    loss = loss_of(traced(), other)
    assert (loss.layers, loss.heads, loss.logits) == ((), (), None)
    own = loss_of(other, other)
    assert own.heads
    assert own.layers


def test_the_head_that_lost_all_comes_first():
    first = traced()
    second = first.edited(parse("head:decoder.1.self_attention:2").edits(first.program))
    loss = loss_of(first, second)
    assert (loss.heads[0].attention, loss.heads[0].head) == ("decoder.1.self_attention", 2)
    assert [each.error for each in loss.heads[:2]] == [pytest.approx(1.0), 0.0]
    assert loss.layers[0].error == 0.0 < loss.layers[1].error


def test_the_divergence_of_the_answers_is_that_of_the_formula():
    first = traced()
    second = first.edited(parse("head:decoder.0.self_attention:1").edits(first.program))
    loss = loss_of(first, second).logits
    p, q = (each["output.probabilities"] for each in (first, second))
    rows = (p * np.log(p / q)).sum(axis=1)
    assert loss.divergence == pytest.approx(rows.mean())
    assert loss.worst == (int(rows.argmax()), pytest.approx(rows.max()))
    assert loss.agreeing == (p.argmax(1) == q.argmax(1)).sum()
    assert loss.likeliest == (p[-1].argmax(), q[-1].argmax())


# How many tokens every expert got, and which ones a token chose
ROUTED = [5, 7, 9, 33, 12, 8]


@pytest.fixture(params=["mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss"])
def model(request) -> Model:
    return in_float64(request.param)


def test_every_token_is_counted_with_all_experts_that_it_chose_and_mean_shares_are_over_them(model):
    trace = model.trace(ids=ROUTED)
    for step in expert_steps(trace.program):
        load, shares = expert_load(trace, step), trace[step.name]
        assert sum(load.tokens) == len(ROUTED) * load.chosen
        assert load.tokens == tuple((shares > 0).sum(axis=0).tolist())
        assert load.even == pytest.approx(len(ROUTED) * load.chosen / shares.shape[1])
        for token in range(len(ROUTED)):
            chosen = load.of_token(token)
            assert len(chosen) == load.chosen
            assert chosen[0][0] == shares[token].argmax()
            assert [share for _, share in chosen] == sorted((share for _, share in chosen), reverse=True)
    # mean shares
    step = expert_steps(trace.program)[0]
    load, shares = expert_load(trace, step), trace[step.name]
    for expert, mean in enumerate(load.mean_shares):
        own = shares[:, expert][shares[:, expert] > 0]
        assert np.isnan(mean) if not own.size else mean == pytest.approx(own.mean())
    # padding
    trace, alone = model.trace(ids=[2, 2, *ROUTED], mask=[0, 0, *[1] * len(ROUTED)]), model.trace(ids=ROUTED)
    for step in expert_steps(trace.program):
        assert expert_load(trace, step).tokens == expert_load(alone, alone.program.step(step.name)).tokens


def test_a_router_and_its_shares_are_of_one_layer_and_other_steps_of_none():
    program = Model.load(REFERENCES / "mixtral", device="cpu").program(4)
    first = expert_steps(program)[0]
    assert expert_step(program, "decoder.0.feed_forward.router") == first
    assert expert_step(program, first.name) == first
    assert expert_step(program, "decoder.0.output") is None
    assert expert_steps(Model.load("encoder").program(4)) == ()


# Softmax as it is written and as it is computed
ROW = np.array([1.0, 2.0, 4.0], np.float32)


def test_both_are_the_same_until_an_exponential_overflows_or_all_are_zero() -> None:
    both = softmaxes(ROW, 80.0)
    assert not both.breaks
    np.testing.assert_allclose(both.naive, softmax(ROW), rtol=1e-5)
    np.testing.assert_allclose(both.safe, both.naive, rtol=1e-5)
    # below
    both = softmaxes(ROW, -200.0)
    assert both.breaks
    assert not both.powers.any()
    np.testing.assert_allclose(both.safe, softmaxes(ROW).safe, rtol=1e-4)
    # masked scores
    row = np.array([0.0, -np.inf], np.float32)
    raised = breaking_point(row)
    assert raised == 89.0
    both = softmaxes(row, raised)
    assert both.safe.tolist() == [1.0, 0.0]


def test_the_naive_one_breaks_where_the_exponential_overflows_and_not_before() -> None:
    for kind in (np.float32, np.float64):
        row = ROW.astype(kind)
        raised = breaking_point(row)
        assert raised is not None
        assert softmaxes(row, raised).breaks
        assert not softmaxes(row, raised - 1).breaks
        assert np.isnan(softmaxes(row, raised).naive).any()
        np.testing.assert_allclose(softmaxes(row, raised).safe, softmaxes(row).safe, rtol=1e-5)
    # a row of large scores breaks by a number that it can hold
    for row in ([1e6, 0.0], [3e9, -3e9], [1e30], [-1e38, -np.inf], [0.5, 1e20, np.finfo(np.float32).max]):
        scores = np.array(row, np.float32)
        raised = breaking_point(scores)
        assert raised is not None
        assert softmaxes(scores, raised).breaks
    # a row without shares cannot be broken
    for row in ([-np.inf], [-np.inf, -np.inf], [np.nan], [np.inf, 0.0], [np.nan, 1.0]):
        assert breaking_point(np.array(row, np.float32)) is None
