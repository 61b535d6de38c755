"""A trace in a notebook and in a file."""

from __future__ import annotations

import base64
import copy
import pickle
import struct
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses
from safetensors.numpy import load_file

from tui_transformer import Add, Metric, Model, Patch, attribute, circuits, effects, gradients, head_lens
from tui_transformer.engine.export import SIDE, heat_map
from tui_transformer.engine.weights import Weights
from tui_transformer.errors import UsageError
from tui_transformer.report.svg import figure

IDS = [2, 5, 3, 6]


@pytest.fixture
def trace():
    return Model.load("decoder", device="cpu", layers=1, heads=2, d_model=8).trace(ids=IDS)


def parsed(html: str) -> ET.Element:
    return ET.fromstring(html)  # noqa: S314 - our own text


def test_a_notebook_shows_every_step_and_pictures_of_what_is_there(trace):
    held = trace.held
    before = parsed(trace._repr_html_())
    assert trace.held == held  # nothing was computed
    assert [row[0].text or row[0][0].text for row in before.iter("tr")][1:] == [
        step.name for step in trace.program.steps
    ]
    _ = trace["0.self_attention.weights"]
    after = parsed(trace._repr_html_())
    assert len(list(after.iter("img"))) > len(list(before.iter("img")))


def test_a_trace_of_many_steps_is_small_in_a_notebook_and_shows_what_is_there():
    sizes = {"layers": 60, "heads": 16, "d_model": 64, "d_ff": 64}
    trace = Model.load("decoder", device="cpu", **sizes).trace(ids=[*IDS, *IDS, *IDS] * 3)
    for names in ((), ["59.self_attention.weights"], ["0.self_attention.weights", "59.output"], None):
        if names:
            trace.keep(map(trace.program.named, names))
        trace.compute(names)
        shown = trace._repr_html_()
        assert len(shown.encode()) < 50_000
        names = names or ()
        rows = {row[0][0].text: row for row in parsed(shown).iter("tr") if len(row[0])}
        for name in names:
            own = trace.program.named(name)
            assert len(list(rows[own].iter("img"))) == (8 if "weights" in name else 1)
        more = next(row[0].text for row in parsed(shown).iter("tr") if "more steps" in (row[0].text or ""))
        assert int(more.split()[0].replace(",", "")) == len(trace.program.steps) - len(rows)
    trace.title = "long " * 100_000
    assert len(trace._repr_html_().encode()) < 50_000


def test_texts_are_escaped_in_a_notebook_and_keys_complete(trace):
    trace.title = "<script>alert(1)</script> & 'x'"
    assert "<script>" not in trace._repr_html_()
    assert parsed(trace._repr_html_()) is not None
    trace = Model.load("story", device="cpu").trace("The fox")
    keys = trace._ipython_key_completions_()
    assert set(trace.names) < set(keys)
    assert {"1.output", "0.self_attention.weights", "logits", "0.feed_forward.norm"} <= set(keys)
    assert all(key in trace for key in keys)
    assert len(keys) == len(set(keys))


def colours(picture: str) -> np.ndarray:
    """Rows × columns × 3 of a picture."""
    data = base64.b64decode(parsed(picture).get("src").partition("base64,")[2])
    width, height = struct.unpack(">2I", data[16:24])
    start = data.index(b"IDAT") + 4
    return (
        np.frombuffer(zlib.decompress(data[start:-16]), np.uint8)
        .reshape(height, 1 + 3 * width)[:, 1:]
        .reshape(height, width, 3)
    )


def test_a_heat_map_has_the_sign_and_size_of_every_cell():
    cells = colours(heat_map(np.array([[1.0, -1.0, 0.0], [0.5, np.nan, -np.inf]])))
    found = ["#" + bytes(cell).hex() for row in cells for cell in row]
    assert found == ["#b2182b", "#2166ac", "#ffffff", "#d88c95", "#9a9a9a", "#9a9a9a"]
    assert colours(heat_map(np.ones((1000, 3)))).shape[0] <= SIDE
    assert bytes(colours(heat_map(np.zeros((1, 1))))[0, 0]) == b"\xff" * 3


def test_a_figure_is_the_svg_of_the_step(trace, tmp_path):
    shown = figure(trace, "0.self_attention.weights", head=1)
    assert shown._repr_html_() == shown.svg
    assert repr(shown).endswith(": 4 × 4>")
    shown.save(tmp_path / "weights.svg")
    assert parsed((tmp_path / "weights.svg").read_text()).tag.endswith("svg")
    refuses("no step is called", lambda: figure(trace, "nothing"))


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_steps_are_saved_under_their_names(trace, tmp_path, ending):
    path = tmp_path / f"run.{ending}"
    trace.save(path, ["tokens", "0.self_attention.weights"])
    saved = load_file(path) if ending == "safetensors" else dict(np.load(path))
    assert set(saved) == {"tokens", "decoder.0.self_attention.weights"}
    assert all(np.array_equal(saved[name], trace[name]) for name in saved)
    trace.save(path)
    whole = load_file(path) if ending == "safetensors" else dict(np.load(path))
    assert set(whole) == set(trace.program.by_name)
    refuses(r"ends in \.safetensors or \.npz", lambda: trace.save(tmp_path / "run.txt"), UsageError)


def test_what_is_printed_of_results_is_short(trace):
    model = Model.load("decoder", device="cpu", layers=1, heads=2, d_model=8)
    shown = (model, attribute(trace, 1), gradients(trace, [[5, 3, 6, -1]]), circuits(trace)[0], trace)
    assert all(len(repr(each)) < 250 for each in shown)
    assert repr(model).startswith("<Model decoder: ")
    attribution = attribute(trace, 1)
    assert sum(attribution.to_dict().values()) == pytest.approx(attribution.logit - attribution.remainder)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model, trace: model.encode(["a", "b"]), "one text is meant here, not a list"),
        (lambda model, trace: model.encode(b"the"), "not bytes"),
        (lambda model, trace: model.trace("the", pair=["waves"]), "one text is meant|reads one"),
        (lambda model, trace: model.trace(3), "a sentence is a text"),
        (lambda model, trace: Model.load(["story"]), "a name or a path, not list"),
        (lambda model, trace: trace["tokens", "output.logits"], "to_dict"),
        (lambda model, trace: trace.edited([5]), "a list of Edit"),
        (lambda model, trace: attribute(trace, "the"), "a token is its ID"),
        (lambda model, trace: Metric("logit", 40), "IDs in a tuple"),
    ],
)
def test_another_kind_of_value_is_refused_in_words(trace, call, says):
    refuses(says, lambda: call(Model.load("encoder", device="cpu"), trace))


def test_a_figure_of_a_batch_names_the_words_of_its_sentence_and_of_the_decoder():
    model = Model.load("dates", device="cpu")
    trace = model.trace(["May 3, 2021", "June 4, 22"], decoder_text="20")
    view = figure(trace, "decoder.0.cross_attention.weights", 1, item=1).view
    assert [view.rows.label(i) for i in range(3)] == ["[BOS]", "2", "0"]
    assert [view.columns.label(i) for i in range(4)] == ["J", "u", "n", "e"]
    values = view.window(range(3), range(view.columns.size))
    assert np.array_equal(values, trace["decoder.0.cross_attention.weights"][1, 1])


def test_a_pickled_trace_gives_the_same_numbers_and_holds_no_weight(tmp_path):
    Model.load("decoder", device="cpu", seed=3).save(tmp_path)
    model = Model.load(tmp_path, device="cpu")
    trace, other = model.trace("the waves"), model.trace(ids=[7, 3])
    name = "0.feed_forward.output"
    edits = [Patch.between(trace, other, "0.output", rows=0), Add("0.output", 2.0), Patch.of(name, -trace[name])]
    for each in (
        trace,
        trace.edited(edits),
        trace.edited_each([edits[:1], edits[1:]]),
        model.trace(["the", "the waves"]),
    ):
        data = pickle.dumps(each)
        again = pickle.loads(data)  # noqa: S301 - our own
        assert len(data) < 40_000
        assert (again.held_bytes, again.names, repr(again).split(";")[0]) == (0, each.names, repr(each).split(";")[0])
        assert np.array_equal(again["output.logits"], each["output.logits"])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert (repr(again), again.config) == (repr(model), model.config)


def written_again(each):
    return pickle.loads(pickle.dumps(each))  # noqa: S301 - our own


@pytest.mark.parametrize("again", [written_again, copy.copy, copy.deepcopy])
def test_gradients_and_tables_are_pickled_and_copied_whole(trace, again):
    computed = gradients(trace, [[5, 3, 6, -1]])
    copied = again(computed)
    assert (copied.loss, copied.counted, list(copied.values)) == (computed.loss, 3, list(computed.values))
    for name, value in copied.values.items():
        assert np.array_equal(value, computed.values[name])
        assert not value.flags.writeable
    for find in (lambda: effects(trace, "head"), lambda: circuits(trace), lambda: head_lens(trace, 1)):
        table = find()
        other = again(table)
        assert table.rows() == other.rows() == find().rows()
        assert len(other) == len(table) > 0


def test_models_that_come_with_the_program_are_pickled_but_no_weights_that_are_in_memory_alone(trace):
    for name in ("story", "encoder-decoder", "attention"):
        model = in_float64(name)
        again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
        own, other = (each.trace(ids=[3, 4]) if name != "attention" else each.trace() for each in (model, again))
        assert np.array_equal(own[own.names[-1]], other[own.names[-1]])
        assert other.weights.backend.dtype == np.float64
    weights = Weights(trace.backend, trace.weights.read)
    refuses("in memory alone: save the model in a folder", lambda: pickle.dumps(replace(trace, weights=weights)))
