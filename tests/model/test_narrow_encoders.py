"""ELECTRA, ALBERT and MPNet: what they do otherwise than BERT."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from reference import REFERENCES, check_same, with_settings

from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [2, 7, 9, 33, 12, 5]


@pytest.fixture
def folder_of(tmp_path):
    """A reference checkpoint with other settings."""
    return partial(with_settings, tmp_path)


def loaded(where) -> Model:
    return Model.load(where, device="cpu", dtype="float64")


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_a_narrow_embedding_is_projected_after_its_norm(family):
    trace = loaded(REFERENCES / family).trace(ids=IDS)
    weight, bias = trace["embedding.projected.weight"], trace["embedding.projected.bias"]
    assert weight.shape == (24, 32)
    np.testing.assert_allclose(trace["embedding.output"], trace["embedding.norm"] @ weight + bias, atol=1e-12)
    assert trace["output.transform.norm"].shape == (len(IDS), 24)


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_there_are_two_kinds_of_segments_where_nothing_is_said(family, folder_of):
    where = folder_of(family)
    raw = json.loads((where / "config.json").read_text())
    assert raw.pop("type_vocab_size") == 2
    (where / "config.json").write_text(json.dumps(raw))
    assert loaded(where).trace(ids=IDS)["embedding.segments"].shape == (len(IDS), 24)


def test_a_list_is_no_number_of_segments(folder_of):
    with pytest.raises(InputError, match=r"type_vocab_size \[\] is not a whole number"):
        loaded(folder_of("electra", type_vocab_size=[]))


def test_layers_of_an_albert_have_one_set_of_weights():
    trace = loaded(REFERENCES / "albert").trace(ids=IDS)
    assert "encoder.1.self_attention.query" in trace.program.by_name
    assert not [name for name in trace.program.weights if name.startswith("encoder.1.")]
    (first, second) = (trace.program.by_name[f"encoder.{i}.feed_forward.output"].inputs[1] for i in range(2))
    assert first == second == "encoder.0.feed_forward.output.weight"


def test_an_albert_is_saved_and_loaded_again(tmp_path):
    model = loaded(REFERENCES / "albert")
    model.save(tmp_path / "saved")
    again = loaded(tmp_path / "saved")
    check_same(again, model, IDS)


def test_all_layers_of_an_mpnet_read_one_table_of_biases():
    program = loaded(REFERENCES / "mpnet").program(4)
    readers = [step.name for step in program.readers("encoder.biased.weight")]
    assert readers == [f"encoder.{i}.self_attention.biased" for i in range(2)]


def test_distances_of_an_mpnet_count_every_token_but_places_only_those_that_are_no_padding():
    trace = loaded(REFERENCES / "mpnet").trace(ids=[7, 1, 9, 8])
    assert trace["input.places"].tolist() == [2, 1, 3, 4]
    added = trace["encoder.0.self_attention.biased"] - trace["encoder.0.self_attention.scaled"]
    np.testing.assert_allclose(added[:, 0, 2], added[:, 1, 3], atol=1e-12)
    np.testing.assert_allclose(added[:, 0, 2], trace["encoder.biased.weight"][16 + 2], atol=1e-12)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("electra", {"embedding_size": 0}, "embedding_size 0 is not a whole number from 1"),
        ("electra", {"is_decoder": True}, "is_decoder True is not supported"),
        ("albert", {"inner_group_num": 0}, "inner_group_num 0 is not a whole number from 1"),
        ("albert", {"num_hidden_groups": 0}, "num_hidden_groups 0 is not a whole number from 1"),
        ("mpnet", {"relative_attention_num_buckets": 40}, "relative_attention_num_buckets 40 is not supported: only"),
        ("mpnet", {"max_position_embeddings": 2}, "max_position_embeddings 2 leaves no position"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(folder_of, family, settings, message):
    with pytest.raises(InputError, match=message):
        loaded(folder_of(family, **settings))


@pytest.mark.parametrize("kind", ["camembert", "data2vec-text"])
def test_other_names_of_an_xlm_r_are_read(folder_of, kind):
    with np.load(REFERENCES / "xlm-roberta" / "expected.npz") as file:
        ids, wanted = file["input_ids"].tolist(), file["logits"]
    trace = loaded(folder_of("xlm-roberta", model_type=kind)).trace(ids=ids)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-9)
