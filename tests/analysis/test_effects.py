"""The effect of ablating a part on the answer: equal to a full run by hand, at one position or at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.effects import answer_positions, counted_positions, effects
from tui_transformer.engine.targets import every, parse
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 5, 3, 6, 4]
MODELS = ["encoder", "decoder", "encoder-decoder", *sorted(path.name for path in REFERENCES.iterdir())]


def trace_of(name: str, **options: object) -> Trace:
    where = REFERENCES / name if (REFERENCES / name).is_dir() else name
    model = Model.load(where, device="cpu", dtype="float64")
    return model.trace(ids=IDS, decoder_ids=[2, 3, 4] if model.has_decoder else None, **options)


def by_hand(trace: Trace, edited: Trace, rows: range) -> tuple[float, float]:
    """Change of the most likely token's log-probability, and divergence, from the shares of two whole runs."""
    p, q = (run["output.probabilities"][rows.start : rows.stop] for run in (trace, edited))
    likely = p.argmax(axis=1)
    change = sum(np.log(q[i, token]) - np.log(p[i, token]) for i, token in enumerate(likely))
    return change, float((p * np.log(p / q)).sum())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mean", [False, True])
def test_effects_of_heads_are_those_of_two_full_runs(name, mean):
    trace = trace_of(name)
    last = trace.program.shape("output.logits")[0] - 1
    targets = every(trace.program, "head")[:3] + every(trace.program, "layer")[-1:]
    for target, effect in effects(trace, targets, mean=mean):
        edited = trace.edited(target.edits(trace.program, mean=mean))
        change, divergence = by_hand(trace, edited, range(last, last + 1))
        assert effect.change == pytest.approx(change, rel=1e-7, abs=1e-10), target
        assert effect.divergence == pytest.approx(divergence, rel=1e-7, abs=1e-10), target
        assert effect.relative is None


@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_effects_at_all_positions_are_sums(block, budget):
    trace, whole = replace(trace_of("gpt2", budget=budget), block=block), trace_of("gpt2")
    targets = every(trace.program, "head")[:2]
    for target, effect in effects(trace, targets, positions=range(5)):
        change, divergence = by_hand(whole, whole.edited(target.edits(whole.program)), range(5))
        assert (effect.change, effect.divergence) == pytest.approx((change, divergence), rel=1e-7)


def test_a_position_that_the_answer_cannot_see_has_no_effect():
    trace = trace_of("gpt2")
    by_target = dict(effects(trace, every(trace.program, "position"), positions=range(2, 3)))
    sizes = [by_target[target].size for target in every(trace.program, "position")]
    assert min(sizes[:3]) > 1e-9
    assert sizes[3:] == pytest.approx([0.0, 0.0], abs=1e-14)


def test_without_a_vocabulary_head_the_effect_is_the_relative_change_of_the_last_step():
    trace = Model.load("attention", device="cpu", dtype="float64").trace()
    ((_, zero),) = effects(trace, every(trace.program, "head"))
    assert (zero.change, zero.divergence, zero.relative, zero.size) == (None, None, 1.0, 1.0)
    ((_, mean),) = effects(trace, every(trace.program, "head"), mean=True)
    states = trace["encoder.0.self_attention.context"][0]
    wanted = np.linalg.norm(states.mean(axis=0) - states) / np.linalg.norm(states)
    assert mean.relative == pytest.approx(wanted, rel=1e-12)


def test_padding_is_no_answer():
    trace = Model.load("encoder", device="cpu", pad_id=1).trace(ids=[2, 5, 3, 1, 1])
    assert answer_positions(trace) == range(2, 3)
    assert counted_positions(trace) == range(3)


def test_a_model_that_tells_lines_apart_answers_at_the_first_token():
    model = Model.load("question", device="cpu")
    trace = model.trace("the old sailor hid the map ?")
    assert answer_positions(trace, folder=model.folder) == range(1)
    assert answer_positions(trace, range(3, 4), folder=model.folder) == range(3, 4)


def test_effects_come_one_at_a_time_and_only_what_lies_downstream_runs():
    trace = trace_of("vanilla-decoder")
    trace.compute()
    ran: list[str] = []
    target = every(trace.program, "head")[-1]
    next(effects(trace, [target, target], before=lambda step: ran.append(step.name)))
    reached = trace.program.downstream([f"{target.place}.context"])
    assert ran
    assert set(ran) <= reached
    assert len(ran) == len(set(ran))


def test_the_work_can_be_ended_between_steps():
    trace = trace_of("vanilla-decoder")

    def stop(step):
        if step.name.endswith(".concat") and trace.held:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        list(effects(trace, every(trace.program, "head"), before=stop))


def test_nothing_of_the_second_run_is_kept():
    trace = trace_of("vanilla-decoder")
    before = trace.held
    list(effects(trace, every(trace.program, "head")))
    assert before == frozenset()
    assert trace.held == trace.plan.names


def test_a_position_that_is_not_there_is_refused():
    trace = trace_of("vanilla-decoder")
    with pytest.raises(InputError, match="there is no position 5: use 0 to 4"):
        next(effects(trace, [parse("layer:decoder.0")], positions=range(5, 6)))
