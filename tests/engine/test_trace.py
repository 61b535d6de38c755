"""A trace: names, values on demand, read-only arrays, batches, windows, explanations, and as a mapping."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from comparing import cut, random_region
from numpy.lib.array_utils import byte_bounds
from refusing import refuses

from tui_transformer.engine.edits import Edit, Patch
from tui_transformer.engine.program import Program, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

TEXT, TARGET = "The waves crashed forcefully against the shore!", "Against the shore"
MODERN = {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True}
MODELS = {
    "encoder": ("encoder", {"layers": 2}),
    "encoder without positions": ("encoder", {"positions": "none", "scale_embedding": True}),
    "decoder": ("decoder", {"layers": 2}),
    "pre-norm decoder": ("decoder", MODERN),
    "pre-norm encoder": ("encoder", {"norm": "pre", "causal": True, "bias": True}),
    "encoder-decoder": ("encoder-decoder", {"decoder_layers": 2}),
    "pre-norm encoder-decoder": ("encoder-decoder", MODERN),
}
SHORT = "the waves crashed"


@pytest.fixture(params=MODELS)
def model(request) -> Model:
    name, sizes = MODELS[request.param]
    return Model.load(name, device="cpu", d_model=12, heads=3, d_ff=20, **sizes)


@pytest.fixture
def trace(model) -> Trace:
    return model.trace(TEXT, decoder_text=TARGET if model.has_decoder else None)


@pytest.fixture
def encoder() -> Trace:
    return Model.load("encoder", device="cpu", layers=2).trace(TEXT)


def test_nothing_is_computed_before_it_is_asked_for_and_another_name_has_the_same_array(trace):
    assert trace.held == frozenset()
    assert trace.weights.held == {}
    assert len(set(trace.names)) == len(trace.names)
    for alias, name in trace.program.aliases.items():
        assert np.shares_memory(trace[alias], trace[name])


def test_steps_read_only_steps_before_them_and_weights_are_named_after_the_step_that_uses_them(model, trace):
    known = {*trace.program.weights, *trace.program.givens}
    for step in trace.program.steps:
        assert known >= set(step.inputs), step.name
        known.add(step.name)
    for weight in trace.program.weights:
        readers = [step.name for step in trace.program.readers(weight)]
        assert readers[0] == weight.rpartition(".")[0], weight
        again = (model.config.tie_output + model.has_decoder) * (weight == "embedding.tokens.weight")
        assert len(readers) == 1 + again, weight


def test_arrays_are_read_only(trace):
    for name in (*trace, *trace.program.weights, *trace.program.givens):
        with pytest.raises(ValueError, match="read-only"):
            trace[name][...] = 0
    with pytest.raises(ValueError, match="read-only"):
        trace.window("embedding.output", (range(1), range(1)))[...] = 0


def test_only_what_is_needed_is_computed(encoder):
    encoder["encoder.0.self_attention.query"]
    embedding = {"tokens", "embedding.tokens", "embedding.positions", "embedding.output"}
    assert encoder.held == {*embedding, "encoder.0.self_attention.query"}
    assert set(encoder.weights.held) == {"embedding.tokens.weight", "encoder.0.self_attention.query.weight"}


def test_counting_the_cost_computes_nothing_and_ends_where_it_is_known_to_be_more(encoder):
    last = ["output.logits"]
    whole = encoder.pending(last)
    assert encoder.pending(last, whole) == encoder.pending_part("output.logits", 1.0) == whole
    assert 1000 < encoder.pending(last, 1000) < whole
    assert 1000 < encoder.pending_part("output.logits", 1.0, 1000) < whole
    assert encoder.held == frozenset()
    assert encoder.weights.held == {}
    encoder["encoder.0.output"]
    assert 0 < encoder.pending(last) < whole
    encoder["output.logits"]
    assert encoder.pending(last) == 0


def test_progress_names_every_step_before_it_runs_once_and_then_all_is_there(encoder):
    first, seen = encoder["tokens"], []
    encoder.compute(before=lambda step: seen.append((step.name, step.name in encoder.held)))
    assert seen == [(step.name, False) for step in encoder.program.steps if step.name != "tokens"]
    assert np.shares_memory(first, encoder["tokens"])
    assert encoder.held == set(encoder.program.by_name)
    assert encoder.plan.everything
    # what two values share, as heads that are joined without a copy do, is counted once
    taken, end = 0, 0
    for low, high in sorted(byte_bounds(each) for name, each in encoder._held.items() if name not in encoder.givens):
        taken, end = taken + max(high - max(low, end), 0), max(high, end)
    assert 0 < encoder.held_bytes == taken < sum(each.nbytes for each in encoder._held.values())


def test_a_computation_that_is_stopped_keeps_what_is_there(encoder):
    def stop(step):
        if step.name.startswith("encoder.1"):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        encoder.compute(before=stop)
    assert "encoder.0.feed_forward.norm" in encoder.held
    assert encoder["output.probabilities"].sum() == pytest.approx(8, rel=1e-5)


@pytest.mark.parametrize("part", [range(0, 3, 2), range(-2, 1), range(3, 0, -1)])
def test_cells_that_are_not_neighbours_are_no_window(trace, part):
    with pytest.raises(UsageError, match="is no region: write neighbouring cells"):
        trace.window("output.probabilities", (part, range(2)))


def test_a_window_is_a_slice(trace):
    rng = np.random.default_rng(5)
    for name in (*trace, *trace.program.weights):
        region = random_region(rng, trace.program.shape(name))
        assert np.array_equal(trace.window(name, region), cut(trace[name], region)), name


def test_extreme_values_are_explained_without_warnings():
    trace = Model.load("encoder", device="cpu", activation="gelu").trace(TEXT)
    wild = trace.edited([Edit("embedding.tokens.weight", (4, 1), 1e38), Edit("embedding.output", (1, 1), 1e300)])
    assert not np.isfinite(wild["output.logits"]).all()
    for name in wild:
        wild.explain_cell(name, (0,) * len(wild.program.shape(name)))


def test_explain_finds_the_cell_of_a_head_and_grains_group_the_steps(encoder):
    name = "encoder.0.self_attention.scaled"
    explained = encoder.explain(name, head=2, row=4, column=1)
    assert (explained.name, explained.index) == (name, (2, 4, 1))
    assert explained.stored == encoder[name][2, 4, 1]
    assert encoder.explain("tokens", row=3).stored == encoder["tokens"][3]
    step = encoder.program.step("encoder.1.self_attention.scores")
    groups = [step.group(grain) for grain in ("operation", "sublayer", "layer")]
    assert groups == [step.name, "encoder.1.self_attention", "encoder.1"]
    assert encoder.program.step("embedding.output").group("layer") == "embedding"
    assert encoder.program.step("tokens").group("layer") == "tokens"


def test_an_unknown_step_and_a_cell_outside_of_one_are_refused(encoder):
    for index in ((0, 8, 0), (8, 0, 0), (0, 0), (0, 0, -1)):
        with pytest.raises(InputError, match=r"encoder\.0\.self_attention\.scores has no cell \[.*\]: it is 8 × 8 × 8"):
            encoder.explain_cell("encoder.0.self_attention.scores", index)
    ask = (
        encoder.__getitem__,
        lambda name: encoder.window(name, (range(1),)),
        encoder.explain,
        lambda name: encoder.compute([name]),
        lambda name: encoder.pending([name]),
    )
    for call in ask:
        refuses(r"no step is called 'no\.such\.step'", lambda call=call: call("no.such.step"))
    assert "no.such.step" not in encoder


def test_a_batch_is_its_sentences_one_by_one(model):
    rows = [[2, 5, 3, 6, 4], [7, 3, 3, 1, 1], [1, 2, 2, 2, 3]]
    batch = model.trace(ids=rows)
    for i, row in enumerate(rows):
        single = model.trace(ids=row)
        for name in batch:
            assert batch[name].shape == (3, *single[name].shape)
            np.testing.assert_allclose(batch[name][i], single[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_it_is_worked_out_once_for_each_program_and_what_else_is_given():
    asked = []

    @by_program
    def known(program: Program, more: int = 0) -> int:
        asked.append(more)
        return len(program.steps) + more

    first, second = Program((), {}, {}, {}), Program((), {}, {}, {})
    assert [known(first), known(first), known(first, 2), known(second), known(first, 2)] == [0, 0, 2, 0, 2]
    assert asked == [0, 2, 0]


# A trace as a mapping from names to arrays
@pytest.fixture(scope="module")
def layered() -> Model:
    return Model.load("encoder", layers=2, device="cpu")


def test_a_trace_has_keys_values_items_and_a_length_and_is_equal_to_itself_alone(layered):
    trace = layered.trace(SHORT)
    assert isinstance(trace, Mapping)
    assert tuple(trace) == tuple(trace.keys()) == trace.names
    assert len(trace) == len(list(trace.items())) == len(trace.names)
    assert {name: array.shape for name, array in trace.items()} == {name: trace[name].shape for name in trace}
    assert trace == trace
    assert trace != layered.trace(SHORT)
    assert len({trace, trace}) == 1
    names = ("tokens", "encoder.1.output")
    assert list(trace.to_dict(names)) == list(names)
    assert list(trace.to_dict()) == list(trace.names)
    assert all(np.array_equal(array, trace[name]) for name, array in trace.to_dict().items())


def test_a_name_is_found_by_its_end(layered):
    trace = layered.trace(SHORT)
    assert np.array_equal(trace["1.self_attention.weights"], trace["encoder.1.self_attention.weights"])
    assert np.array_equal(trace["0.self_attention.query.weight"], trace["encoder.0.self_attention.query.weight"])
    assert trace.explain("1.feed_forward.hidden").name == "encoder.1.feed_forward.hidden"
    refuses(r"can be encoder\.0\.self_attention.weights, encoder\.1", lambda: trace["weights"])
    refuses("no step is called 'wieghts'; close names are", lambda: trace["wieghts"])
    assert trace.get("nothing") is None
    assert "self_attention.weights" not in trace  # of two layers
    assert "output" not in trace
    assert 3 not in trace
    for name in ("1.self_attention.weights", "0.self_attention.query.weight", "input.ids"):
        assert name in trace
        assert np.array_equal(trace[name], trace.get(name))
    with pytest.raises(InputError):
        trace["output"]


def test_a_list_has_a_batch_axis_and_a_sentence_has_none_nor_have_windows_and_explanations(layered):
    one, listed, two = layered.trace(SHORT), layered.trace([SHORT]), layered.trace([SHORT, "the shore"])
    name = "encoder.0.output"
    assert one[name].ndim == 2
    assert listed[name].shape == (1, *one[name].shape)
    assert two[name].shape == (2, *one[name].shape)
    assert np.array_equal(listed[name][0], one[name])
    assert layered.trace(ids=[[4, 5]])[name].ndim == 3
    assert layered.trace(ids=np.array([4, 5]))[name].ndim == 2
    assert listed.edited([Edit(name, (0, 0), 1.0)])[name].ndim == 3
    weight = "encoder.0.self_attention.query.weight"
    assert listed[weight].shape == one[weight].shape
    # windows and explanations
    model = Model.load("encoder", device="cpu")
    batch, single = model.trace(ids=[[2, 3, 4], [5, 6, 7]]), model.trace(ids=[5, 6, 7])
    name, region = "encoder.0.self_attention.weights", (range(1, 3), range(2), range(3))
    np.testing.assert_allclose(batch.window(name, region, item=1), single.window(name, region), rtol=1e-5)
    assert batch.explain_cell(name, (1, 1, 1), item=1).recomputed == pytest.approx(
        single.explain_cell(name, (1, 1, 1)).recomputed, rel=1e-5
    )


def test_a_region_takes_values_of_its_own_shape_and_edits_of_edits_add_up(layered):
    trace = layered.trace(SHORT)
    rows = np.full((1, trace["encoder.0.output"].shape[1]), 7.0)
    edited = trace.edited([Patch.of("0.output", rows, (range(2, 3), range(rows.shape[1])))])
    assert np.array_equal(edited["encoder.0.output"][2:], rows)
    assert np.array_equal(edited["encoder.0.output"][:2], trace["encoder.0.output"][:2])
    first = trace.edited([Edit("encoder.0.output", (0, 0), 1.0)])
    both = first.edited([Edit("encoder.0.output", (1, 0), 2.0), Edit("encoder.0.output", (0, 1), 3.0)])
    assert both.base is trace
    assert [both["encoder.0.output"][place] for place in ((0, 0), (1, 0), (0, 1))] == [1.0, 2.0, 3.0]
    assert len(first.edits) == 1


def test_what_is_no_text_is_refused_with_what_to_write_and_what_there_is_told_in_one_line(layered):
    for given in ([1, 2, 3], b"bytes", [["the"]]):
        refuses(r"give token IDs by name, trace\(ids=\[…\]\)", lambda given=given: layered.trace(given))
    said = repr(layered.trace(SHORT))
    assert said.startswith("<Trace of encoder: the waves crashed; ")
    assert "MiB held>" in said
    assert "(2 sentences)" in repr(layered.trace([SHORT, "the shore"]))
    assert "1 edits" in repr(layered.trace(SHORT).edited([Edit("encoder.0.output", (0, 0), 1.0)]))
    assert "\n" not in repr(Model.load("attention").trace())
