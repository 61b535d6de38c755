"""BART, Marian, mBART, M2M-100, Pegasus and T5: what they have alike, and each by what it does otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from reference import LEFT_OUT, check_same, in_float64, reference_of, slope, trace_of
from refusing import refuses

from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops.relative_positions import bucket_of_distance
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.families import family_of
from tui_transformer.model.sequence import Lengths

FAMILIES = ("bart", "marian", "t5")
LAYERS = 2
SHORT, SHORT_TARGET = [4, 5, 7, 3, 11], [2, 8, 9]
EMBEDDING = ("tokens", "embedding.tokens", "embedding.output")
ATTENTION = (
    *("query", "key", "value", "scores", "scaled", "masked", "weights", "context", "concat", "output"),
    *("residual", "norm"),
)
FEED_FORWARD = ("hidden", "activation", "output", "residual", "norm")
TABLE = {"bart": "model.shared.weight", "marian": "model.shared.weight", "t5": "shared.weight"}
TABLES = [f"{stack}.0.self_attention.biased.weight" for stack in ("encoder", "decoder")]


def names_of_layers(more: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The steps of every layer as the family has them; `more` adds to a sublayer."""
    sublayers = {"self_attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": FEED_FORWARD}
    for stack in ("encoder", "decoder"):
        for layer in range(LAYERS):
            yield f"{stack}.{layer}.output"
            for sublayer, steps in sublayers.items():
                if (stack, sublayer) != ("encoder", "cross_attention"):
                    yield from (f"{stack}.{layer}.{sublayer}.{step}" for step in (*steps, *more.get(sublayer, ())))


OWN_STEPS = {
    "bart": [f"{prefix}embedding.{step}" for prefix in ("", "decoder.") for step in ("positions", "norm")],
    "marian": ["embedding.positions", "decoder.embedding.positions"],
    "t5": ["encoder.norm", "decoder.norm"],
}


SUMMARIES = {
    "bart": "bart · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers",
    "marian": "marian · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers",
    "t5": "t5 · d_model 32 · 4 heads of 8 · d_ff 96 · 2 + 2 layers",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_have_their_public_names_and_the_configuration_says_what_it_is(family):
    common = [f"{prefix}{step}" for prefix in ("", "decoder.") for step in EMBEDDING]
    layers = names_of_layers({"self_attention": ("biased",)} if family == "t5" else {})
    wanted = {*common, *OWN_STEPS[family], *layers, "output.logits", "output.probabilities"}
    assert set(reference_of(family).trace().names) == wanted
    raw, config = reference_of(family).config(), reference_of(family).model().config
    assert config.summary == SUMMARIES[family]
    assert (config.pad_id, config.start_id) == (raw["pad_token_id"], raw["decoder_start_token_id"])


def traced(model: Model, family: str) -> Trace:
    """Of what an independent implementation reads."""
    arrays = reference_of(family).expected
    return model.trace(ids=arrays["input_ids"].tolist(), decoder_ids=arrays["decoder_input_ids"].tolist())


def check(model: Model, family: str) -> None:
    """The model computes what an independent implementation does for the checkpoint as it is."""
    wanted = reference_of(family).expected["logits"]
    np.testing.assert_allclose(traced(model, family)["output.logits"], wanted, rtol=0, atol=1e-6)


def saved_and_loaded(model: Model, folder) -> Model:
    model.save(folder)
    return in_float64(folder)


@pytest.mark.parametrize(("family", "scaled"), [("bart", True), ("bart", False), ("marian", True), ("marian", False)])
def test_words_of_both_stacks_are_scaled_where_the_file_says_so(changed, family, scaled):
    trace = traced(changed(family, scale_embedding=scaled), family)
    table = reference_of(family).tensors()[TABLE[family]].astype(float)
    for prefix in ("", "decoder."):
        wanted = table[trace[f"{prefix}tokens"]] * (math.sqrt(32) if scaled else 1.0)
        np.testing.assert_allclose(trace[f"{prefix}embedding.tokens"], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("own", "settings", "scale"),
    [
        *((own, {"tie_word_embeddings": False, "scale_decoder_outputs": LEFT_OUT}, 1.0) for own in (True, False)),
        *((own, {"scale_decoder_outputs": False}, 1.0) for own in (True, False)),
        (False, {}, 32**-0.5),
        (False, {"tie_word_embeddings": LEFT_OUT, "scale_decoder_outputs": LEFT_OUT}, 32**-0.5),
    ],
)
def test_logits_of_a_t5_are_scaled_where_they_are_tied_and_the_file_says_nothing_else(changed, own, settings, scale):
    tensors = reference_of("t5").tensors()
    table = tensors[TABLE["t5"]] if not own else np.random.default_rng(3).normal(size=(81, 32)).astype("f4")
    trace = traced(changed("t5", tensors | ({"lm_head.weight": table} if own else {}), **settings), "t5")
    np.testing.assert_allclose(trace["output.logits"], trace["decoder.norm"] @ table.T * scale, atol=1e-10)
    assert ("output.logits.weight" in trace.program.weights) == own
    with pytest.raises(InputError, match=r"lm_head.weight and shared.weight differ"):
        changed("t5", tensors | {"lm_head.weight": tensors[TABLE["t5"]] + 1.0})


def test_the_logits_may_have_no_bias_and_tensors_no_prefix_and_a_missing_one_is_named(changed, tmp_path):
    tensors = reference_of("bart").tensors()
    check(changed("bart", {name.removeprefix("model."): tensor for name, tensor in tensors.items()}), "bart")
    bias = tensors.pop("final_logits_bias")[0]
    model = changed("bart", tensors)
    without = traced(model, "bart")["output.logits"]
    np.testing.assert_allclose(without + bias, reference_of("bart").expected["logits"], rtol=0, atol=1e-9)
    again = saved_and_loaded(model, tmp_path / "saved")
    assert again.config == model.config
    check_same(again, model, SHORT)
    del tensors["model.decoder.layers.1.encoder_attn.k_proj.weight"]
    refuses(r"model\.decoder\.layers\.1\.encoder_attn\.k_proj\.weight is missing", lambda: changed("bart", tensors))


@pytest.mark.parametrize(
    ("family", "changes", "start"),
    [
        ("bart", {"decoder_start_token_id": 4}, 4),
        ("marian", {"pad_token_id": 2, "decoder_start_token_id": None}, 2),
        ("t5", {"pad_token_id": 3, "decoder_start_token_id": None}, 3),
    ],
)
def test_the_decoder_begins_with_its_start_token_or_with_padding_and_looks_at_it(changed, family, changes, start):
    trace = changed(family, **changes).trace(ids=SHORT)
    assert trace["decoder.tokens"].tolist() == [start]
    assert trace["decoder.0.self_attention.weights"].tolist() == [[[1.0]]] * 4


def test_sizes_of_either_stack_are_its_own():
    first, last = "encoder.0", "decoder.2"
    own = {"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 10}
    own |= {"decoder_layers": 3, "decoder_attention_heads": 8, "decoder_ffn_dim": 7}
    wanted = {f"{first}.self_attention.weights": (2, 5, 5), f"{first}.feed_forward.hidden": (5, 10)}
    wanted |= {f"{last}.{kind}_attention.weights": (8, 4, keys) for kind, keys in (("self", 4), ("cross", 5))}
    wanted |= {f"{last}.feed_forward.hidden": (4, 7)}
    of_t5 = {"num_layers": 1, "num_decoder_layers": 3, "num_heads": 3, "d_kv": 5, "d_ff": 7}
    wanted_of_t5 = {f"{first}.self_attention.query": (3, 5, 5), f"{last}.cross_attention.output.weight": (15, 32)}
    wanted_of_t5 |= {f"{last}.feed_forward.hidden": (4, 7), "embedding.tokens": (5, 32)}
    for family, sizes, shapes in (("bart", own, wanted), ("marian", own, wanted), ("t5", of_t5, wanted_of_t5)):
        program = family_of(family).from_json(reference_of(family).config() | sizes).program(Lengths(5, 4))
        assert {name: program.shape(name) for name in shapes} == shapes
        assert "encoder.1.output" not in program.aliases
        assert "decoder.3.output" not in program.aliases
        if family != "t5":
            widths = [program.step(f"{layer}.self_attention.scaled").op.formula for layer in (first, last)]
            assert widths == ["score ÷ √16", "score ÷ √4"]


COPIES = {
    "bart": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "t5": ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
}
"""Other names of the table of words in a file."""


@pytest.mark.parametrize("family", COPIES)
def test_the_table_may_have_any_of_its_names_or_all_but_is_one_for_both_stacks(changed, family):
    tensors = reference_of(family).tensors()
    table, own = tensors[TABLE[family]], reference_of(family).model().config
    alone = {name: tensor for name, tensor in tensors.items() if name != TABLE[family]}
    for given in (tensors | dict.fromkeys(COPIES[family], table), *(alone | {name: table} for name in COPIES[family])):
        model = changed(family, given)
        check(model, family)
        assert model.config == own
    for name in COPIES[family][:2]:
        refuses(f"{name} and .*shared.weight differ", lambda name=name: changed(family, tensors | {name: table + 1.0}))


# BART


def test_sizes_may_have_their_general_names_and_the_decoder_of_a_t5_none():
    general = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    for family, own in (
        ("bart", {"d_model": 32, "encoder_layers": 3, "encoder_attention_heads": 4}),
        ("t5", {"d_model": 32, "num_layers": 3, "num_heads": 4, "num_decoder_layers": 3}),
    ):
        raw = {key: value for key, value in reference_of(family).config().items() if key not in own}
        read = family_of(family).from_json(raw | general)
        assert read == family_of(family).from_json(raw | own)
        assert read.to_json() == read.to_json() | own


def test_a_matrix_of_the_logits_counts_whatever_the_file_says(changed, tmp_path):
    tensors = reference_of("bart").tensors()
    own = changed("bart", tensors | {"lm_head.weight": 2.0 * tensors[TABLE["bart"]]})
    bias, wanted = tensors["final_logits_bias"][0], reference_of("bart").expected["logits"]
    np.testing.assert_allclose(traced(own, "bart")["output.logits"] - bias, 2.0 * (wanted - bias), rtol=0, atol=1e-9)
    assert saved_and_loaded(own, tmp_path / "saved").config == own.config


def test_untied_stacks_and_logits_have_tables_of_their_own(changed, tmp_path):
    tensors = reference_of("bart").tensors()
    own = {name: tensors[TABLE["bart"]] + number for number, name in enumerate(COPIES["bart"], 1)}
    model = changed("bart", tensors | own, tie_word_embeddings=False)
    for each in (model, saved_and_loaded(model, tmp_path / "saved")):
        trace = traced(each, "bart")
        tables = ("embedding.tokens.weight", "decoder.embedding.tokens.weight", "output.logits.weight")
        for name, wanted in zip(tables, own.values(), strict=True):
            assert np.array_equal(trace[name].T if "logits" in name else trace[name], wanted)


# Marian


def test_positions_are_those_that_the_file_stores(changed):
    stored = {f"model.{stack}.embed_positions.weight": np.eye(64, 32, dtype="f4") for stack in ("encoder", "decoder")}
    trace = traced(changed("marian", reference_of("marian").tensors() | stored), "marian")
    for prefix, length in (("", 32), ("decoder.", 12)):
        assert np.array_equal(trace[f"{prefix}embedding.positions"], np.eye(64, 32)[:length])


# mBART, M2M-100, Pegasus and mT5


def test_positions_of_a_pegasus_are_sines_where_the_file_has_none(changed):
    tensors = reference_of("pegasus").tensors()
    rest = {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
    trace = changed("pegasus", rest).trace(ids=SHORT, decoder_ids=SHORT_TARGET)
    angles = np.arange(len(SHORT))[:, None] / 10000.0 ** (np.arange(16) / 16)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"], wanted, atol=1e-12)


def test_sines_of_an_m2m_100_count_from_behind_the_pad_id_and_are_0_for_padding(changed):
    trace = changed("m2m_100", pad_token_id=1).trace(ids=[7, 1, 9, 8], decoder_ids=SHORT_TARGET)
    pairs = np.arange(16)
    angles = np.array([2, 3, 4])[:, None] / 10000.0 ** (pairs / 15)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"][[0, 2, 3]], wanted, atol=1e-12)
    assert not trace["embedding.positions"][1].any()


def test_padding_inside_the_decoders_text_hides_nothing_from_later_tokens(changed):
    trace = changed("m2m_100").trace(ids=SHORT, decoder_ids=[1, 7, 1, 8])
    assert (trace["decoder.0.self_attention.weights"] > 0).all(axis=0).tolist() == np.tri(4, dtype=bool).tolist()


def test_logits_of_an_mt5_are_not_scaled(changed):
    t5, mt5 = (changed("t5", model_type=kind).trace(ids=SHORT, decoder_ids=SHORT_TARGET) for kind in ("t5", "mt5"))
    scaled = t5["output.logits"] * t5["decoder.norm"].shape[-1] ** 0.5
    np.testing.assert_allclose(mt5["output.logits"], scaled, atol=1e-10)


# T5: gated layers, scaled logits, and the encoder alone
def test_newer_and_older_files_say_the_same_of_a_gated_layer_which_has_its_steps(changed):
    newer = reference_of("umt5").model()
    older = changed("umt5", dense_act_fn=LEFT_OUT, is_gated_act=LEFT_OUT)
    assert newer.config == older.config
    assert (older.config.dense_act_fn, older.config.is_gated_act) == ("gelu_new", True)
    inside = [name for name in newer.program(5, 4).names if name.startswith("encoder.0.feed_forward.")]
    wanted = ("norm", "hidden", "gate", "activation", "gated", "output", "residual")
    assert inside == [f"encoder.0.feed_forward.{step}" for step in wanted]


def bucket(relative: int, count: int, farthest: int, *, bidirectional: bool) -> int:
    """The bucket of key − query, found by looking for the last one that begins at this distance or nearer."""
    if bidirectional:
        count //= 2
        start, distance = (count if relative > 0 else 0), abs(relative)
    else:
        start, distance = 0, max(-relative, 0)
    exact = count // 2
    if distance < exact:
        return start + distance
    begins = [exact * (farthest / exact) ** (step / (count - exact)) for step in range(count - exact)]
    return start + exact + sum(distance >= begin - 1e-9 for begin in begins) - 1


@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 20), (16, 64), (32, 256), (6, 11)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_exact_and_then_grow_with_the_logarithm(count, farthest, bidirectional):
    side = count // 2 if bidirectional else count
    buckets = bucket_of_distance(side, farthest)
    wanted = [bucket(-i, count, farthest, bidirectional=bidirectional) for i in range(farthest + 1)]
    assert list(buckets) == wanted
    assert buckets[-1] == side - 1


def test_a_bias_collects_the_gradients_of_all_layers():
    trace, targets = trace_of("t5", range(2, 16), range(12)), [*range(1, 12), 1]
    computed = gradients(trace, targets).values
    for table in TABLES:
        assert computed[table][1, 2] == pytest.approx(slope(trace, table, (1, 2), targets), rel=1e-5, abs=1e-9)


def test_the_encoder_of_a_t5_may_be_alone(changed, tmp_path):
    tensors, arrays = reference_of("t5").tensors(), reference_of("t5").expected
    model = changed("t5", {name: tensor for name, tensor in tensors.items() if not name.startswith("decoder.")})
    ids = arrays["input_ids"].tolist()
    assert not model.has_decoder
    np.testing.assert_allclose(model.trace(ids=ids)["encoder.norm"], arrays["hidden_2"], rtol=0, atol=1e-9)
    check_same(saved_and_loaded(model, tmp_path / "saved"), model, ids, "encoder.norm")
