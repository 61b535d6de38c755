"""Edits during generation: the same with the cache, without it, and as a trace of the whole text has them."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.engine.changes import Add, Apply, Scale, Set, standing
from tui_transformer.engine.edits import Ablate, Edit, Patch
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

PROMPT = (5, 1, 7)
VECTOR = np.random.default_rng(0).standard_normal(64) * 3
CHANGES = {
    "steered": [Add("0.output", VECTOR)],
    "from a position on": [Add("0.output", VECTOR, rows=range(4, 1000))],
    "a position": [Set("0.self_attention.output", 0.5, rows=range(5, 6))],
    "values of rows": [Add("embedding.output", np.stack([VECTOR, -VECTOR, VECTOR]), rows=range(2, 5))],
    "a head": [Scale("1.self_attention.context", 0.0, heads=range(1, 2))],
    "keys": [Set("0.self_attention.weights", 0.0, columns=range(1, 5))],
    "a function": [Apply("1.feed_forward.activation", function=lambda x: np.maximum(x, 0.1))],
    "logits": [Add("output.logits", np.linspace(0, 9, 8))],
    "a key": [Scale("0.self_attention.key", -1.0, rows=range(1, 6))],
    "weights": [Scale("0.feed_forward.output.weight", -2.0)],
}


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load(
        "decoder", device="cpu", dtype="float64", layers=2, heads=4, d_model=64, d_ff=32, seed=3, max_length=24
    )


@pytest.mark.parametrize("name", CHANGES)
def test_with_the_cache_without_it_and_as_a_trace(model, name):
    changes = CHANGES[name]
    texts = []
    for cached in (True, False):
        writer = Writer(model, Settings(greedy=True, max_new_tokens=6, use_cache=cached), Rules(), edits=changes)
        texts.append(list(writer.run(writer.begin(PROMPT))))
    for with_cache, without in zip(*texts, strict=True):
        assert with_cache.ids == without.ids
        np.testing.assert_allclose(with_cache.logits, without.logits, atol=1e-10)
    last = texts[0][-1]
    length = len(last.ids)
    clipped = [
        change.placed(model.program(length), {})
        if change.rows is None or change.rows.stop <= length
        else Add(change.name, change.values, rows=range(change.rows.start, length))
        for change in changes
    ]
    whole = model.trace(ids=last.ids).edited(clipped)
    np.testing.assert_allclose(last.logits, whole["output.logits"][-1], atol=1e-10)
    plain = Writer(model, Settings(greedy=True, max_new_tokens=6), Rules())
    other = list(plain.run(plain.begin(PROMPT)))[-1]
    assert not np.allclose(other.logits, last.logits, atol=1e-3)


def test_the_trace_of_a_token_has_the_edits(model):
    writer = Writer(
        model, Settings(greedy=True, max_new_tokens=3), Rules(), edits=[Set("0.output", 0.25, rows=range(4, 5))]
    )
    *_, state = (writer.begin(PROMPT), *list(writer.run(writer.begin(PROMPT)))[:3])
    assert len(state.ids) == 5
    assert (writer.trace(state)["decoder.0.output"] == 0.25).all()


def test_edits_of_a_sentence_stand_where_they_were_made(model):
    trace = model.trace(ids=PROMPT)
    name = "decoder.0.feed_forward.residual"
    edits = [
        Ablate("decoder.1.self_attention.context", (range(1), range(3), range(16))),
        Edit(name, (1, 2), 4.0),
        Patch.of(name, np.ones((3, 64)), (range(2, 3), range(64))),
    ]
    changes = [standing(trace.program, edit) for edit in edits]
    writer = Writer(model, Settings(greedy=True, max_new_tokens=4), Rules(), edits=changes)
    assert np.allclose(writer.begin(PROMPT).logits, trace.edited(edits)["output.logits"][-1], atol=1e-10)
    *_, last = writer.run(writer.begin(PROMPT))
    everywhere = [Ablate("decoder.1.self_attention.context", (range(1), range(len(last.ids)), range(16))), *edits[1:2]]
    patched = [*everywhere, Set(name, 1.0, rows=range(2, 3))]
    assert np.allclose(last.logits, model.trace(ids=last.ids).edited(patched)["output.logits"][-1], atol=1e-10)


def test_what_is_of_one_sentence_alone_is_refused(model):
    mean = Ablate("decoder.0.self_attention.context", (range(1), range(3), range(16)), mean=True)
    with pytest.raises(InputError, match="a mean over the positions is of one sentence"):
        Writer(model, edits=[mean])
    with pytest.raises(InputError, match="no step is called 'nothing'"):
        Writer(model, edits=[Add("nothing", 1.0)])
    with pytest.raises(InputError, match="do not say where they go"):
        Writer(model, edits=[Add("0.output", np.ones((3, 64)))]).begin(PROMPT)
