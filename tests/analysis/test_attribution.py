"""Attribution of logits and metrics, and circuits of weights."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from ended import ended
from reference import REFERENCES, in_float64, trace_of
from refusing import refuses

from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.circuits import chance, circuits, compositions, words_of
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.analysis.input_attribution import (
    gradient_times_input,
    gradients_of,
    gradients_of_cell,
    integrated_gradients,
)
from tui_transformer.analysis.metrics import METRICS, Metric
from tui_transformer.engine.changes import Add, Project, Scale, Set
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.gradient_explanation import explain_gradient, gradient_formula
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.views.step_view import circuit_view, composition_view

# Terms of a logit: they sum to it in every family, and each is what taking it out takes away
FOLDERS = sorted(REFERENCES.iterdir())
IDS = [5, 6, 7, 8, 9]
NORM = np.linalg.norm


traced = partial(trace_of, ids=IDS, decoder_ids=[0, 5, 6])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("neurons", [False, True])
def test_the_terms_sum_to_the_logit(folder, neurons):
    trace = traced(folder)
    attribution = attribute(trace, 11, 12, neurons=neurons)
    logits = trace["output.logits"][-1]
    assert attribution.logit == logits[11] - logits[12]
    assert abs(attribution.remainder) < 1e-13 * max(1.0, sum(abs(term.value) for term in attribution.terms))


@pytest.mark.parametrize("family", ["mixtral", "gpt_oss"])
def test_the_neurons_of_the_experts_that_a_token_chose_count_with_their_share(family):
    trace = traced(REFERENCES / family)
    terms = [term for term in attribute(trace, 11, neurons=True).terms if term.kind in ("neuron", "bias")]
    at = "decoder.1.feed_forward"
    chosen = np.flatnonzero(trace[f"{at}.expert_weights"][-1]).tolist()
    of_layer = [term for term in terms if term.name.startswith(f"{at}.experts.")]
    assert {int(term.name.split(".")[4]) for term in of_layer} == set(chosen)
    x = np.array(trace["decoder.1.feed_forward.residual"][-1])
    sigma = np.sqrt(np.mean(x * x) + trace.program.step("decoder.norm").op.epsilon)
    direction = trace["decoder.norm.weight"] / sigma * np.array(trace["output.logits.weight"])[:, 11]
    for expert in chosen:
        of = f"{at}.experts.{expert}"
        written = np.array(trace[f"{of}.gated"])[-1] * (np.array(trace[f"{of}.output.weight"]) @ direction)
        found = [term.value for term in of_layer if term.name == f"{of}.gated"]
        assert np.allclose(found, written * trace[f"{at}.expert_weights"][-1, expert], rtol=0, atol=1e-13)


@pytest.mark.parametrize("where", ["story", "copy", "encoder"])
def test_the_first_word_of_the_vocabulary_has_terms_too(where):
    trace = in_float64(where).trace(ids=[5, 6, 7])
    attribution = attribute(trace, 0)
    assert attribution.logit == trace["output.logits"][-1, 0]
    assert abs(attribution.remainder) < 1e-12


def test_a_head_counts_what_its_rows_of_the_output_matrix_write():
    trace = traced("story")
    attribution = attribute(trace, 11, position=2)
    x = np.array(trace["decoder.2.feed_forward.residual"][2])
    gamma, beta = trace["decoder.norm.weight"], trace["decoder.norm.bias"]
    centred = x - x.mean()
    sigma = np.sqrt((centred**2).mean() + trace.program.step("decoder.norm").op.epsilon)
    table = np.array(trace["embedding.tokens.weight"])[11]
    for layer, head in ((0, 1), (2, 3)):
        at = f"decoder.{layer}.self_attention"
        context = np.array(trace[f"{at}.context"])[head, 2]
        width = len(context)
        written = context @ np.array(trace[f"{at}.output.weight"])[head * width : (head + 1) * width]
        expected = ((written - written.mean()) / sigma * gamma) @ table
        term = next(t for t in attribution.terms if t.name == f"{at}.context" and t.number == head)
        assert term.kind == "head"
        assert np.isclose(term.value, expected, atol=1e-12)
    assert any(term.name == "decoder.norm.bias" and np.isclose(term.value, beta @ table) for term in attribution.terms)


EDITED = {
    "a stream set": [Set("1.output", 0.25)],
    "steered": [Add("0.output", np.linspace(-1, 1, 80)), Scale("1.output", 0.5)],
    "without a direction": [Project("1.output", np.linspace(1, 3, 80)), Set("1.output", 2.0, columns=3)],
    "heads side by side": [
        Set("1.self_attention.concat", 0.5, columns=range(10, 30)),
        Scale("1.feed_forward.output", 3),
    ],
    "a norm": [Add("decoder.norm", 0.5), Scale("decoder.norm", 2.0, columns=range(7))],
    "logits": [Scale("output.logits", 2.0), Add("output.logits", 1.0, columns=11)],
    "a weight, another row": [Scale("1.self_attention.output.weight", 2.0), Set("1.output", 0.0, rows=1)],
}


@pytest.mark.parametrize("name", EDITED)
def test_through_edits_a_term_counts_as_far_as_they_pass_it_on(name):
    plain = traced("story")
    trace = plain.edited(EDITED[name])
    found = attribute(trace, 11, 12)
    logits = trace["output.logits"][-1]
    assert found.logit == logits[11] - logits[12]
    assert abs(found.remainder) < 1e-12
    assert name.startswith("a weight") or any(term.kind == "edit" for term in found.terms)
    heads = [term.value for term in found.terms if term.kind == "head"]
    spelled = [each.logits[11] - each.logits[12] for each in head_lens(trace, len(IDS) - 1)]
    np.testing.assert_allclose(spelled, heads, atol=1e-12)
    if name == "a stream set":
        assert not np.any(heads[:8])
        assert heads != [term.value for term in attribute(plain, 11, 12).terms if term.kind == "head"]


def test_in_float32_the_remainder_is_rounding_and_what_cannot_be_attributed_is_refused():
    attribution = attribute(Model.load("story", device="cpu").trace(ids=IDS), 11)
    assert 0 < abs(attribution.remainder) < 1e-4
    trace = traced("story")
    for arguments, says in (((99_999,), "no token 99999"), ((1, -3), "no token -3")):
        refuses(says, lambda arguments=arguments: attribute(trace, *arguments))
    refuses("no position 7", lambda: attribute(trace, 1, position=7))
    refuses("no logits of words", lambda: attribute(Model.load("attention").trace(), 1))


# Gradients of metrics and cells, gradient × input and integrated gradients, beside differences and sums by hand
LETTERS = [2, 5, 3, 6]
LAST = range(3, 4)
START = "embedding.output"
METRIC = Metric("difference", (1, 4))


@pytest.fixture(scope="module")
def trace():
    sizes = {"layers": 2, "heads": 2, "d_model": 8, "d_ff": 12, "norm": "pre", "activation": "gelu", "seed": 4}
    return in_float64("decoder", **sizes).trace(ids=LETTERS)


def by_differences(trace, measure, name, step=1e-5):
    """∂f/∂x of every cell, by central differences."""
    values = np.zeros(trace.program.shape(name))
    for index in np.ndindex(values.shape):
        way = np.zeros_like(values)
        way[index] = step
        high, low = (measure(trace.edited([Add(name, sign * way)])) for sign in (1, -1))
        values[index] = (high - low) / (2 * step)
    return values


@pytest.mark.parametrize("name", ["logit", "log-probability", "difference", "loss"])
@pytest.mark.parametrize("step", [START, "decoder.1.self_attention.weights"])
def test_the_gradient_of_a_metric_is_how_it_moves(trace, name, step):
    metric = Metric(name, (1, 4)[: METRICS[name].tokens])
    computed = gradients_of(trace, metric, LAST)
    assert computed.loss == metric.measure(trace, trace, LAST)
    wanted = by_differences(trace, lambda other: metric.measure(other, trace, LAST), step)
    np.testing.assert_allclose(computed.values[step], wanted, atol=1e-8)


def test_the_gradient_of_a_cell_is_how_it_moves_and_the_divergence_from_the_sentence_as_it_is(trace):
    name, index = "decoder.1.self_attention.scaled", (1, 3, 2)
    computed = gradients_of_cell(trace, "1.self_attention.scaled", index)
    assert computed.loss == trace[name][index]
    np.testing.assert_allclose(
        computed.values[START], by_differences(trace, lambda other: other[name][index], START), atol=1e-8
    )
    assert "output.logits" not in computed.values
    assert computed.values[name].sum() == 1
    refuses("has no cell", lambda: gradients_of_cell(trace, name, (1, 3, 9)))
    refuses("depends on no weight", lambda: gradients_of_cell(trace, "tokens", (0,)))
    for given in (np.array(index), list(index), tuple(map(np.int64, index))):  # as argwhere and unravel_index give it
        again = gradients_of_cell(trace, "1.self_attention.scaled", given)
        assert (again.loss, repr(again)) == (computed.loss, repr(computed))
    attribution = integrated_gradients(trace, Metric("divergence"), LAST, baseline=np.linspace(-1, 1, 8), points=128)
    assert attribution.value == 0
    assert attribution.baseline > 0
    assert attribution.remainder == pytest.approx(0, abs=1e-4)


def test_the_loss_on_targets_and_one_sentence_of_a_batch_have_their_gradients(trace):
    targets = (5, 3, 6, -1)
    computed, wanted = gradients_of(trace, Metric("loss", (), targets), LAST), gradients(trace, [targets])
    assert computed.loss == pytest.approx(wanted.loss, abs=1e-12)
    assert computed.values.keys() == wanted.values.keys()
    for name, value in wanted.values.items():
        np.testing.assert_allclose(computed.values[name], value, atol=1e-12)
    # a sentence of a batch
    both = in_float64("decoder", layers=1, d_model=8).trace(ids=[LETTERS, [1, 2, 3, 4]])
    computed = gradients_of(both, METRIC, LAST, item=1)
    assert (computed.values[START][0] == 0).all()
    alone = in_float64("decoder", layers=1, d_model=8).trace(ids=[1, 2, 3, 4])
    np.testing.assert_allclose(computed.values[START][1], gradients_of(alone, METRIC, LAST).values[START], atol=1e-12)


def test_gradient_times_input_is_that_product_and_every_cell_of_the_gradient_is_explained(trace):
    attribution = gradient_times_input(trace, METRIC, LAST)
    wanted = by_differences(trace, lambda other: METRIC.measure(other, trace, LAST), START) * trace[START]
    np.testing.assert_allclose(attribution.cells, wanted, atol=1e-8)
    np.testing.assert_allclose(attribution.rows, wanted.sum(axis=1), atol=1e-7)
    assert attribution.remainder is None
    computed = gradients_of(trace, METRIC, LAST)
    assert gradient_formula(trace, computed, "output.logits") == "1 at the first token, −1 at the second"
    for name, index in (("output.logits", (3, 4)), ("decoder.1.self_attention.output", (2, 5)), (START, (1, 1))):
        explained = explain_gradient(trace, computed, (), name, index)
        assert explained.recomputed == pytest.approx(explained.stored, abs=1e-12)


def test_integrated_gradients_can_end_at_every_step_of_a_point_and_what_is_no_input_is_refused(trace):
    steps = iter(range(20))
    told = ended(
        lambda report: integrated_gradients(trace, METRIC, LAST, report=report), lambda _: next(steps, None) is None
    )
    assert told == ["1 of 64 points"] * 21
    with pytest.raises(InputError, match="is no input of one sentence"):
        gradient_times_input(trace, METRIC, LAST, "decoder.0.self_attention.weights")
    refuses("does not fit", lambda: integrated_gradients(trace, METRIC, LAST, baseline=np.ones(3)))
    refuses("points is 0: use 1 or more", lambda: integrated_gradients(trace, METRIC, LAST, points=0), UsageError)
    with pytest.raises(InputError, match="does not depend on"):
        gradient_times_input(trace, Metric("logit", (1,)), LAST, "output.probabilities")


def test_integrated_gradients_are_the_mean_gradient_and_complete(trace):
    baseline = np.cos(np.arange(8))
    attribution = integrated_gradients(trace, METRIC, LAST, baseline=baseline, points=128)
    x = trace[START]
    start = np.broadcast_to(baseline, x.shape)
    assert attribution.baseline == pytest.approx(METRIC.measure(trace.edited([Set(START, start)]), trace, LAST))
    assert attribution.remainder == pytest.approx(0, abs=1e-4)
    assert attribution.cells.sum() + attribution.remainder == pytest.approx(
        attribution.value - attribution.baseline, abs=1e-12
    )
    count = 100
    places = (np.arange(count) + 0.5) / count  # the midpoints of a plain sum in α, crowded near the baseline
    total = np.zeros_like(x)
    for place in places:
        edited = trace.edited([Set(START, start + place**3 * (x - start))])
        total += 3 * place**2 / count * gradients_of(edited, METRIC, LAST).values[START]
    np.testing.assert_allclose(attribution.cells, (x - start) * total, atol=2e-3)


# Circuits of weights, beside the whole d × d matrices and the words × words one


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "bart", "gemma2", "albert", "gpt_oss"])
def test_what_a_head_writes_is_its_part_of_the_attention(name):
    trace = trace_of(name, [5, 6, 7], [0, 5])
    every = list(circuits(trace))
    assert len(every) == sum(trace.program.shape(each.attention.name)[0] for each in every if each.head == 0)
    for each in every:
        place = each.attention.name.rpartition(".")[0]
        source, _, *biases = trace.program.step(f"{place}.value").inputs
        values = np.array(trace[source]) @ each.value
        for bias in biases:
            shared = each.attention.heads // trace.program.shape(f"{place}.value")[0]
            width = values.shape[1]
            values = values + np.array(trace[bias])[(each.head // shared) * width :][:width]
        written = np.array(trace[f"{place}.weights"])[each.head] @ values
        assert np.allclose(written, np.array(trace[f"{place}.context"])[each.head], atol=1e-12)


def test_values_are_those_of_the_whole_matrices_of_the_layers_that_there_are():
    trace = in_float64("copy").trace(ids=[5, 6, 7])
    words = words_of(trace)
    table = np.array(trace["embedding.tokens.weight"])
    step = trace.program.step("output.logits")
    head = np.array(trace[step.inputs[1]])
    leave = head.T if head.shape == table.shape else head
    for each in circuits(trace):
        rank = each.query.shape[1]
        for matrix, singular, eigen in (
            (each.ov, each.ov_values, each.ov_eigenvalues),
            (each.qk, each.qk_values, each.qk_eigenvalues),
        ):
            assert np.allclose(np.linalg.svd(matrix, compute_uv=False)[:rank], singular, atol=1e-10)
            assert np.isclose(np.trace(matrix), eigen.sum().real, atol=1e-9)
        whole = np.linalg.eigvals(table @ each.ov @ leave)
        assert np.isclose(whole.sum().real / np.abs(whole).sum(), words.copying(each), atol=1e-6)
    # only a layer
    trace = Model.load("copy", device="cpu").trace(ids=[5, 6])
    assert {each.attention.layer for each in circuits(trace, 1)} == {1}
    refuses("no layer 9", lambda: list(circuits(trace, 9)))
    refuses("no circuits", lambda: list(circuits(Model.load("attention").trace())))


# Composition scores beside the products of whole d × d matrices
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_scores_are_those_of_the_whole_matrices(name):
    heads = list(circuits(in_float64(name).trace(ids=[5, 6])))
    for reads, matrix in (("Q", lambda h: h.qk), ("K", lambda h: h.qk.T), ("V", lambda h: h.ov)):
        paths = list(compositions(heads, reads))
        per_layer = heads[0].attention.heads
        layers = len(heads) // per_layer
        assert len(paths) == per_layer**2 * layers * (layers - 1) // 2
        for path in paths:
            assert path.source.attention.layer < path.target.attention.layer
            ov, read = path.source.ov, matrix(path.target)
            assert path.score == pytest.approx(NORM(ov @ read) / (NORM(ov) * NORM(read)), rel=1e-9)


def test_compositions_tell_how_far_they_are_can_be_ended_and_by_chance_are_those_of_turned_directions():
    heads = list(circuits(in_float64("copy").trace(ids=[5])))
    said: list[str] = []
    list(compositions(heads, "K", said.append))
    assert said == ["layer 1 of 2", "layer 2 of 2"]
    ended(lambda report: list(compositions(heads, "K", report)))
    # by chance
    first, *_, last = circuits(in_float64("copy").trace(ids=[5]))
    rng, scores = np.random.default_rng(0), []
    for _ in range(200):
        turn = np.linalg.qr(rng.standard_normal((64, 64)))[0]
        scores.append((NORM(first.ov @ turn @ last.qk) / (NORM(first.ov) * NORM(last.qk))) ** 2)
    assert np.sqrt(np.mean(scores)) == pytest.approx(chance(first), rel=0.02)


def test_scores_and_matrices_can_be_viewed_and_cross_attention_reads_the_encoder():
    model = in_float64("bart")
    heads = list(circuits(model.trace(ids=[5, 6], decoder_ids=[0, 5])))
    keys = [path for path in compositions(heads, "K") if path.target.attention.kind == "cross_attention"]
    assert {path.source.attention.stack for path in keys} == {"encoder"}
    queries = [path for path in compositions(heads, "Q") if path.target.attention.kind == "cross_attention"]
    assert {path.source.attention.stack for path in queries} == {"decoder"}
    refuses("reads no 'O'", lambda: list(compositions(heads, "O")), UsageError)
    # views
    heads = list(circuits(in_float64("copy").trace(ids=[5])))
    view = circuit_view(heads[3], "OV")
    assert np.array_equal(view.window(range(2, 5), range(4)), heads[3].ov[2:5, :4])
    paths = list(compositions(heads, "K"))
    scores = composition_view(heads, paths, "K")
    whole = scores.window(range(len(heads)), range(len(heads)))
    assert np.isfinite(whole).sum() == len(paths)
    assert whole[1, 5] == next(path.score for path in paths if path.source is heads[1] and path.target is heads[5])
    assert (scores.rows.label(1), scores.columns.label(5)) == ("0.1", "1.1")
