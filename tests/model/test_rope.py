"""Rotary positions: their settings computed or refused by name, and longer sentences than a model was made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference import in_float64, with_settings
from refusing import refuses

from tui_transformer.errors import UsageError
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model
from tui_transformer.model.families import family_of
from tui_transformer.model.families.rope import read_layer_ropes, read_rope

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
SIZES = {"vocab_size": 11, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 20, "num_hidden_layers": 1}
GROUPED = SIZES | {"num_key_value_heads": 2}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (LLAMA3 | {"original_max_position_embeddings": 0}, "original_max_position_embeddings 0"),
        (LLAMA3 | {"original_max_position_embeddings": None}, "original_max_position_embeddings is null"),
        (LLAMA3 | {"partial_rotary_factor": None}, "partial_rotary_factor is null"),
        (YARN | {"rope_theta": None}, "rope_theta is null"),
        (YARN | {"original_max_position_embeddings": []}, "original_max_position_embeddings"),
        (YARN | {"attention_factor": 1e30}, "attention_factor"),
        (YARN | {"mscale": 1e30, "mscale_all_dim": 1.0}, "mscale"),
        (YARN | {"beta_fast": 1e308}, "beta_fast"),
        (YARN | {"beta_slow": 1e-308}, "beta_slow"),
        ({"rope_type": "dynamic", "factor": 1e308}, "factor"),
        ({"rope_theta": "big"}, "rope_theta 'big'"),
        ({"rope_theta": float("inf")}, "rope_theta inf"),
        ({"rope_type": "linear"}, "linear has no factor"),
        ({"rope_type": "linear", "factor": 0.5}, "factor 0.5"),
        ({"rope_type": "llama3", "factor": 8.0}, "llama3 has no low_freq_factor"),
        (LLAMA3 | {"high_freq_factor": 1.0}, "high_freq_factor 1.0"),
        ({"rope_type": "yarn"}, "yarn has no factor"),
        (YARN | {"beta_fast": -1}, "beta_fast -1"),
        (YARN | {"attention_factor": "x"}, "attention_factor 'x'"),
        (YARN | {"mscale": float("nan")}, "mscale nan"),
        (YARN | {"truncate": 1}, "truncate 1"),
        (YARN | {"rope_theta": 1.0}, "rope_theta 1 "),
        *(
            (
                {"rope_type": kind, "factor": 2.0},
                "rope_type .* is not known: use default, linear, dynamic, llama3, yarn",
            )
            for kind in ("proportional", "ntk", None, ["linear"])
        ),
        *((value, "rope_parameters") for value in (False, 0, [], "x", [1.0], 2)),
    ],
)
def test_rotary_settings_that_cannot_be_are_named(given, named):
    refuses(named, lambda: read_rope({"rope_parameters": given, "max_position_embeddings": 64}), UsageError)


def test_what_is_refused_of_the_table_is_refused_beside_it_too():
    rope = {name: value for name, value in LLAMA3.items() if name != "original_max_position_embeddings"}
    for key in ("original_max_position_embeddings", "rope_theta"):
        with pytest.raises(UsageError, match=key):
            read_rope({"rope_parameters": rope, "max_position_embeddings": 64, key: None})
    refuses("rope_theta 'big'", lambda: read_rope({"rope_theta": "big"}), UsageError)
    refuses("linear has no factor", lambda: read_rope({"rope_scaling": {"type": "linear"}}), UsageError)


def test_yarn_is_truncated_and_scaled_as_the_file_says_or_by_the_two_contexts():
    null, no, yes = (
        read_rope({"rope_parameters": YARN | {"truncate": value}}).rotary(16).frequencies
        for value in (None, False, True)
    )
    assert null == no != yes
    np.testing.assert_allclose(null[:3], [1.0, 0.30260103940963745, 0.07905694097280502], rtol=1e-6)
    given = {"rope_parameters": YARN | {"factor": None}, "max_position_embeddings": 64}
    assert read_rope(given).factor == 4.0
    assert read_rope(given).rotary(8) == read_rope({"rope_parameters": YARN}).rotary(8)


def test_widths_of_heads_and_parts_of_them_are_those_that_the_file_says():
    for changes in ({"head_dim": 8}, {"head_dim": None}, {"rotary_pct": None}):
        config = SIZES | {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}
        assert family_of("gpt_neox").from_json(config | {"head_dim": 16}).head_width == 16
        with pytest.raises(UsageError, match=next(iter(changes))):
            family_of("gpt_neox").from_json(config | changes)
    for rope in (YARN, {"rope_type": "dynamic", "factor": 2.0}):
        assert family_of("mixtral").from_json(GROUPED | {"rope_parameters": rope, "head_dim": 8}).head_width == 8
        assert family_of("mixtral").from_json(GROUPED | {"rope_parameters": LLAMA3}).head_width == 16
        with pytest.raises(UsageError, match="head_dim is missing"):
            family_of("mixtral").from_json(GROUPED | {"rope_parameters": rope})


@pytest.mark.parametrize(
    ("family", "theta", "factor", "old"), [("cwm", 1e6, 16.0, 8192), ("gpt_oss", 1.5e5, 32.0, 4096)]
)
def test_a_file_without_rotary_settings_has_those_of_the_family_and_an_empty_table_none(family, theta, factor, old):
    """CWM and gpt-oss scale by default, from a context that is theirs, whatever length the file says."""
    for said in ({}, {"rope_parameters": None}):
        rope = family_of(family).from_json(GROUPED | said | {"max_position_embeddings": 64}).rope_parameters
        assert (rope.rope_theta, rope.factor, rope.original_max_position_embeddings) == (theta, factor, old)
    rope = family_of(family).from_json(GROUPED | {"rope_parameters": {}}).rope_parameters
    assert (rope.rope_type, rope.rope_theta) == ("default", theta)


@pytest.mark.parametrize("family", ["glm", "glm4", "nemotron", "phi", "stablelm"])
def test_a_part_of_a_head_that_is_null_is_refused_where_a_part_is_turned(family):
    family_of(family).from_json(GROUPED | {"rope_parameters": {"rope_type": "default"}})
    with pytest.raises(UsageError, match="partial_rotary_factor is null"):
        family_of(family).from_json(
            GROUPED | {"rope_parameters": {"rope_type": "default"}, "partial_rotary_factor": None}
        )


def test_layers_of_a_kind_may_have_settings_of_their_own():
    kinds = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_type": "linear", "factor": 8.0}}
    ropes = read_layer_ropes({"rope_parameters": kinds}, 1e4, 1e4, "rope_local_base_freq", 2048)
    both = ropes.full_attention, ropes.sliding_attention
    assert [(rope.rope_theta, rope.factor) for rope in both] == [(1e6, 1.0), (10000.0, 8.0)]
    refuses("not one table", lambda: read_rope({"rope_parameters": kinds}), UsageError)


LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.5],
    "long_factor": [2.0, 3.0],
    "original_max_position_embeddings": 16,
    "rope_theta": 100.0,
}


def test_longrope_makes_columns_longer_as_the_context_was_made_longer_or_is_refused_by_name():
    for changes, factor in (
        ({}, np.sqrt(1.0 + np.log(4.0) / np.log(16.0))),
        ({"factor": 2.0}, np.sqrt(1.0 + np.log(2.0) / np.log(16.0))),
        ({"attention_factor": 1.25}, 1.25),
        ({"original_max_position_embeddings": 64}, 1.0),
        ({"original_max_position_embeddings": 128}, 1.0),
        ({"original_max_position_embeddings": 1, "attention_factor": 1.5}, 1.5),
    ):
        turn = read_rope({"rope_parameters": LONG | changes, "max_position_embeddings": 64}).rotary(4)
        np.testing.assert_allclose(turn.factor, factor)
    # In LongRoPE each is divided by its own number; in dynamic positions their base is larger in longer ones.
    turn = read_rope({"rope_parameters": LONG, "max_position_embeddings": 64}).rotary(4)
    np.testing.assert_allclose(turn.of(16), [1.0, 0.1 / 1.5])
    np.testing.assert_allclose(turn.of(17), [0.5, 0.1 / 3.0])
    given = {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 100.0}
    turn = read_rope({"rope_parameters": given, "max_position_embeddings": 8}).rotary(6)
    np.testing.assert_allclose(turn.of(8), 100.0 ** (-np.arange(3) / 3))
    base = 100.0 * (3.0 * 12 / 8 - 2.0) ** (6 / 4)
    np.testing.assert_allclose(turn.of(12), base ** (-np.arange(3) / 3))
    for changes, named in (
        ({"long_factor": None}, "rope_parameters of type longrope has no long_factor"),
        ({"long_factor": 2.0}, "long_factor 2.0 is not a list of numbers"),
        ({"short_factor": [1.0, 0.0]}, "short_factor 0.0"),
        ({"short_factor": [1.0, "x"]}, "short_factor 'x'"),
        ({"short_factor": [1.0]}, "short_factor has 1 numbers for 2 pairs"),
        ({"original_max_position_embeddings": 0}, "original_max_position_embeddings 0"),
        ({"original_max_position_embeddings": 1}, "original_max_position_embeddings 1 has no logarithm"),
        ({"attention_factor": -1.0}, "attention_factor -1.0"),
    ):
        with pytest.raises(UsageError, match=named):
            read_rope({"rope_parameters": LONG | changes, "max_position_embeddings": 64}).rotary(4)


def test_old_names_of_longrope_are_read_in_phi3_and_other_scalings_refused():
    for kind in ("su", "yarn", "longrope"):
        scaling = {"type": kind, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
        raw = SIZES | {"rope_scaling": scaling, "original_max_position_embeddings": 32, "max_position_embeddings": 64}
        rope = family_of("phi3").from_json(raw).rope_parameters
        assert (rope.rope_type, rope.original_max_position_embeddings, rope.factor) == ("longrope", 32, 2.0)
    for kind in ("linear", "dynamic", "llama3", "ntk", None, 5):
        with pytest.raises(UsageError, match="rope_type"):
            family_of("phi3").from_json(SIZES | {"rope_scaling": {"type": kind, "factor": 2.0}})


def model_of(folder: Path, **scaling: object) -> Model:
    """The reference's Llama with other rotary positions, made for 8 tokens."""
    with_settings(folder, "llama", max_position_embeddings=8, rope_parameters=scaling)
    return in_float64(folder)


def test_a_sentence_may_be_longer_than_the_model_was_made_for_where_positions_are_computed(tmp_path):
    model, ids = model_of(tmp_path, rope_type="dynamic", factor=2.0), list(range(10, 22))
    whole, short = model.trace(ids=ids), model.trace(ids=ids[:8])
    assert whole["output.logits"].shape[0] == 12
    plain, turned = "decoder.0.self_attention.key", "decoder.0.self_attention.key_rotated"
    np.testing.assert_allclose(whole[plain][:, :8], short[plain], atol=1e-12)
    assert np.abs(whole[turned][:, 1:8] - short[turned][:, 1:]).max() > 1e-3


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_padding_changes_no_frequency(tmp_path, kind):
    """A sentence is as long as it is without padding, on either side; of several the longest counts."""
    factors = {"short_factor": [1.0] * 4, "long_factor": [3.0] * 4, "original_max_position_embeddings": 8}
    model = model_of(tmp_path, rope_type=kind, factor=2.0, **factors if kind == "longrope" else {})
    ids, pads = list(range(10, 17)), [0] * 3
    alone = model.trace(ids=ids)["output.logits"]
    for row, mask, at in (
        (pads + ids, [0] * 3 + [1] * 7, slice(3, None)),
        (ids + pads, [1] * 7 + [0] * 3, slice(0, 7)),
    ):
        trace = model.trace(ids=row, mask=mask)
        np.testing.assert_allclose(trace["output.logits"][at], alone, atol=1e-12)
        again = model.trace_after({}, 0, [row], mask=[mask])
        np.testing.assert_allclose(again["output.logits"][at], alone, atol=1e-12)
    both = model.trace(ids=[pads + ids, list(range(20, 30))], mask=[mask[::-1], [1] * 10])["output.logits"]
    np.testing.assert_allclose(both[1], model.trace(ids=list(range(20, 30)))["output.logits"], atol=1e-12)


def test_a_cache_gives_the_same_where_frequencies_change_with_the_length(tmp_path):
    factors = {"short_factor": [1.0] * 4, "long_factor": [3.0] * 4}
    model = model_of(tmp_path, rope_type="longrope", original_max_position_embeddings=4, factor=2.0, **factors)
    logits = []
    for use_cache in (True, False):
        writer = Writer(model, Settings(max_new_tokens=5, use_cache=use_cache))
        states = [writer.begin((20, 30))]
        for token in (7, 8, 9, 10, 11):
            states.append(writer.next(states[-1], token))
        again = writer.trace(states[1])["output.logits"]
        np.testing.assert_allclose(again[-1], states[1].logits, atol=1e-12)
        logits.append(np.array([state.logits for state in states]))
    np.testing.assert_allclose(*logits, atol=1e-12)


def test_yarn_rounds_the_bounds_of_its_mixture_outward():
    """Pairs that turn 32 and 1 times in 4,096 tokens, by the formula of Peng et al. 2023, §3.2: 20.94 and 45.03."""
    table = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "rope_theta": 10_000.0}
    frequencies = np.array(
        read_rope({"rope_parameters": table, "max_position_embeddings": 16_384}).rotary(128).frequencies
    )
    ratios = frequencies / 10_000.0 ** (-np.arange(64) / 64)
    shares = np.clip((np.arange(64) - 20) / (46 - 20), 0, 1)
    np.testing.assert_allclose(ratios, 1 - shares + shares / 4, rtol=1e-9)
