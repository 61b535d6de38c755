"""BERT and the encoders like it: what they have alike, and each by what it does otherwise."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from encoders import (
    CONFIGS,
    EPSILON,
    FAMILIES,
    HEADS,
    INNER,
    LAYERS,
    ROWS,
    SEGMENTS,
    WIDTH,
    WORDS,
    Tensors,
    logits,
    named,
    random_tensors,
    states,
)
from plain_numpy import gelu, gelu_tanh, relu, silu
from reference import LEFT_OUT, REFERENCES
from saved import checkpoint

from tui_transformer.engine.ops import Disentangle
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [4, 9, 2, 30, 49, 9]
LONGER = [2, 7, 9, 33, 12, 5, 8, 4]
DEBERTA, MODERN = "deberta-v2", "modernbert"
FIRST_PLACE = {"bert": 0, "distilbert": 0, "roberta": 2}
ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), gelu),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh"), gelu_tanh),
    **dict.fromkeys(("silu", "swish"), silu),
    "relu": relu,
}
NAMES = """tokens embedding.tokens embedding.positions embedding.segments embedding.norm embedding.output
    A.query A.key A.value A.scores A.scaled A.masked A.weights A.context A.concat A.output A.residual A.norm
    F.hidden F.activation F.output F.residual F.norm encoder.0.output
    output.transform.hidden output.transform.activation output.transform.norm output.logits output.probabilities"""
DISTILBERT_KEYS = {
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
    "hidden_size": "dim",
    "hidden_act": "activation",
}
TABLE, DECODER = "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def tensors() -> Tensors:
    return random_tensors()


def made(folder: Path, family: str, tensors: Tensors | None = None, **settings: object) -> Model:
    """A model with these tensors under the family's names, or random ones, and settings under BERT's names."""
    keys = DISTILBERT_KEYS if family == "distilbert" else {}
    config = CONFIGS[family] | {keys.get(key, key): value for key, value in settings.items()}
    given = named(random_tensors() if tensors is None else tensors, family)
    return loaded(checkpoint(folder, config, given))


def loaded(folder: Path) -> Model:
    return Model.load(folder, device="cpu", dtype="float64")


def wanted_states(family: str, tensors: Tensors, **options: object) -> np.ndarray:
    rows = tensors["embeddings.position_embeddings.weight"][FIRST_PLACE[family] :][: len(IDS)]
    segments = family != "distilbert"
    return states(tensors, np.array(IDS), rows, epsilon=EPSILON[family], segments=segments, **options)


def check(model: Model, step: str, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(model.trace(ids=IDS)[step], wanted, rtol=0, atol=1e-10)


# What BERT, DistilBERT and RoBERTa have alike


def test_names_are_public_and_weights_and_shapes_are_those_of_the_configuration(tmp_path, family, tensors):
    trace = made(tmp_path, family, tensors).trace(ids=IDS)
    text = re.sub(r"\bA\.", "encoder.0.self_attention.", re.sub(r"\bF\.", "encoder.0.feed_forward.", NAMES))
    wanted = [name for name in text.split() if family != "distilbert" or name != "embedding.segments"]
    later = tuple(f"encoder.{i}." for i in range(1, LAYERS))
    assert [name for name in trace.names if not name.startswith(later)] == wanted
    assert "output.logits.weight" not in trace.program.weights
    hidden = trace["encoder.2.feed_forward.hidden.weight"]
    assert np.array_equal(hidden, tensors["encoder.layer.2.intermediate.dense.weight"].T)
    n = len(IDS)
    shapes = {"feed_forward.activation": (n, INNER), "self_attention.weights": (HEADS, n, n)}
    assert {name: trace[f"encoder.2.{name}"].shape for name in shapes} == shapes
    shapes = {"transform.norm": (n, WIDTH), "logits": (n, WORDS)}
    assert {name: trace[f"output.{name}"].shape for name in shapes} == shapes


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_other_sizes_and_activations_are_computed(tmp_path, family, tensors, activation):
    model, function = made(tmp_path, family, tensors, hidden_act=activation), ACTIVATIONS[activation]
    hidden = wanted_states(family, tensors, activation=function)
    check(model, "encoder.2.output", hidden)
    in_head = gelu if family == "roberta" else function
    check(model, "output.logits", logits(tensors, hidden, epsilon=EPSILON[family], activation=in_head))


@pytest.mark.parametrize("tied", [True, False])
def test_a_head_of_its_own_is_used_whatever_the_file_says(tmp_path, family, tensors, tied):
    own = tensors | {DECODER: np.random.default_rng(1).normal(size=(WORDS, WIDTH))}
    wanted = logits(own, wanted_states(family, tensors), epsilon=EPSILON[family], table=DECODER)
    check(made(tmp_path, family, own, tie_word_embeddings=tied), "output.logits", wanted)


@pytest.mark.parametrize("only", [True, False])
def test_a_tied_head_may_be_in_the_file_too_or_alone(tmp_path, family, tensors, only):
    twice = {name: tensor for name, tensor in tensors.items() if not (only and name == TABLE)}
    model = made(tmp_path, family, twice | {DECODER: tensors[TABLE]})
    assert "output.logits.weight" not in model.program(1).weights
    check(model, "output.logits", logits(tensors, wanted_states(family, tensors), epsilon=EPSILON[family]))


def test_the_bias_of_the_head_may_lie_in_its_decoder(tmp_path, family, tensors):
    bias = tensors["cls.predictions.bias"]
    moved = {name: tensor for name, tensor in tensors.items() if name != "cls.predictions.bias"}
    model = made(tmp_path, family, moved | {"cls.predictions.decoder.bias": bias})
    check(model, "output.logits.bias", bias)


def test_without_a_head_the_last_layer_is_the_end(tmp_path, family, tensors):
    encoder = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    extra = {"pooler.dense.weight": np.ones((2, 2)), "embeddings.position_ids": np.arange(20)[None]}
    model = loaded(checkpoint(tmp_path, CONFIGS[family], named(encoder, family, prefix="") | extra))
    names = model.trace(ids=IDS).names
    assert names[-1] == "encoder.2.output"
    assert not any(name.startswith("output.") for name in (*names, *model.program(1).weights))
    check(model, "encoder.2.output", wanted_states(family, tensors))


def test_old_names_of_norms_are_read(tmp_path, family, tensors):
    new = named(tensors, family)
    norms = re.compile(r"([Ll]ayer_?[Nn]orm)\.(weight|bias)$")
    old = {norms.sub(lambda m: f"{m[1]}.{'gamma' if m[2] == 'weight' else 'beta'}", name): new[name] for name in new}
    assert any("gamma" in name for name in old)
    check(loaded(checkpoint(tmp_path, CONFIGS[family], old)), "encoder.2.output", wanted_states(family, tensors))


def test_a_missing_tensor_is_named_as_the_family_names_it(tmp_path, family, tensors):
    del tensors["encoder.layer.0.intermediate.dense.weight"]
    name = "transformer.layer.0.ffn.lin1" if family == "distilbert" else "encoder.layer.0.intermediate.dense"
    with pytest.raises(InputError, match=rf"tensor {family}.{name}.weight is missing"):
        made(tmp_path, family, tensors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"is_decoder": True}, "is_decoder True is not supported: only False"),
        ({"add_cross_attention": True}, "add_cross_attention True is not supported: only False"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder True is not supported: only False"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' is not supported: only"),
        ({"position_embedding_type": None}, "position_embedding_type None is not supported: only 'absolute'"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads {'0': [1]} is not supported: only {}"),
        ({"hidden_act": "relu6"}, " 'relu6' is not known: use relu, relu"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings 'no' is neither true nor false"),
        ({"pad_token_id": 50}, "pad_token_id 50 is outside the vocabulary of 50"),
        ({"num_hidden_layers": 0}, " 0 is not a whole number from 1 to 1,024"),
        ({"vocab_size": "50"}, "vocab_size '50' is not a whole number from 1"),
        ({"num_attention_heads": 5}, " 24 is not divisible by n"),
    ],
)
def test_what_is_not_computed_is_refused_by_the_names_of_the_file(tmp_path, family, settings, message):
    with pytest.raises(InputError, match=rf"config\.json: .*{re.escape(message)}") as caught:
        made(tmp_path, family, **settings)
    key = next(iter(settings))
    assert (DISTILBERT_KEYS.get(key, key) if family == "distilbert" else key) in str(caught.value)


def test_settings_at_the_value_that_is_computed_are_read(tmp_path, family):
    settings = {"is_decoder": False, "position_embedding_type": "absolute", "pruned_heads": {}, "use_cache": True}
    assert made(tmp_path, family, **settings).config == made(tmp_path / "plain", family).config


def test_only_the_tensors_tell_whether_there_is_a_head(family):
    config = loaded(REFERENCES / family).config
    assert config.head
    assert type(config).from_json(config.to_json()) == replace(config, head=False)
    assert config.summary == f"{family} · d_model 32 · 4 heads · d_ff 96 · 2 layers"


def test_padding_changes_nothing_for_the_tokens(tmp_path, family):
    model = made(tmp_path, family)
    pad_id = model.config.pad_id
    batch = model.trace(ids=[IDS, [*IDS[:4], pad_id, pad_id]])["output.logits"]
    np.testing.assert_allclose(batch[0], model.trace(ids=IDS)["output.logits"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(batch[1, :4], model.trace(ids=IDS[:4])["output.logits"], rtol=0, atol=1e-12)


# BERT


def test_the_embedding_is_the_norm_of_three_rows(tmp_path, tensors):
    trace = made(tmp_path, "bert").trace(ids=[4, 9])
    assert trace["embedding.segments.weight"].shape == (SEGMENTS, WIDTH)
    assert np.array_equal(trace["embedding.segments"], tensors["embeddings.token_type_embeddings.weight"][[0, 0]])
    assert np.array_equal(trace["embedding.positions"], tensors["embeddings.position_embeddings.weight"][:2])


@pytest.mark.parametrize(("family", "most"), [("bert", ROWS), ("roberta", ROWS - 2)])
def test_as_many_tokens_as_positions_are_read(tmp_path, family, most):
    """Rows of a RoBERTa up to the pad ID are not for tokens."""
    model = made(tmp_path, family)
    trace = model.trace(ids=[5] * most)
    assert trace["output.logits"].shape[0] == most
    assert family == "bert" or trace["input.places"][-1] == ROWS - 1
    with pytest.raises(InputError, match=f"{most + 1} tokens are more than the {most}"):
        model.trace(ids=[5] * (most + 1))


def test_a_model_without_padding_masks_nothing(tmp_path):
    model = made(tmp_path, "bert", pad_token_id=None)
    assert np.all(np.isfinite(model.trace(ids=[5, 0, 0])["encoder.0.self_attention.masked"]))


# RoBERTa


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_tokens_count_from_behind_the_pad_id_and_padding_stays_at_it(tmp_path, pad):
    trace = made(tmp_path, "roberta", pad_token_id=pad).trace(ids=[[9, 8, 7, 6], [9, pad, 8, pad]])
    places = np.array([[1, 2, 3, 4], [1, 0, 2, 0]]) + pad
    assert np.array_equal(trace["input.places"], places)
    assert np.array_equal(trace["embedding.positions"][1, 1], trace["embedding.positions.weight"][pad])


def test_only_padding_at_the_end_is_hidden(tmp_path):
    trace = made(tmp_path, "roberta").trace(ids=[9, 1, 8, 1])
    assert np.isneginf(trace["encoder.0.self_attention.masked"]).any(axis=(0, 1)).tolist() == [False] * 3 + [True]


@pytest.mark.parametrize("pad", [None, ROWS - 1])
def test_a_pad_id_that_leaves_no_position_is_refused(tmp_path, pad):
    with pytest.raises(InputError, match=f"pad_token_id {pad} leaves no position"):
        made(tmp_path, "roberta", pad_token_id=pad)


# DistilBERT


def test_positions_are_sines_where_the_file_has_no_table(tmp_path, tensors):
    rows = np.array([[place / 10000 ** (column // 2 * 2 / WIDTH) for column in range(WIDTH)] for place in range(6)])
    rows[:, 0::2], rows[:, 1::2] = np.sin(rows[:, 0::2]), np.cos(rows[:, 1::2])
    table = tensors.pop("embeddings.position_embeddings.weight")
    model = made(tmp_path, "distilbert", tensors, sinusoidal_pos_embds=True)
    np.testing.assert_allclose(model.trace(ids=IDS)["embedding.positions"], rows, rtol=0, atol=1e-12)
    wanted = states(tensors, np.array(IDS), rows, epsilon=EPSILON["distilbert"], segments=False)
    check(model, "encoder.2.output", wanted)
    with pytest.raises(InputError, match=r"tensor distilbert.embeddings.position_embeddings.weight is missing"):
        made(tmp_path / "learned", "distilbert", tensors)
    in_file = made(tmp_path / "in file", "distilbert", sinusoidal_pos_embds=True).trace(ids=IDS)
    assert np.array_equal(in_file["embedding.positions"], table[: len(IDS)]), "a table in the file counts"


def test_distilbert_has_no_segments(tmp_path):
    trace = made(tmp_path, "distilbert").trace(ids=IDS)
    assert "embedding.segments" not in trace
    assert "input.segments" not in trace.program.givens


# ELECTRA, ALBERT and MPNet


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_a_narrow_embedding_is_projected_after_its_norm(family, changed):
    trace = changed(family).trace(ids=LONGER)
    weight, bias = trace["embedding.projected.weight"], trace["embedding.projected.bias"]
    assert weight.shape == (24, 32)
    np.testing.assert_allclose(trace["embedding.output"], trace["embedding.norm"] @ weight + bias, atol=1e-12)
    assert trace["output.transform.norm"].shape == (len(LONGER), 24)


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_there_are_two_kinds_of_segments_where_nothing_is_said(family, changed):
    model = changed(family, type_vocab_size=LEFT_OUT)
    assert model.config.segments == changed(family).config.segments == 2
    assert model.trace(ids=LONGER[:6])["embedding.segments"].shape == (6, 24)


def test_layers_of_an_albert_have_one_set_of_weights(changed):
    trace = changed("albert").trace(ids=LONGER)
    assert "encoder.1.self_attention.query" in trace.program.by_name
    assert not [name for name in trace.program.weights if name.startswith("encoder.1.")]
    (first, second) = (trace.program.by_name[f"encoder.{i}.feed_forward.output"].inputs[1] for i in range(2))
    assert first == second == "encoder.0.feed_forward.output.weight"


def test_all_layers_of_an_mpnet_read_one_table_of_biases(changed):
    program = changed("mpnet").program(4)
    readers = [step.name for step in program.readers("encoder.biased.weight")]
    assert readers == [f"encoder.{i}.self_attention.biased" for i in range(2)]


def test_distances_of_an_mpnet_count_every_token_but_places_only_those_that_are_no_padding(changed):
    trace = changed("mpnet").trace(ids=[7, 1, 9, 8])
    assert trace["input.places"].tolist() == [2, 1, 3, 4]
    added = trace["encoder.0.self_attention.biased"] - trace["encoder.0.self_attention.scaled"]
    np.testing.assert_allclose(added[:, 0, 2], added[:, 1, 3], atol=1e-12)
    np.testing.assert_allclose(added[:, 0, 2], trace["encoder.biased.weight"][16 + 2], atol=1e-12)


@pytest.mark.parametrize("kind", ["camembert", "data2vec-text"])
def test_other_names_of_an_xlm_r_are_read(changed, kind):
    with np.load(REFERENCES / "xlm-roberta" / "expected.npz") as file:
        ids, wanted = file["input_ids"].tolist(), file["logits"]
    trace = changed("xlm-roberta", model_type=kind).trace(ids=ids)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-9)


# DeBERTa

A = "encoder.1.self_attention"


def test_scores_are_the_sum_of_three_comparisons(changed):
    trace = changed(DEBERTA).trace(ids=LONGER)
    query, key = trace[f"{A}.query"], trace[f"{A}.key"]
    of_keys, of_queries = trace[f"{A}.distance_key"], trace[f"{A}.distance_query"]
    for row, column in ((0, 0), (5, 2), (1, 7)):
        place = row - column + 16
        parts = (
            query[:, row] * key[:, column] + query[:, row] * of_keys[:, place] + key[:, column] * of_queries[:, place]
        )
        wanted = parts.sum(axis=1) / math.sqrt(3 * query.shape[-1])
        np.testing.assert_allclose(trace[f"{A}.biased"][:, row, column], wanted, atol=1e-12)


def test_distances_are_projected_by_the_matrices_of_the_tokens_where_they_are_shared(changed):
    trace = changed(DEBERTA).trace(ids=LONGER)
    wanted = trace["encoder.distances_norm"] @ trace[f"{A}.key.weight"] + trace[f"{A}.key.bias"]
    np.testing.assert_allclose(trace[f"{A}.distance_key"].swapaxes(0, 1).reshape(32, 32), wanted, atol=1e-12)


def test_only_what_is_asked_for_is_compared(changed):
    names = changed(DEBERTA, pos_att_type="c2p").trace(ids=LONGER).names
    assert f"{A}.query_distance_scores" in names
    assert f"{A}.key_distance_scores" not in names
    assert "encoder.distances" not in changed(DEBERTA, relative_attention=False).trace(ids=LONGER).names


def test_far_distances_share_a_row():
    rows = Disentangle(("query",), 1.0, span=4, buckets=4, farthest=10).row(np.arange(-12, 13)).tolist()
    assert rows[12:] == [4, 5, 6, *[7] * 10]
    assert rows[11::-1] == [3, 2, *[1] * 7, *[0] * 3]


# ModernBERT

SLIDING, FULL = "sliding_attention", "full_attention"


def farthest_keys(model: Model) -> list[int]:
    """How far the first query sees in every layer."""
    trace = model.trace(ids=LONGER)
    return [int(np.flatnonzero(trace[f"encoder.{i}.self_attention.weights"][0, 0])[-1]) for i in range(2)]


def test_a_local_layer_sees_half_of_its_window_on_either_side(changed):
    assert farthest_keys(changed(MODERN, local_attention=6)) == [7, 3]
    assert farthest_keys(changed(MODERN, local_attention=5)) == [7, 2]


def test_old_files_say_how_often_a_layer_is_global_and_name_both_thetas(changed):
    old = {"layer_types": LEFT_OUT, "rope_parameters": LEFT_OUT}
    model = changed(MODERN, **old, global_attn_every_n_layers=1, global_rope_theta=500.0)
    assert farthest_keys(model) == [7, 7]
    assert [each.rope_theta for each in vars(model.config.rope_parameters).values()] == [500.0, 10000.0]
    assert changed(MODERN, **old).config.rope_parameters.full_attention.rope_theta == 160000.0


def test_the_first_layer_has_no_norm_before_its_attention(changed):
    names = changed(MODERN).trace(ids=LONGER).names
    assert "encoder.0.self_attention.norm" not in names
    assert "encoder.1.self_attention.norm" in names


def test_distances_that_do_not_fit_the_tensor_are_refused(changed):
    with pytest.raises(InputError, match=r"rel_embeddings.weight is 32 × 32, but config.json says 16 × 32"):
        changed(DEBERTA, max_relative_positions=8)
