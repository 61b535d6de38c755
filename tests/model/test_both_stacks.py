"""BART, Marian, mBART, M2M-100, Pegasus and T5: what they have alike, and each by what it does otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import bart_in_numpy
import numpy as np
import pytest
import t5_in_numpy
from both_stacks import BART, CONFIGS, DECODER_IDS, IDS, T5, load, made, traced
from plain_numpy import random_tensors
from reference import REFERENCES, check_same, reference_of, with_settings
from safetensors.numpy import load_file, save_file
from saved import checkpoint

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops.relative_positions import bucket_of_distance
from tui_transformer.errors import InputError
from tui_transformer.model import Model

LAYERS = 2
SHORT, SHORT_TARGET = [4, 5, 7, 3, 11], [2, 8, 9]
EMBEDDING = ("tokens", "embedding.tokens", "embedding.output")
ATTENTION = (
    *("query", "key", "value", "scores", "scaled", "masked", "weights", "context", "concat", "output"),
    *("residual", "norm"),
)
FEED_FORWARD = ("hidden", "activation", "output", "residual", "norm")


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


@pytest.mark.parametrize("family", CONFIGS)
def test_steps_have_their_public_names_and_the_configuration_says_what_it_is(family):
    common = [f"{prefix}{step}" for prefix in ("", "decoder.") for step in EMBEDDING]
    layers = names_of_layers({"self_attention": ("biased",)} if family == "t5" else {})
    wanted = {*common, *OWN_STEPS[family], *layers, "output.logits", "output.probabilities"}
    assert set(reference_of(family).trace().names) == wanted
    raw = json.loads((REFERENCES / family / "config.json").read_text())
    config = reference_of(family).model().config
    assert config.summary == SUMMARIES[family]
    assert (config.pad_id, config.start_id) == (raw["pad_token_id"], raw["decoder_start_token_id"])


COMPUTED = [
    *(("bart", {"prefix": prefix, "bias": bias}) for prefix in ("model.", "") for bias in (True, False)),
    ("bart", {"activation_function": "gelu"}),
    ("bart", {"scale_embedding": False}),
    ("marian", {}),
    ("marian", {"activation_function": "relu"}),
    ("marian", {"scale_embedding": False}),
    *(("t5", {"feed_forward_proj": kind}) for kind in ("relu", "gated-gelu", "gated-silu")),
    *(("t5", {"head": head, "tie_word_embeddings": False}) for head in (True, False)),
    *(("t5", {"head": head, "scale_decoder_outputs": False}) for head in (True, False)),
]


@pytest.mark.parametrize(("family", "changes"), COMPUTED)
def test_other_sizes_and_settings_are_computed_as_in_numpy(tmp_path, family, changes):
    model, tensors, config = made(tmp_path, family, **changes)
    if family == "t5":
        scaled = config["tie_word_embeddings"] and config.get("scale_decoder_outputs", True)
        wanted = t5_in_numpy.logits(tensors, config, IDS["t5"], DECODER_IDS["t5"], scaled=scaled)
    else:
        prefix = changes.get("prefix", "model.")
        wanted = bart_in_numpy.logits(tensors, config, prefix, IDS[family], DECODER_IDS[family])
    trace = traced(model, family)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)
    assert ("output.logits.weight" in trace.program.weights) == changes.get("head", False)


@pytest.mark.parametrize("family", CONFIGS)
def test_padding_at_the_end_changes_nothing_before_it(tmp_path, family):
    model, _, config = made(tmp_path, family)
    longer = [*IDS[family], *[config["pad_token_id"]] * 2]
    padded = model.trace(ids=longer, decoder_ids=DECODER_IDS[family])["output.logits"]
    np.testing.assert_allclose(padded, traced(model, family)["output.logits"], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("family", "changes", "start"),
    [
        ("bart", {"decoder_start_token_id": 4}, 4),
        ("marian", {"decoder_start_token_id": None}, 12),
        ("t5", {"pad_token_id": 3, "decoder_start_token_id": None}, 3),
    ],
)
def test_the_decoder_begins_with_its_start_token_or_with_padding(tmp_path, family, changes, start):
    model, _, _ = made(tmp_path, family, **changes)
    assert model.trace(ids=IDS[family])["decoder.tokens"].tolist() == [start]


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bart", {"bias": False}),
        ("t5", {"head": True, "tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}),
    ],
)
def test_a_saved_model_is_read_again(tmp_path, family, changes):
    model, _, _ = made(tmp_path / "first", family, **changes)
    again = saved_and_loaded(model, tmp_path / "second")
    assert again.config == model.config
    assert np.array_equal(*(traced(each, family)["output.logits"] for each in (model, again)))


COPIES = {
    "bart": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "t5": ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
}
"""Other names of the table of words in a file."""
TABLE = {"bart": "model.shared.weight", "t5": "shared.weight"}


@pytest.mark.parametrize("family", COPIES)
def test_the_table_may_have_any_of_its_names_or_all(tmp_path, family):
    model, tensors, config = made(tmp_path / "first", family)
    table, wanted = tensors[TABLE[family]], traced(model, family)["output.logits"]
    alone = {name: tensor for name, tensor in tensors.items() if name != TABLE[family]}
    for place, given in enumerate(
        (tensors | dict.fromkeys(COPIES[family], table), *(alone | {name: table} for name in COPIES[family]))
    ):
        other = load(tmp_path / str(place), config, given)
        assert np.array_equal(traced(other, family)["output.logits"], wanted)
        assert other.config == model.config


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in COPIES for name in COPIES[family][:2]])
def test_a_stack_with_an_embedding_of_its_own_is_refused(tmp_path, family, name):
    _, tensors, config = made(tmp_path / "first", family)
    tensors[name] = tensors[TABLE[family]] + 1.0
    with pytest.raises(InputError, match=f"{name} and .*shared.weight differ"):
        Model.load(checkpoint(tmp_path / "second", config, tensors), device="cpu")


# BART


SHORT, SHORT_TARGET = [4, 5, 7, 3, 11], [2, 8, 9]


def test_the_tables_are_those_of_the_file_and_the_first_token_has_the_third_row_of_positions():
    trace = reference_of("bart").trace()
    program = trace.program
    sizes = {"embedding.tokens": (360, 32), "embedding.positions": (66, 32), "decoder.embedding.positions": (66, 32)}
    assert {name: program.shape(f"{name}.weight") for name in sizes} == sizes
    assert not {"decoder.embedding.tokens.weight", "output.logits.weight"} & program.weights.keys()
    assert np.array_equal(trace["embedding.positions"][0], trace["embedding.positions.weight"][2])


def test_as_many_tokens_as_there_are_positions_are_read(tmp_path):
    model, _, _ = made(tmp_path, "bart")
    assert np.isfinite(model.trace(ids=[3] * 9)["output.logits"]).all()
    with pytest.raises(InputError, match="10 tokens are more than the 9"):
        model.trace(ids=[3] * 10)


def test_sizes_may_have_their_general_names_and_the_decoder_of_a_t5_none(tmp_path):
    general = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3}
    own = ("d_model", "encoder_layers", "encoder_attention_heads")
    config = {key: value for key, value in BART.items() if key not in own} | general
    tensors = random_tensors(bart_in_numpy.shapes(BART, "model.", learned=True))
    model = load(tmp_path / "bart", config, tensors)
    assert model.config.to_json() == BART | {"tie_word_embeddings": True}
    own = ("d_model", "num_layers", "num_heads", "num_decoder_layers")
    config = {key: value for key, value in T5.items() if key not in own} | general | {"num_hidden_layers": 2}
    tensors = random_tensors(t5_in_numpy.shapes(T5 | {"num_layers": 2}, gated=False, head=False))
    settings = load(tmp_path / "t5", config, tensors).config.to_json()
    assert [settings[key] for key in own] == [12, 2, 3, 2]


def test_a_missing_tensor_is_named_as_in_the_file(tmp_path):
    wanted = bart_in_numpy.shapes(BART, "model.", learned=True)
    tensors = random_tensors({name: shape for name, shape in wanted.items() if "layers.1.encoder_attn.k" not in name})
    with pytest.raises(InputError, match=r"model\.decoder\.layers\.1\.encoder_attn\.k_proj\.weight is missing"):
        Model.load(checkpoint(tmp_path, BART, tensors), device="cpu")


def test_a_matrix_of_the_logits_counts_whatever_the_file_says(tmp_path):
    model, tensors, config = made(tmp_path / "first", "bart")
    tensors["lm_head.weight"] = 2.0 * tensors["model.shared.weight"]
    own = load(tmp_path / "second", config, tensors)
    first, second = (traced(each, "bart") for each in (model, own))
    bias = tensors["final_logits_bias"][0]
    np.testing.assert_allclose(second["output.logits"] - bias, 2.0 * (first["output.logits"] - bias), rtol=1e-9)
    assert saved_and_loaded(own, tmp_path / "third").config == own.config


def test_untied_stacks_and_logits_have_tables_of_their_own(tmp_path):
    _, tensors, config = made(tmp_path / "first", "bart")
    table = tensors["model.shared.weight"]
    places = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    own = tensors | {name: table + number for number, name in enumerate(places, 1)}
    model = load(tmp_path / "second", config | {"tie_word_embeddings": False}, own)
    for each in (model, saved_and_loaded(model, tmp_path / "third")):
        trace = traced(each, "bart")
        assert np.array_equal(trace["embedding.tokens.weight"], own[places[0]])
        assert np.array_equal(trace["decoder.embedding.tokens.weight"], own[places[1]])
        assert np.array_equal(trace["output.logits.weight"], own[places[2]].T)


def saved_and_loaded(model: Model, folder) -> Model:
    model.save(folder)
    return Model.load(folder, device="cpu", dtype="float64")


# Marian


def test_the_first_token_has_the_sines_of_0_and_then_the_cosines():
    assert reference_of("marian").trace()["embedding.positions"][0].tolist() == [0.0] * 16 + [1.0] * 16


def test_positions_that_a_file_stores_are_looked_up(tmp_path):
    _, tensors, config = made(tmp_path / "first", "marian")
    stored = {f"model.{stack}.embed_positions.weight": np.eye(9, 12) for stack in ("encoder", "decoder")}
    model = load(tmp_path / "second", config, {**tensors, **stored})
    trace = traced(model, "marian")
    for prefix, ids in (("", IDS["marian"]), ("decoder.", DECODER_IDS["marian"])):
        assert np.array_equal(trace[f"{prefix}embedding.positions"], np.eye(9, 12)[: len(ids)])


def test_the_decoder_begins_with_padding_and_looks_at_it(tmp_path):
    model, _, _ = made(tmp_path, "marian")
    trace = model.trace(ids=IDS["marian"])
    assert trace["decoder.tokens"].tolist() == [12]
    assert trace["decoder.0.self_attention.weights"].tolist() == [[[1.0]], [[1.0]]]


# mBART, M2M-100, Pegasus and mT5


@pytest.mark.parametrize("family", ["mbart", "m2m_100", "pegasus"])
def test_norms_come_before_sublayers_and_after_stacks(family):
    names = reference_of(family).model().program(5, 3).names
    for stack in ("encoder", "decoder"):
        assert f"{stack}.norm" in names
        assert names.index(f"{stack}.0.self_attention.norm") < names.index(f"{stack}.0.self_attention.query")


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


def test_positions_of_a_pegasus_are_those_of_the_file_or_sines(tmp_path, changed):
    stored = changed("pegasus").trace(ids=SHORT, decoder_ids=SHORT_TARGET)
    tensors = load_file(tmp_path / "model.safetensors")
    assert np.array_equal(stored["embedding.positions"], tensors["model.encoder.embed_positions.weight"][: len(SHORT)])
    rest = {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
    save_file(rest, tmp_path / "model.safetensors")
    trace = Model.load(tmp_path, device="cpu", dtype="float64").trace(ids=SHORT, decoder_ids=SHORT_TARGET)
    wanted = bart_in_numpy.sinusoids(len(SHORT), 32)
    np.testing.assert_allclose(trace["embedding.positions"], wanted, atol=1e-12)


def test_logits_of_an_mt5_are_not_scaled(changed):
    t5, mt5 = (changed("t5", model_type=kind).trace(ids=SHORT, decoder_ids=SHORT_TARGET) for kind in ("t5", "mt5"))
    scaled = t5["output.logits"] * t5["decoder.norm"].shape[-1] ** 0.5
    np.testing.assert_allclose(mt5["output.logits"], scaled, atol=1e-10)


# T5: scores with biases by distance, gated layers, scaled logits, and the encoder alone


TABLES = [f"{stack}.0.self_attention.biased.weight" for stack in ("encoder", "decoder")]


def test_all_layers_of_a_stack_read_one_table_of_biases():
    program = reference_of("t5").trace().program
    assert [name for name in program.weights if "biased" in name] == TABLES
    for table, stack in zip(TABLES, ("encoder", "decoder"), strict=True):
        readers = [step.name for step in program.readers(table)]
        assert readers == [f"{stack}.{layer}.self_attention.biased" for layer in range(2)]


def test_scores_are_not_divided():
    trace = reference_of("t5").trace()
    scaled = [name for name in trace.program.by_name if name.endswith(".scaled")]
    assert len(scaled) == 6
    assert all(np.array_equal(trace[name], trace[name.replace("scaled", "scores")]) for name in scaled)


def test_newer_and_older_files_say_the_same_of_a_gated_layer_which_has_its_steps(tmp_path):
    older, _, _ = made(tmp_path / "older", "t5", feed_forward_proj="gated-gelu")
    newer, _, _ = made(
        tmp_path / "newer", "t5", feed_forward_proj="gated-gelu", dense_act_fn="gelu_new", is_gated_act=True
    )
    assert newer.config == older.config
    assert (older.config.dense_act_fn, older.config.is_gated_act) == ("gelu_new", True)
    inside = [name for name in newer.program(5, 4).names if name.startswith("encoder.0.feed_forward.")]
    wanted = ("norm", "hidden", "gate", "activation", "gated", "output", "residual")
    assert inside == [f"encoder.0.feed_forward.{step}" for step in wanted]


@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 20), (16, 64), (32, 256), (6, 11)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_exact_and_then_grow_with_the_logarithm(count, farthest, bidirectional):
    side = count // 2 if bidirectional else count
    buckets = bucket_of_distance(side, farthest)
    wanted = [t5_in_numpy.bucket(-i, count, farthest, bidirectional=bidirectional) for i in range(farthest + 1)]
    assert list(buckets) == wanted
    assert buckets[-1] == side - 1


def test_a_window_of_a_dropped_array_is_the_part_of_the_whole(tmp_path):
    model, _, _ = made(tmp_path, "t5")
    kept = traced(model, "t5")
    dropped = replace(model.trace(ids=IDS["t5"], decoder_ids=DECODER_IDS["t5"], budget=0), block=64)
    region = (range(1, 2), range(3, 9), range(2, 7))
    for name in ("encoder.0.self_attention.biased", "decoder.1.self_attention.biased"):
        np.testing.assert_allclose(dropped.window(name, region), kept[name][1:2, 3:9, 2:7], rtol=1e-12)
    np.testing.assert_allclose(dropped["output.logits"], kept["output.logits"], rtol=1e-12)
    assert not any(name.endswith("biased") for name in dropped.held)


def test_a_bias_collects_the_gradients_of_all_layers(tmp_path):
    model, _, _ = made(tmp_path, "t5")
    trace, step = traced(model, "t5"), 1e-6
    targets = [*DECODER_IDS["t5"][1:], 1]
    computed = gradients(trace, [targets]).values
    for table in TABLES:
        index, held = (1, 2), trace[table][1, 2]
        ends = [gradients(trace.edited([Edit(table, index, held + move)]), [targets]).loss for move in (step, -step)]
        assert computed[table][index] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-9)


def test_a_scaled_output_with_a_matrix_of_its_own_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"lm_head.weight and shared.weight differ"):
        made(tmp_path, "t5", head=True)


def test_the_encoder_of_a_t5_may_be_alone(tmp_path):
    folder = with_settings(tmp_path, "t5")
    tensors = load_file(folder / "model.safetensors")
    encoder = {name: tensor for name, tensor in tensors.items() if not name.startswith(("decoder.", "lm_head."))}
    save_file(encoder, folder / "model.safetensors")
    model, arrays = Model.load(folder, device="cpu", dtype="float64"), reference_of("t5").expected
    ids = arrays["input_ids"].tolist()
    assert not model.has_decoder
    np.testing.assert_allclose(model.trace(ids=ids)["encoder.norm"], arrays["hidden_2"], rtol=0, atol=1e-9)
    check_same(saved_and_loaded(model, tmp_path / "saved"), model, ids, "encoder.norm")
