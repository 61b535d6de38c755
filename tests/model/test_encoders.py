"""BERT and the encoders like it: what they have alike, and each by what it does otherwise."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from reference import LEFT_OUT, Reference, reference_of
from refusing import refuses

from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.ops import Disentangle
from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [4, 9, 2, 30, 49, 9]
LONGER = [2, 7, 9, 33, 12, 5, 8, 4]
DEBERTA, MODERN = "deberta-v2", "modernbert"
LAST = "encoder.1.output"
NAMES = """tokens embedding.tokens embedding.positions embedding.segments embedding.norm embedding.output
    A.query A.key A.value A.scores A.scaled A.masked A.weights A.context A.concat A.output A.residual A.norm
    F.hidden F.activation F.output F.residual F.norm encoder.0.output
    output.transform.hidden output.transform.activation output.transform.norm output.logits output.probabilities"""
HEADS = {"bert": "cls.predictions", "distilbert": "vocab_projector", "roberta": "lm_head"}
"""Where the bias of the logits lies."""
DECODERS = HEADS | {"bert": "cls.predictions.decoder", "roberta": "lm_head.decoder"}
"""Where a matrix of the logits lies."""
A = "encoder.1.self_attention"


@pytest.fixture(params=HEADS)
def family(request) -> str:
    return request.param


@pytest.fixture
def published(family) -> Reference:
    return reference_of(family)


def check(model: Model, published: Reference, step: str = "output.logits", key: str = "logits") -> None:
    """The model computes what an independent implementation does for the checkpoint as it is."""
    trace = model.trace(ids=published.expected["input_ids"].tolist())
    np.testing.assert_allclose(trace[step], published.expected[key], rtol=0, atol=1e-9)


# What BERT, DistilBERT and RoBERTa have alike


def test_names_are_public_and_weights_and_shapes_are_those_of_the_configuration(family, published):
    trace = published.model().trace(ids=IDS)
    text = re.sub(r"\bA\.", "encoder.0.self_attention.", re.sub(r"\bF\.", "encoder.0.feed_forward.", NAMES))
    wanted = [name for name in text.split() if family != "distilbert" or name != "embedding.segments"]
    assert [name for name in trace.names if not name.startswith("encoder.1.")] == wanted
    assert "output.logits.weight" not in trace.program.weights
    assert ("input.segments" in trace.program.givens) == (family != "distilbert")
    n = len(IDS)
    shapes = {"feed_forward.activation": (n, 96), "self_attention.weights": (4, n, n)}
    assert {name: trace[f"encoder.1.{name}"].shape for name in shapes} == shapes
    shapes = {"transform.norm": (n, 32), "logits": (n, published.model().config.vocab_size)}
    assert {name: trace[f"output.{name}"].shape for name in shapes} == shapes


def test_a_head_may_be_tied_and_in_the_file_too_or_alone_or_its_own_whatever_the_file_says(changed, family, published):
    tensors = published.tensors()
    (table,) = (name for name in tensors if name.endswith("word_embeddings.weight"))
    without = {name: tensor for name, tensor in tensors.items() if name != table}
    decoder = f"{DECODERS[family]}.weight"
    for given in (tensors, without):
        model = changed(family, given | {decoder: tensors[table]})
        assert "output.logits.weight" not in model.program(1).weights
        check(model, published)
    own = np.random.default_rng(1).normal(size=tensors[table].shape).astype("f4")
    for tied in (True, False):
        trace = changed(family, tensors | {decoder: own}, tie_word_embeddings=tied).trace(ids=IDS)
        wanted = trace["output.transform.norm"] @ own.T + tensors[f"{HEADS[family]}.bias"]
        np.testing.assert_allclose(trace["output.logits"], wanted, atol=1e-12)
    bias = tensors.pop(f"{HEADS[family]}.bias")
    check(changed(family, tensors | {f"{DECODERS[family]}.bias": bias}), published)


def test_without_a_head_the_last_layer_is_the_end(changed, family, published):
    tensors = {name: tensor for name, tensor in published.tensors().items() if name.startswith(family)}
    extra = {"pooler.dense.weight": np.ones((2, 2), "f4"), "embeddings.position_ids": np.arange(20)[None]}
    model = changed(family, {name.removeprefix(f"{family}."): tensor for name, tensor in tensors.items()} | extra)
    names = model.trace(ids=IDS).names
    assert names[-1] == LAST
    assert not any(name.startswith("output.") for name in (*names, *model.program(1).weights))
    check(model, published, LAST, "hidden_2")


def test_old_names_of_norms_are_read_and_a_missing_tensor_is_named_as_the_family_names_it(changed, family, published):
    new = published.tensors()
    norms = re.compile(r"([Ll]ayer_?[Nn]orm)\.(weight|bias)$")
    old = {norms.sub(lambda m: f"{m[1]}.{'gamma' if m[2] == 'weight' else 'beta'}", name): new[name] for name in new}
    assert any("gamma" in name for name in old)
    check(changed(family, old), published)
    name = "transformer.layer.0.ffn.lin1" if family == "distilbert" else "encoder.layer.0.intermediate.dense"
    del new[f"{family}.{name}.weight"]
    refuses(rf"tensor {family}.{name}.weight is missing", lambda: changed(family, new))


def test_settings_at_the_value_that_is_computed_are_read_and_only_the_tensors_tell_of_a_head(changed, family):
    settings = {"is_decoder": False, "position_embedding_type": "absolute", "pruned_heads": {}, "use_cache": True}
    config = changed(family, **settings).config
    assert config == changed(family).config
    assert config.head
    assert type(config).from_json(config.to_json()) == replace(config, head=False)
    assert config.summary == f"{family} · d_model 32 · 4 heads · d_ff 96 · 2 layers"


# BERT


def test_without_a_pad_id_nothing_of_a_bert_is_masked(changed):
    trace = changed("bert", pad_token_id=None).trace(ids=[5, 0, 0])
    assert np.all(np.isfinite(trace["encoder.0.self_attention.masked"]))


@pytest.mark.parametrize(("family", "rows"), [("bert", 64), ("roberta", 66), ("bart", 66)])
def test_as_many_tokens_as_positions_are_read(family, rows):
    """Rows of a RoBERTa up to the pad ID, and the first two of a BART, are not for tokens."""
    model = reference_of(family).model()
    trace = model.trace(ids=[5] * 64)
    assert trace["encoder.0.output"].shape[0] == 64
    assert trace["input.places"][-1] == rows - 1
    refuses("65 tokens are more than the 64", lambda: model.trace(ids=[5] * 65))


# RoBERTa


def test_tokens_of_a_roberta_count_from_behind_the_pad_id_and_padding_stays_at_it(changed):
    for pad in (0, 1, 3):
        trace = changed("roberta", pad_token_id=pad).trace(ids=[[9, 8, 7, 6], [9, pad, 8, pad]])
        places = np.array([[1, 2, 3, 4], [1, 0, 2, 0]]) + pad
        assert np.array_equal(trace["input.places"], places)
        assert np.array_equal(trace["embedding.positions"][1, 1], trace["embedding.positions.weight"][pad])
        hidden = np.isneginf(trace["encoder.0.self_attention.masked"][1]).any(axis=(0, 1))
        assert hidden.tolist() == [False] * 3 + [True], "only padding at the end"
    # other names of it
    for kind in ("camembert", "data2vec-text"):
        check(changed("xlm-roberta", model_type=kind), reference_of("xlm-roberta"))


# DistilBERT


def test_positions_are_sines_where_the_file_has_no_table(changed):
    tensors = reference_of("distilbert").tensors()
    in_file = changed("distilbert", sinusoidal_pos_embds=True).trace(ids=IDS)
    table = tensors.pop("distilbert.embeddings.position_embeddings.weight")
    assert np.array_equal(in_file["embedding.positions"], table[: len(IDS)]), "a table in the file counts"
    trace = changed("distilbert", tensors, sinusoidal_pos_embds=True).trace(ids=IDS)
    rows = np.array([[place / 10000 ** (column // 2 * 2 / 32) for column in range(32)] for place in range(len(IDS))])
    rows[:, 0::2], rows[:, 1::2] = np.sin(rows[:, 0::2]), np.cos(rows[:, 1::2])
    np.testing.assert_allclose(trace["embedding.positions"], rows, rtol=0, atol=1e-12)
    with pytest.raises(InputError, match=r"tensor distilbert.embeddings.position_embeddings.weight is missing"):
        changed("distilbert", tensors)


# ELECTRA, ALBERT and MPNet


def test_distances_of_an_mpnet_count_every_token_but_places_only_those_that_are_no_padding(changed):
    trace = changed("mpnet").trace(ids=[7, 1, 9, 8])
    assert trace["input.places"].tolist() == [2, 1, 3, 4]
    added = trace["encoder.0.self_attention.biased"] - trace["encoder.0.self_attention.scaled"]
    np.testing.assert_allclose(added[:, 0, 2], added[:, 1, 3], atol=1e-12)
    np.testing.assert_allclose(added[:, 0, 2], trace["encoder.biased.weight"][16 + 2], atol=1e-12)


# DeBERTa
def test_the_head_of_debertas_authors_uses_the_table_again_whatever_the_file_says(changed):
    published = reference_of(DEBERTA)
    renamed = {
        re.sub(r"cls\.predictions\.(transform\.)?", "lm_predictions.lm_head.", name): tensor
        for name, tensor in published.tensors().items()
    }
    check(changed(DEBERTA, renamed, legacy=False, tie_word_embeddings=False), published)


def test_comparisons_are_those_that_are_asked_for_and_far_distances_share_a_row(changed):
    names = changed(DEBERTA, pos_att_type="c2p").trace(ids=LONGER).names
    assert f"{A}.query_distance_scores" in names
    assert f"{A}.key_distance_scores" not in names
    assert "encoder.distances" not in changed(DEBERTA, relative_attention=False).trace(ids=LONGER).names
    with pytest.raises(InputError, match=r"rel_embeddings.weight is 32 × 32, but config.json says 16 × 32"):
        changed(DEBERTA, max_relative_positions=8)
    rows = Disentangle(("query",), 1.0, span=4, buckets=4, farthest=10).row(np.arange(-12, 13)).tolist()
    assert rows[12:] == [4, 5, 6, *[7] * 10]
    assert rows[11::-1] == [3, 2, *[1] * 7, *[0] * 3]


def test_each_sentence_of_a_batch_has_the_distances(changed):
    model, sentences = changed(DEBERTA), (IDS, IDS[::-1])
    both, targets = model.trace(ids=sentences), [IDS, LONGER[: len(IDS)]]
    found = gradients(both, targets)
    alone = [gradients(model.trace(ids=one), [own]).values for one, own in zip(sentences, targets, strict=True)]
    for item, one in enumerate(model.trace(ids=ids) for ids in sentences):
        for name in both.names:
            np.testing.assert_allclose(both.sentence(item)[name], one[name], atol=1e-12, err_msg=name)
            assert both[name].shape == (2, *one[name].shape)
        assert both.explain("encoder.distances", row=3, column=1, item=item).stored == one["encoder.distances"][3, 1]
    for name in model.program(1).weights:
        np.testing.assert_allclose(found.values[name], (alone[0][name] + alone[1][name]) / 2, atol=1e-12, err_msg=name)


# ModernBERT


def farthest_keys(model: Model) -> list[int]:
    """How far the first query sees in every layer."""
    trace = model.trace(ids=LONGER)
    return [int(np.flatnonzero(trace[f"encoder.{i}.self_attention.weights"][0, 0])[-1]) for i in range(2)]


def test_a_local_layer_sees_half_of_its_window_on_either_side_and_old_files_say_which_is_one_and_both_thetas(changed):
    assert farthest_keys(changed(MODERN, local_attention=6)) == [7, 3]
    assert farthest_keys(changed(MODERN, local_attention=5)) == [7, 2]
    old = {"layer_types": LEFT_OUT, "rope_parameters": LEFT_OUT}
    model = changed(MODERN, **old, global_attn_every_n_layers=1, global_rope_theta=500.0)
    assert farthest_keys(model) == [7, 7]
    assert [each.rope_theta for each in vars(model.config.rope_parameters).values()] == [500.0, 10000.0]
    assert changed(MODERN, **old).config.rope_parameters.full_attention.rope_theta == 160000.0
