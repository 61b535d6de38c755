"""A trace as a mapping from names to arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tui_transformer.engine.edits import Edit, Patch
from tui_transformer.errors import InputError
from tui_transformer.model import Model

TEXT = "the waves crashed"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("encoder", layers=2, device="cpu")


def test_a_trace_has_keys_values_items_and_a_length(model):
    trace = model.trace(TEXT)
    assert isinstance(trace, Mapping)
    assert tuple(trace) == tuple(trace.keys()) == trace.names
    assert len(trace) == len(list(trace.items())) == len(trace.names)
    assert {name: array.shape for name, array in trace.items()} == {name: trace[name].shape for name in trace}


def test_a_name_is_found_by_its_end(model):
    trace = model.trace(TEXT)
    assert np.array_equal(trace["1.self_attention.weights"], trace["encoder.1.self_attention.weights"])
    assert np.array_equal(trace["0.self_attention.query.weight"], trace["encoder.0.self_attention.query.weight"])
    assert trace.explain("1.feed_forward.hidden").name == "encoder.1.feed_forward.hidden"
    with pytest.raises(InputError, match=r"can be encoder\.0\.self_attention.weights, encoder\.1"):
        trace["weights"]
    with pytest.raises(InputError, match="no step is called 'wieghts'; close names are"):
        trace["wieghts"]
    assert trace.get("nothing") is None
    assert "self_attention.weights" not in trace  # of two layers


@pytest.mark.parametrize("name", ["1.self_attention.weights", "0.self_attention.query.weight", "input.ids", "output"])
def test_what_is_in_a_trace_can_be_had_from_it(model, name):
    trace = model.trace(TEXT)
    if name in trace:
        assert np.array_equal(trace[name], trace.get(name))
    else:
        with pytest.raises(InputError):
            trace[name]
    assert 3 not in trace


def test_two_traces_are_equal_only_where_they_are_the_same(model):
    trace = model.trace(TEXT)
    assert trace == trace
    assert trace != model.trace(TEXT)
    assert len({trace, trace}) == 1


def test_a_list_has_a_batch_axis_and_a_sentence_has_none(model):
    one, listed, two = model.trace(TEXT), model.trace([TEXT]), model.trace([TEXT, "the shore"])
    name = "encoder.0.output"
    assert one[name].ndim == 2
    assert listed[name].shape == (1, *one[name].shape)
    assert two[name].shape == (2, *one[name].shape)
    assert np.array_equal(listed[name][0], one[name])
    assert model.trace(ids=[[4, 5]])[name].ndim == 3
    assert model.trace(ids=np.array([4, 5]))[name].ndim == 2
    assert listed.edited([Edit(name, (0, 0), 1.0)])[name].ndim == 3
    weight = "encoder.0.self_attention.query.weight"
    assert listed[weight].shape == one[weight].shape


def test_a_dictionary_holds_what_is_asked_for(model):
    trace = model.trace(TEXT)
    names = ("tokens", "encoder.1.output")
    assert list(trace.to_dict(names)) == list(names)
    assert list(trace.to_dict()) == list(trace.names)
    assert all(np.array_equal(array, trace[name]) for name, array in trace.to_dict().items())


def test_it_says_of_what_it_is_in_one_line(model):
    said = repr(model.trace(TEXT))
    assert said.startswith("<Trace of encoder: the waves crashed; ")
    assert "MiB held>" in said
    assert "(2 sentences)" in repr(model.trace([TEXT, "the shore"]))
    assert "1 edits" in repr(model.trace(TEXT).edited([Edit("encoder.0.output", (0, 0), 1.0)]))
    assert "\n" not in repr(Model.load("attention").trace())


def test_edits_of_edits_add_up(model):
    trace = model.trace(TEXT)
    first = trace.edited([Edit("encoder.0.output", (0, 0), 1.0)])
    both = first.edited([Edit("encoder.0.output", (1, 0), 2.0), Edit("encoder.0.output", (0, 1), 3.0)])
    assert both.base is trace
    assert [both["encoder.0.output"][place] for place in ((0, 0), (1, 0), (0, 1))] == [1.0, 2.0, 3.0]
    assert len(first.edits) == 1


def test_a_region_takes_values_of_its_own_shape(model):
    trace = model.trace(TEXT)
    rows = np.full((1, trace["encoder.0.output"].shape[1]), 7.0)
    edited = trace.edited([Patch.of("0.output", rows, (range(2, 3), range(rows.shape[1])))])
    assert np.array_equal(edited["encoder.0.output"][2:], rows)
    assert np.array_equal(edited["encoder.0.output"][:2], trace["encoder.0.output"][:2])


@pytest.mark.parametrize("given", [[1, 2, 3], b"bytes", [["the"]]])
def test_what_is_no_text_is_refused_with_what_to_write(model, given):
    with pytest.raises(InputError, match=r"give token IDs by name, trace\(ids=\[…\]\)"):
        model.trace(given)
