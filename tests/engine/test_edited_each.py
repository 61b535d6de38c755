"""Several experiments in one batch are each of them alone, and share what lies before their edits."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import assert_same

from tui_transformer.engine.edits import Ablate, Edit, Patch
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
MODELS = {
    "encoder": {"layers": 3, "pad_id": 1},
    "decoder": {"layers": 3},
    "encoder-decoder": {"layers": 2, "decoder_layers": 2},
}
SCOPES = {"encoder": "encoder.1", "decoder": "decoder.1", "encoder-decoder": "decoder.1"}
BUDGETS = (0, 1 << 16, 1 << 30)


def trace_of(name: str, budget: int = 1 << 30):
    model = Model.load(name, device="cpu", dtype="float64", **MODELS[name])
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


def test_edits_that_a_trace_has_stay_in_every_sentence():
    first = Edit("decoder.0.feed_forward.hidden", (1, 3), 4.0)
    edits = experiments("decoder")[:2]
    together = trace_of("decoder").edited([first]).edited_each(edits)
    for item, each in enumerate(edits):
        wanted = trace_of("decoder").edited([first, *each])["output.logits"]
        np.testing.assert_allclose(together["output.logits"][item], wanted, rtol=1e-10, atol=1e-12)


def test_the_trace_itself_stays_as_it_is():
    trace = trace_of("decoder")
    before = trace["output.logits"].copy()
    trace.edited_each(experiments("decoder")).compute()
    assert np.array_equal(trace["output.logits"], before)
    assert all(trace.held_value(name).shape[0] == 1 for name in trace.held)


def test_weights_are_the_same_for_all_sentences():
    with pytest.raises(InputError, match="is a weight: it is the same for all sentences"):
        trace_of("decoder").edited_each([[Edit("output.logits.weight", (0, 0), 1.0)]])


def test_a_batch_has_no_experiments_of_its_own():
    batch = Model.load("decoder", device="cpu").trace(ids=[IDS, IDS])
    with pytest.raises(UsageError, match="of a single sentence"):
        batch.edited_each([[]])
