"""Values set by hand, changed by formulas and functions: what they reach is computed again, the rest is shared."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same
from reference import IDS, in_float64, with_weights
from reference import trace_of as trace_of_reference
from refusing import refuses

from tui_transformer import generate
from tui_transformer.engine.changes import Add, Apply, Project, Scale, Set
from tui_transformer.engine.edits import Ablate, Edit, Patch, how_set
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

SCOPE = "decoder.0.self_attention"
CONTEXT, STREAM = "decoder.0.self_attention.context", "decoder.0.output"
VECTOR = np.linspace(-1, 1, 16)


@pytest.fixture
def model() -> Model:
    sizes = {"layers": 2, "heads": 4, "d_model": 16, "d_ff": 12, "norm": "pre", "tie_output": True, "bias": True}
    return in_float64("decoder", **sizes)


@pytest.fixture
def trace(model) -> Trace:
    return model.trace(ids=IDS)


def changed_names(trace: Trace, other: Trace) -> set[str]:
    return {name for name in trace if not np.array_equal(trace[name], other[name])}


@pytest.mark.parametrize(
    ("weight", "index"),
    [
        ("embedding.tokens.weight", (5, 2)),
        (f"{SCOPE}.value.weight", (3, 7)),
        (f"{SCOPE}.output.bias", (1,)),
        ("decoder.norm.weight", (0,)),
    ],
)
def test_an_edited_weight_is_as_a_model_with_that_weight(model, trace, weight, index):
    def change(name, array):
        array = np.array(array)
        if name == weight:
            array[index] = 0.75
        return array

    wanted = with_weights(model, change).trace(ids=IDS)
    edited = trace.edited([Edit(weight, index, 0.75)])
    assert edited[weight][index] == 0.75
    assert changed_names(trace, edited)
    assert all(np.array_equal(edited[name], wanted[name]) for name in trace)


def test_an_edit_changes_what_depends_on_it_alone_and_what_is_computed_is_there_for_the_base(trace):
    edited = trace.edited([Edit("output.logits", (0, 0), 4.0)])
    edited.compute()
    assert trace.held == set(trace.program.by_name) - {"output.logits", "output.probabilities"}
    assert edited.held == set(trace.program.by_name)
    reached = trace.program.downstream(["decoder.1.self_attention.query"])
    assert "decoder.1.self_attention.key" not in reached
    assert "decoder.1.self_attention.scores" in reached
    before = {name: trace[name].copy() for name in trace}
    trace.edited([Edit("embedding.tokens.weight", (5, 0), 9.0), Edit("embedding.output", (1, 1), 9.0)]).compute()
    assert all(np.array_equal(trace[name], before[name]) for name in before)
    # the cost, and no edits
    trace.compute()
    edited = trace.edited([Edit("output.logits", (0, 0), 4.0)])
    assert edited.pending(["output.probabilities"]) == trace.program.flops(trace.program.step("output.probabilities"))
    edited = trace.edited([Edit("embedding.output", (0, 0), 1.0)])
    assert edited.edited([]) is edited
    assert trace.edited([]) is trace


def test_what_edits_make_nan_or_nothing_is_explained_as_it_is(trace):
    none = trace.edited([Set("0.feed_forward.norm", np.inf, rows=2)])
    for name, cell in (("0.feed_forward.hidden", (2, 1)), ("0.feed_forward.activation", (2, 1))):
        explained = none.explain_cell(name, cell)
        assert np.isnan(explained.stored)
        assert np.isnan(explained.recomputed)

    experts = trace_of_reference("mixtral")
    output = "decoder.0.feed_forward.output"
    shares = experts.program.step(output).inputs[0]
    explained = experts.edited([Set(shares, 0.0, rows=1)]).explain_cell(output, (1, 3))
    assert (explained.recomputed, explained.stored, len(explained.items)) == (0.0, 0.0, 1)


def test_windows_show_the_edits_and_changes_of_steps_that_are_not_kept(trace, model):
    edited = trace.edited([Edit("embedding.output", (2, 3), 1.5), Edit("embedding.tokens.weight", (5, 1), 0.5)])
    assert edited.window("embedding.output", (range(2, 4), range(3, 5)))[0, 0] == 1.5
    assert edited.window("embedding.tokens.weight", (range(5, 6), range(2)))[0, 1] == 0.5
    name = "decoder.0.self_attention.weights"
    changes = [Scale(name, 2.0, rows=range(1, 4)), Apply(name, function=lambda x: x / x.sum(axis=-1, keepdims=True))]
    kept, dropped = (model.trace(ids=IDS, budget=budget).edited(changes) for budget in (1 << 30, 0))
    region = range(1, 3), range(2, 5), range(1, 4)
    np.testing.assert_array_equal(dropped.window(name, region), kept[name][1:3, 2:5, 1:4])
    np.testing.assert_allclose(dropped["output.logits"], kept["output.logits"], atol=1e-12)


def test_what_was_done_last_to_a_cell_is_told() -> None:
    name, region = "encoder.0.output", (range(2), range(3))
    done = (Edit(name, (0, 0), 1.0), Ablate(name, region), Edit(name, (1, 1), 2.0))
    told = [how_set(done, *cell) for cell in ((name, (0, 0)), (name, (1, 1)), (name, (1, 3)), ("tokens", (0,)))]
    assert told == ["ablated to 0", "set by hand", "", ""]


def test_the_mean_over_a_sentence_of_padding_is_that_of_all_positions() -> None:
    model = in_float64("encoder", vocabulary="nation")
    pad = model.vocabulary.pad_id
    trace = model.trace(ids=[[pad, pad, pad], [4, 5, pad]])
    name = "encoder.0.feed_forward.output"
    region = tuple(range(size) for size in trace.program.shape(name))
    values, edited = trace[name], trace.edited([Ablate(name, region, mean=True)])[name]
    np.testing.assert_allclose(edited[0], np.broadcast_to(values[0].mean(axis=0), values[0].shape))
    np.testing.assert_allclose(edited[1], np.broadcast_to(values[1, :2].mean(axis=0), values[1].shape))


def test_an_edit_that_a_trace_has_sets_another_sentence_to_its_own_mean(model, trace):
    mean = Ablate("decoder.1.output", (range(5), range(16)), mean=True)
    other, placed = model.trace(ids=[6, 3, 5, 2, 4]), trace.edited([Add("0.output", VECTOR), mean]).edits
    np.testing.assert_array_equal(other.edited(placed[1:])["1.output"], other.edited([mean])["1.output"])


# Several experiments in one batch, each as alone

MODELS = {
    "encoder": {"layers": 3, "pad_id": 1},
    "decoder": {"layers": 3},
    "encoder-decoder": {"layers": 2, "decoder_layers": 2},
}
SCOPES = {"encoder": "encoder.1", "decoder": "decoder.1", "encoder-decoder": "decoder.1"}
BUDGETS = (0, 1 << 16, 1 << 30)


def trace_of(name: str, budget: int = 1 << 30):
    model = in_float64(name, **MODELS[name])
    ids = [*IDS[:-1], 1] if name == "encoder" else IDS
    return model.trace(ids=ids, decoder_ids=[2, 3, 4] if model.has_decoder else None, budget=budget)


def experiments(name: str):
    scope = SCOPES[name]
    context = f"{scope}.self_attention.context"
    rows, width = (range(size) for size in trace_of(name).program.shape(context)[1:])
    return [
        [Ablate(context, (range(1), rows, width))],
        [Ablate(context, (range(1, 2), rows, width), mean=True)],
        [Edit(f"{scope}.self_attention.query", (0, 1, 0), 0.5), Edit(f"{scope}.feed_forward.hidden", (1, 3), -2.0)],
        [Patch.of(f"{scope}.self_attention.residual", np.ones((1, 8)), (range(1, 2), range(8)))],
        [],
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_sentence_of_the_batch_is_an_experiment_alone(name, budget):
    trace, edits = trace_of(name, budget), experiments(name)
    together = trace.edited_each(edits)
    assert together.batch == len(edits)
    alone = [trace_of(name).edited(each) for each in edits]
    for item, wanted in enumerate(alone):
        found = {step: together[step][item] for step in trace.program.by_name}
        assert_same(found, wanted, found, rtol=1e-10, atol=1e-12)


def test_experiments_are_changed_further_and_each_is_explained_as_if_alone(trace):
    first = [
        [Add("0.output", VECTOR), Scale("1.self_attention.query", 2.0)],
        [Set("0.output", 0.1, rows=range(2, 4))],
        [],
    ]
    mean = Ablate("decoder.1.output", (range(5), range(16)), mean=True)
    further = trace.edited_each(first).edited([mean])
    for item, own in enumerate(first):
        wanted = trace.edited([*own, mean])
        np.testing.assert_allclose(further["output.logits"][item], wanted["output.logits"], atol=1e-12)
        np.testing.assert_allclose(further.sentence(item)["1.output"], wanted["1.output"], atol=1e-12)

    again = trace.edited_each([first[0]]).edited_each([first[1], []])
    for item, own in enumerate((first[0] + first[1], first[0])):
        np.testing.assert_allclose(again["1.output"][item], trace.edited(own)["1.output"], atol=1e-12)

    together, targets = trace.edited_each(first), [5, 3, 6, 4, -1]
    slopes = gradients(together, [targets] * 3)
    for item, own in enumerate(first):
        for name, cell in (
            (STREAM, (2, 3)),
            ("decoder.0.feed_forward.output", (2, 3)),
            ("1.self_attention.query.weight", (1, 2)),
        ):
            explained = explain_gradient(together, slopes, targets, name, cell, item)
            assert explained.recomputed == pytest.approx(explained.stored, abs=1e-12)
        wanted = trace.edited(own).explain_cell(STREAM, (2, 3)).edited
        assert together.explain_cell(STREAM, (2, 3), item).edited == wanted


def test_what_lies_before_the_edits_is_computed_for_one_sentence():
    trace = trace_of("decoder", budget=0)
    ran = []
    together = trace.edited_each(experiments("decoder")[:2], budget=0)
    together.compute(before=lambda step: ran.append(step.name))
    reached = trace.program.downstream(["decoder.1.self_attention.context"])
    assert "decoder.0.feed_forward.hidden" in ran
    assert not reached.isdisjoint(ran)
    ran.remove("decoder.1.self_attention.context")  # computed for the one, changed in the batch
    assert len(ran) == len(set(ran))
    assert all(array.shape[0] == 1 for array in together._values.shared.values())


def test_edits_that_a_trace_has_stay_in_every_sentence_and_the_trace_as_it_is():
    first = Edit("decoder.0.feed_forward.hidden", (1, 3), 4.0)
    edits = experiments("decoder")[:2]
    together = trace_of("decoder").edited([first]).edited_each(edits)
    for item, each in enumerate(edits):
        wanted = trace_of("decoder").edited([first, *each])["output.logits"]
        np.testing.assert_allclose(together["output.logits"][item], wanted, rtol=1e-10, atol=1e-12)
    trace = trace_of("decoder")
    before = trace["output.logits"].copy()
    trace.edited_each(experiments("decoder")).compute()
    assert np.array_equal(trace["output.logits"], before)
    assert all(trace.held_value(name).shape[0] == 1 for name in trace.held)


# Values set, added and multiplied, and functions: beside the same by hand, forwards and backwards
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
    patched = trace.edited([Patch.of(STREAM, wanted)])["output.logits"]
    np.testing.assert_allclose(edited["output.logits"], patched, atol=1e-12)
    assert np.shares_memory(edited[CONTEXT], trace[CONTEXT])


def test_a_head_is_changed_alone_and_changes_add_up_in_order(trace):
    edited = trace.edited([Scale("0.self_attention.context", 0.0, heads=range(2, 3))])
    wanted = trace.edited([Ablate(CONTEXT, (range(2, 3), range(5), range(4)))])
    np.testing.assert_array_equal(edited["output.logits"], wanted["output.logits"])
    edited = trace.edited([Add("0.output", 1.0)]).edited([Scale("0.output", 2.0)])
    np.testing.assert_allclose(edited[STREAM], (trace[STREAM] + 1) * 2, atol=1e-12)


@pytest.mark.parametrize("where", [{}, {"rows": range(1, 4), "columns": range(2)}])
@pytest.mark.parametrize("axis", [-3, -2, -1])
def test_a_function_sees_all_its_cells_in_whatever_window_is_asked_for(model, axis, where):
    name = "decoder.0.self_attention.weights"
    change = Apply(name, function=lambda x: x - x.mean(axis=axis, keepdims=True), **where)
    kept, dropped = (model.trace(ids=IDS, budget=budget).edited([change]) for budget in (1 << 30, 0))
    region = range(1, 3), range(2, 5), range(1, 4)
    np.testing.assert_allclose(dropped.window(name, region), kept[name][1:3, 2:5, 1:4], atol=1e-15)


def test_weights_are_set_from_arrays_and_have_no_experiments_of_their_own(model, trace):
    name = "decoder.0.feed_forward.output.weight"
    other = np.random.default_rng(0).standard_normal(trace.program.shape(name))
    edited = trace.edited([Patch.of("0.feed_forward.output.weight", other)])
    np.testing.assert_array_equal(edited[name], other)
    wanted = trace["decoder.0.feed_forward.activation"] @ other + trace["decoder.0.feed_forward.output.bias"]
    np.testing.assert_allclose(edited["decoder.0.feed_forward.output"], wanted, atol=1e-12)
    halved = trace.edited([Scale(name, 0.5), Add("0.feed_forward.output.bias", np.ones(16))])
    np.testing.assert_array_equal(halved[name], trace[name] / 2)
    assert not np.array_equal(model.trace(ids=IDS)[name], halved[name])
    with pytest.raises(InputError, match="is a weight: it is the same for all sentences"):
        trace_of("decoder").edited_each([[Edit("output.logits.weight", (0, 0), 1.0)]])
    batch = Model.load("decoder", device="cpu").trace(ids=[IDS, IDS])
    refuses("of a single sentence", lambda: batch.edited_each([[]]), UsageError)


@pytest.mark.parametrize(
    "change",
    [
        Add("0.output", VECTOR),
        Scale("0.output", VECTOR, rows=range(1, 4)),
        Set("0.output", 0.1, rows=range(2)),
        Project("0.output", VECTOR),
    ],
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


def test_of_directions_that_share_columns_a_window_has_what_the_whole_step_has() -> None:
    changes = [
        Project("output.logits", VECTOR[:5], columns=range(3, 8)),
        Project("output.logits", VECTOR[:4], columns=range(4)),
    ]
    kept, dropped = (
        Model.load("decoder", device="cpu", dtype="float64").trace(ids=IDS, budget=b).edited(changes)
        for b in (1 << 30, 0)
    )
    for column in (0, 3, 7):
        part = dropped.window("output.logits", (range(1, 2), range(column, column + 1)))
        assert part[0, 0] == pytest.approx(kept["output.logits"][1, column], abs=1e-12)


def test_what_cannot_be_changed_is_refused_and_a_function_has_to_keep_the_shape_and_passes_no_gradient(trace):
    for change, says in (
        (Add("0.output", np.ones(7)), "values of 7 do not fit the 5 × 16 of decoder.0"),
        (Set("0.output", float("nan")), "not by NaN"),
        (Set("0.output", 1.0, heads=range(1)), "has no heads: leave them out"),
        (Set("0.output", 1.0, rows=range(4, 6)), "has no rows 4 to 5: use 0 to 4"),
        (
            Ablate("decoder.0.feed_forward.output.weight", (range(12), range(16)), mean=True),
            "has no mean over positions",
        ),
    ):
        refuses(says, lambda change=change: trace.edited([change]))
    with pytest.raises(InputError, match="the function gave 1 × 5 × 3, not 1 × 5 × 16 numbers"):
        _ = trace.edited([Apply("0.output", function=lambda x: x[..., :3])])[STREAM]
    with pytest.raises(InputError, match="by a function of yours"):
        gradients(trace.edited([Apply("0.output", function=np.tanh)]), [5, 3, 6, 4, -1])


def test_heads_rows_and_columns_may_be_lists_and_names_patterns(trace):
    name = f"{SCOPE}.context"
    own, values = trace[name], np.arange(3 * 5 * 4.0).reshape(3, 5, 4)
    for listed in ([3, 0, 1], (0, 1, 3), np.array([2, 0, 3])):
        wanted = own.copy()
        wanted[list(listed)] = values
        assert np.array_equal(trace.edited([Set(name, values, heads=listed)])[name], wanted)
    wanted = own.copy()
    wanted[np.ix_([1, 3], [0, 4], [0, 1, 3])] += [1.0, 2, 3]
    edited = trace.edited([Add(name, [1.0, 2, 3], heads=[1, 3], rows=[0, 4], columns=[0, 1, 3])])
    np.testing.assert_allclose(edited[name], wanted, atol=1e-12)
    batch = trace.edited_each([[Set(name, 0.0, heads=[0, 2])], []])[name]
    assert not batch[0, [0, 2]].any()
    assert np.array_equal(batch[1], own)
    every = trace.edited([Scale("*.self_attention.context", 0.0, heads=[0, 3])])
    for layer in range(2):
        context = every[f"{layer}.self_attention.context"]
        assert not context[[0, 3]].any()
        assert context[[1, 2]].any()
    refuses("do not fit the 2 heads", lambda: trace.edited([Set(name, np.zeros((3, 5, 4)), heads=[0, 2])]))
    refuses("no step is called", lambda: trace.edited([Set("*.nothing", 0.0)]))
    refuses("in neighbouring columns", lambda: trace.edited([Project("0.output", [1.0, 2], columns=[0, 2])]))


def test_lists_and_patterns_act_while_a_text_is_written():
    model = Model.load("story", device="cpu")
    listed = [Scale("*.self_attention.context", 0.0, heads=[0, 2])]
    each = [Scale(f"{i}.self_attention.context", 0.0, heads=head) for i in range(3) for head in (0, 2)]
    texts = [generate(model, "Once there", edits=edits, max_new_tokens=8) for edits in (listed, each, [])]
    assert texts[0] == texts[1] != texts[2]


def test_edits_of_a_generator_are_made_and_no_list_of_experiments_is_refused(trace):
    edits = [Scale(CONTEXT, 0.0, heads=head) for head in (0, 2)]
    given = trace.edited(edit for edit in edits)
    assert len(given.edits) == 2
    assert_same(given, trace.edited(edits), [STREAM])
    refuses("a list of edits or more", lambda: trace.edited_each([]), UsageError)


@pytest.mark.parametrize("change", [Set, Add, Scale, Patch.of])
def test_an_array_that_is_written_to_after_the_edit_leaves_the_trace_as_it_was_asked_for(trace, change):
    values = np.linspace(-1, 1, 5 * 16).reshape(5, 16)
    wanted = trace.edited([change("0.output", values.copy())])["output.logits"]
    edited = trace.edited([change("0.output", values)])
    values *= 3
    np.testing.assert_array_equal(edited["output.logits"], wanted)


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_a_budget_below_nothing_is_refused(model, trace, budget):
    for ask in (lambda: model.trace(ids=IDS, budget=budget), lambda: trace.edited([Add("0.output", 1.0)], budget)):
        with pytest.raises(InputError, match="bytes that may be kept: 0 or more"):
            _ = ask()["output.logits"]
