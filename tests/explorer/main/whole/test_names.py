"""Names over the boxes: what every family does to Q, K and the scores is said, and no two steps are mixed up."""

from __future__ import annotations

import pytest
from reference import REFERENCES

from tui_transformer import Model
from tui_transformer.engine.program import Program
from tui_transformer.session.whole.names import symbol
from tui_transformer.views.whole import bands

ATTENTION = "decoder.0.self_attention"


def program_of(family: str) -> Program:
    return Model.load(REFERENCES / family).trace(ids=[5, 6, 7]).program


@pytest.mark.parametrize(
    ("family", "step", "name"),
    [
        ("gpt2", f"{ATTENTION}.masked", "Q Kᵀ ÷ √8, masked"),
        ("gemma2", f"{ATTENTION}.masked", "Q Kᵀ ÷ √24, capped, masked"),
        ("bloom", f"{ATTENTION}.masked", "Q Kᵀ ÷ √8 + ALiBi, masked"),
        ("qwen3", f"{ATTENTION}.query_rotated", "Q, norm, rotated"),
        ("qwen3", f"{ATTENTION}.key_norm", "K, norm"),
        ("llama", f"{ATTENTION}.key_rotated", "K, rotated"),
        ("gpt_oss", f"{ATTENTION}.weights", "softmax with a sink"),
        ("qwen2_moe", "decoder.0.feed_forward.experts.output", "Σ share · expert"),
        ("qwen2_moe", "decoder.0.feed_forward.shared.weighted", "shared expert"),
        ("qwen2_moe", "decoder.0.feed_forward.experts.2.hidden", "x W₁ of expert 2"),
        ("qwen2_moe", "decoder.0.feed_forward.expert_weights", "shares of experts"),
        ("granite", "output.scaled", "scaled"),
        ("bert", "output.transform.hidden", "x W"),
    ],
)
def test_a_step_has_the_name_of_what_was_done(family: str, step: str, name: str) -> None:
    program = program_of(family)
    assert symbol(program, step) == name


def test_what_is_done_to_an_output_before_it_is_added_stands_between_the_two() -> None:
    attention = next(band for band in bands(program_of("gemma2"), ATTENTION + ".scores") if band.name == ATTENTION)
    assert [box.last for box in attention.boxes][-3:] == [
        f"{ATTENTION}.output",
        f"{ATTENTION}.output_norm",
        f"{ATTENTION}.residual",
    ]


def test_distances_come_before_the_scores_that_they_are_added_to() -> None:
    program, own = program_of("deberta-v2"), "encoder.0.self_attention"
    in_order = bands(program, f"{own}.scores")
    attention = next(band for band in in_order if band.name == own)
    shown = [box.last for box in attention.boxes]
    assert shown.index(f"{own}.key_distance_scores") < shown.index(f"{own}.masked")
    assert "encoder.distances" in in_order[0].steps
