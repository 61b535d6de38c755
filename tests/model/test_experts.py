"""Experts: only the chosen are computed and read; what is refused of their settings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference import REFERENCES, with_settings

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.errors import InputError
from tui_transformer.model import Model

FAMILIES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss")
IDS = [5, 9]
FEED = "decoder.0.feed_forward"


@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def model(family) -> Model:
    return Model.load(REFERENCES / family, dtype="float64")


def chosen(trace) -> list[bool]:
    return (trace[f"{FEED}.expert_weights"] > 0).any(axis=0).tolist()


def experts_read(model: Model) -> list[str]:
    return [name for name in model.weights.held if name.startswith(f"{FEED}.experts.") and name.endswith(".weight")]


def test_weights_of_experts_that_no_token_chose_are_never_read(model):
    trace = model.trace(ids=IDS[:1])
    trace.compute()
    few = [str(expert) for expert, taken in enumerate(chosen(trace)) if taken]
    assert 0 < len(few) < len(chosen(trace))
    assert {name.split(".")[4] for name in experts_read(model)} == set(few)
    gradients(trace, [3])
    assert {name.split(".")[4] for name in experts_read(model)} == set(few)


def test_tokens_have_as_many_shares_as_they_choose_and_zeros_where_they_chose_no_expert(model, family):
    trace = model.trace(ids=IDS)
    shares = trace[f"{FEED}.expert_weights"]
    for expert in range(shares.shape[1]):
        output = trace[f"{FEED}.experts.{expert}.output"]
        assert np.array_equal(output.any(axis=1), shares[:, expert] > 0)
    shares = model.trace(ids=[5, 9, 2, 7])[f"{FEED}.expert_weights"]
    config = json.loads((REFERENCES / family / "config.json").read_text())
    assert set((shares > 0).sum(axis=1)) == {config["num_experts_per_tok"]}
    if config.get("norm_topk_prob", family in ("mixtral", "gpt_oss")):
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_a_share_that_is_set_brings_an_expert_in(model):
    trace = model.trace(ids=IDS)
    idle = chosen(model.trace(ids=IDS[:1])).index(False)
    edited = trace.edited([Edit(f"{FEED}.expert_weights", (0, idle), 0.5)])
    assert edited[f"{FEED}.experts.{idle}.output"][0].any()
    assert not np.allclose(edited[trace.program.logits][0], trace[trace.program.logits][0])


def test_nothing_kept_gives_the_same(model):
    ids = [5, 9, 2, 7, 7, 1]
    whole, short = model.trace(ids=ids), model.trace(ids=ids, budget=0)
    for name in (f"{FEED}.experts.1.gated", f"{FEED}.output", whole.program.logits):
        assert np.array_equal(whole[name], short[name])
    once, again = (gradients(trace, [3, -1, 2, 4, 5, 6]).values for trace in (whole, short))
    assert once.keys() == again.keys()
    assert all(np.array_equal(once[name], again[name]) for name in once)


def test_the_memory_that_is_planned_counts_the_rows_that_are_computed(model):
    program = model.program(64)
    inside = [step for step in program.steps if step.name.startswith(f"{FEED}.experts.0.")]
    share = program.step(f"{FEED}.experts.0.output").op.chosen / program.shape(f"{FEED}.router")[1]
    cells = sum(int(np.prod(step.shape)) for step in inside)
    assert program.step_cells(inside) == pytest.approx(cells * share, abs=len(inside))


def test_a_quantization_that_is_not_read_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="quantization_config"):
        Model.load(with_settings(tmp_path, "gpt_oss", quantization_config={"quant_method": "bitsandbytes"}))
