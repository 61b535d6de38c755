"""GPT-2 and GPT-NeoX in the forms that their checkpoints have, and experts: only the chosen are computed and read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from plain_numpy import Array, frequencies, turned
from reference import LEFT_OUT, in_float64, reference_of
from refusing import refuses

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.families import family_of

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
GPT2, NEOX = reference_of("gpt2"), reference_of("gpt_neox")
TENSORS = GPT2.tensors()
TABLE = TENSORS["transformer.wte.weight"]
OWN = np.random.default_rng(1).normal(size=TABLE.shape).astype("f4")
NO_TABLE = {name: tensor for name, tensor in TENSORS.items() if tensor is not TABLE}
EITHER = (True, False)
FORMS: dict[str, tuple[Mapping[str, Array], tuple[bool, ...]]] = {
    "names without a prefix": ({name.removeprefix("transformer."): TENSORS[name] for name in TENSORS}, (True,)),
    "mask buffers of old files": (
        TENSORS | {"h.0.attn.bias": np.ones((1, 1, 64, 64), "f4"), "h.0.attn.masked_bias": np.ones(1, "f4")},
        (True,),
    ),
    "a head that repeats the table": (TENSORS | {"lm_head.weight": TABLE}, EITHER),
    "the table as the tied head alone": (NO_TABLE | {"lm_head.weight": TABLE}, (True,)),
    "a head of its own": (TENSORS | {"lm_head.weight": OWN}, EITHER),
}
"""Tensors of a file, and what the file may say of a tied head."""
ATTENTION, FED = "decoder.0.self_attention", "decoder.0.feed_forward"
FAMILIES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss")
PAIR = [5, 9]
FEED = "decoder.0.feed_forward"


@pytest.mark.parametrize(("form", "tied"), [(form, tied) for form, (_, ties) in FORMS.items() for tied in ties])
def test_a_file_of_any_form_gives_the_same_and_a_head_of_its_own_counts_whatever_it_says(changed, tmp_path, form, tied):
    model = changed("gpt2", FORMS[form][0], tie_word_embeddings=tied)
    trace = model.trace(ids=GPT2.expected["input_ids"].tolist())
    own = form == "a head of its own"
    wanted = trace["decoder.norm"] @ OWN.T if own else GPT2.expected["logits"]
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-9)
    assert ("output.logits.weight" in trace.program.weights) == (own or not tied)
    model.save(tmp_path / "saved")
    again = in_float64(tmp_path / "saved")
    assert again.config == model.config
    assert np.array_equal(*(each.trace(ids=IDS)["output.logits"] for each in (model, again)))


def test_without_a_head_the_last_norm_is_the_end_and_the_inner_width_is_that_of_the_file(changed):
    trace = changed("gpt2", tie_word_embeddings=False).trace(ids=GPT2.expected["input_ids"].tolist())
    assert trace.names[-1] == "decoder.norm"
    np.testing.assert_allclose(trace["decoder.norm"], GPT2.expected["hidden_2"], rtol=0, atol=1e-9)
    for family in ("gptj", "phi"):  # whose logits have a bias beside the embedding table, too
        tensors = reference_of(family).tensors()
        bare = {name: tensor for name, tensor in tensors.items() if not name.startswith("lm_head.")}
        assert changed(family, bare, tie_word_embeddings=True).trace(ids=IDS).names[-1] == "decoder.norm"
    narrow = {name: tensor[..., :96] if "c_fc" in name else tensor for name, tensor in TENSORS.items()}
    narrow |= {name: tensor[:96] for name, tensor in TENSORS.items() if name.endswith("mlp.c_proj.weight")}
    hidden = changed("gpt2", narrow, n_inner=96).trace(ids=IDS)["decoder.0.feed_forward.hidden"]
    wanted = GPT2.model().trace(ids=IDS)["decoder.0.feed_forward.hidden"]
    np.testing.assert_allclose(hidden, wanted[:, :96], rtol=0, atol=1e-12)


SCALES = [
    ({"scale_attn_weights": False}, (1.0, 1.0), "not divided"),
    ({"scale_attn_by_inverse_layer_idx": True}, (8**-0.5, 8**-0.5 / 2), "÷ √8 ÷ 2"),
    ({"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}, (1.0, 0.5), "÷ 2"),
    ({}, (8**-0.5, 8**-0.5), "÷ √8"),
]


@pytest.mark.parametrize(("changes", "scales", "expression"), SCALES)
def test_scores_are_divided_as_the_file_says(changed, changes, scales, expression):
    trace = changed("gpt2", **changes).trace(ids=IDS)
    for layer, scale in enumerate(scales):
        scores, scaled = (trace[f"decoder.{layer}.self_attention.{name}"] for name in ("scores", "scaled"))
        np.testing.assert_allclose(scaled, scores * scale, rtol=1e-12)
    assert trace.program.step("decoder.1.self_attention.scaled").op.formula == f"score {expression}"


def test_sizes_may_have_their_general_names_and_too_long_a_sentence_is_refused(changed):
    general = {"n_embd": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
    read = family_of("gpt2").from_json
    config = GPT2.config()
    assert read({general.get(key, key): value for key, value in config.items()}) == read(config)
    with pytest.raises(InputError, match="num_attention_heads 6 and n_head 4 are the same setting"):
        read(config | {"num_attention_heads": 6})
    refuses("more than the 64", lambda: GPT2.model().trace(ids=[1] * 65))
    refuses(r"wpe\.weight", lambda: changed("gpt2", n_positions=8))


SUMMARIES = {
    "gpt2": "GPT-2 · d_model 32 · 4 heads · d_ff 128 · 2 layers",
    "llama": "Llama · d_model 32 · 4 heads on 2 key heads · d_ff 96 · 2 layers",
}
PADDING = [
    ({"pad_token_id": 3, "eos_token_id": 2}, 3),
    ({"pad_token_id": 3, "eos_token_id": 3}, None),
    ({"pad_token_id": 3, "eos_token_id": [2, 3]}, None),
    ({"pad_token_id": -1}, None),
    ({}, None),
]


def test_the_sizes_are_told_in_one_line_and_the_token_that_ends_a_text_is_no_padding():
    assert {family: reference_of(family).model().config.summary for family in SUMMARIES} == SUMMARIES
    for given, pad_id in PADDING:
        assert family_of("gpt2").from_json(GPT2.config() | given).pad_id == pad_id, given


# GPT-NeoX


def test_attention_and_feed_forward_of_a_neox_may_follow_each_other(changed):
    program = changed("gpt_neox", use_parallel_residual=False).program(1)
    assert program.step(f"{ATTENTION}.residual").inputs == ("embedding.tokens", f"{ATTENTION}.output")
    assert program.step(f"{FED}.norm").inputs[0] == f"{ATTENTION}.residual"
    assert program.step("decoder.0.output").inputs == (f"{ATTENTION}.residual", f"{FED}.output")


def test_a_neox_may_have_no_biases_of_attention_and_a_tied_head(changed):
    tensors = NEOX.tensors()
    plain = {name: tensor for name, tensor in tensors.items() if ".attention." not in name or "weight" in name}
    program = changed("gpt_neox", plain, attention_bias=False).program(1)
    biases = [name for name in program.weights if "self_attention" in name and name.endswith(".bias")]
    assert biases == [f"decoder.{i}.self_attention.norm.bias" for i in range(2)]
    del tensors["embed_out.weight"]
    trace = changed("gpt_neox", tensors, tie_word_embeddings=True).trace(ids=IDS)
    assert "output.logits.weight" not in trace.program.weights
    wanted = trace["decoder.norm"] @ tensors["gpt_neox.embed_in.weight"].T
    np.testing.assert_allclose(trace["output.logits"], wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "turns"),
    [
        ({}, frequencies(4)),
        ({"rope_parameters": LEFT_OUT, "rotary_pct": 1.0, "rotary_emb_base": 50}, frequencies(8, 50.0)),
        ({"rope_parameters": LEFT_OUT, "rotary_pct": 0.25}, frequencies(2)),
        (
            {"rope_parameters": LEFT_OUT, "rotary_pct": 0.5, "rope_scaling": {"type": "linear", "factor": 4}},
            frequencies(4) / 4.0,
        ),
        ({"rope_parameters": {"rope_theta": 50, "partial_rotary_factor": 0.5}}, frequencies(4, 50.0)),
    ],
)
def test_columns_of_a_neox_are_turned_in_part_as_old_and_new_spellings_say(changed, changes, turns):
    trace = changed("gpt_neox", **changes).trace(ids=IDS)
    for name in ("query", "key"):
        before, after = (trace[f"{ATTENTION}.{name}{end}"] for end in ("", "_rotated"))
        np.testing.assert_allclose(after, turned(before, turns), rtol=0, atol=1e-12)


# Experts
@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def model(family) -> Model:
    return in_float64(family)


def chosen(trace) -> list[bool]:
    return (trace[f"{FEED}.expert_weights"] > 0).any(axis=0).tolist()


def experts_read(model: Model) -> list[str]:
    return [name for name in model.weights.held if name.startswith(f"{FEED}.experts.") and name.endswith(".weight")]


def test_weights_of_experts_that_no_token_chose_are_never_read(model):
    trace = model.trace(ids=PAIR[:1])
    trace.compute()
    few = [str(expert) for expert, taken in enumerate(chosen(trace)) if taken]
    assert 0 < len(few) < len(chosen(trace))
    assert {name.split(".")[4] for name in experts_read(model)} == set(few)
    gradients(trace, [3])
    assert {name.split(".")[4] for name in experts_read(model)} == set(few)


def test_tokens_have_zeros_where_they_chose_no_expert(model):
    trace = model.trace(ids=PAIR)
    shares = trace[f"{FEED}.expert_weights"]
    for expert in range(shares.shape[1]):
        output = trace[f"{FEED}.experts.{expert}.output"]
        assert np.array_equal(output.any(axis=1), shares[:, expert] > 0)


def test_a_share_that_is_set_brings_an_expert_in(model):
    trace = model.trace(ids=PAIR)
    idle = chosen(model.trace(ids=PAIR[:1])).index(False)
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
