"""How many tokens every expert got, and which ones a token chose."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.expert_load import expert_load, expert_step, expert_steps
from tui_transformer.model import Model

IDS = [5, 7, 9, 33, 12, 8]


@pytest.fixture(params=["mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss"])
def model(request) -> Model:
    return Model.load(REFERENCES / request.param, device="cpu", dtype="float64")


def test_every_token_is_counted_with_all_experts_that_it_chose(model):
    trace = model.trace(ids=IDS)
    for step in expert_steps(trace.program):
        load, shares = expert_load(trace, step), trace[step.name]
        assert sum(load.tokens) == len(IDS) * load.chosen
        assert load.tokens == tuple((shares > 0).sum(axis=0).tolist())
        assert load.even == pytest.approx(len(IDS) * load.chosen / shares.shape[1])
        for token in range(len(IDS)):
            chosen = load.of_token(token)
            assert len(chosen) == load.chosen
            assert chosen[0][0] == shares[token].argmax()
            assert [share for _, share in chosen] == sorted((share for _, share in chosen), reverse=True)


def test_padding_is_no_load(model):
    trace, alone = model.trace(ids=[2, 2, *IDS], mask=[0, 0, *[1] * len(IDS)]), model.trace(ids=IDS)
    for step in expert_steps(trace.program):
        assert expert_load(trace, step).tokens == expert_load(alone, alone.program.step(step.name)).tokens


def test_mean_shares_are_over_the_tokens_that_chose_an_expert(model):
    trace = model.trace(ids=IDS)
    step = expert_steps(trace.program)[0]
    load, shares = expert_load(trace, step), trace[step.name]
    for expert, mean in enumerate(load.mean_shares):
        own = shares[:, expert][shares[:, expert] > 0]
        assert np.isnan(mean) if not own.size else mean == pytest.approx(own.mean())


def test_a_router_and_its_shares_are_of_one_layer_and_other_steps_of_none():
    program = Model.load(REFERENCES / "mixtral", device="cpu").program(4)
    first = expert_steps(program)[0]
    assert expert_step(program, "decoder.0.feed_forward.router") == first
    assert expert_step(program, first.name) == first
    assert expert_step(program, "decoder.0.output") is None
    assert expert_steps(Model.load("encoder").program(4)) == ()
