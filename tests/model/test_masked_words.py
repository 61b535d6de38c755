"""BERT, DistilBERT and RoBERTa: the same numbers as an independent implementation, under the public names."""

from __future__ import annotations

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
    WIDTH,
    WORDS,
    logits,
    named,
    random_tensors,
    states,
)
from plain_numpy import gelu, gelu_tanh, relu, silu
from reference import REFERENCES, check_same
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS = [4, 9, 2, 30, 49, 9]
FIRST_PLACE = {"bert": 0, "distilbert": 0, "roberta": 2}
ACTIVATIONS = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "swish": silu,
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


@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def reference(family) -> dict[str, np.ndarray]:
    with np.load(REFERENCES / family / "expected.npz") as file:
        return dict(file)


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    return random_tensors()


def loaded(folder: Path, dtype: str = "float64") -> Model:
    return Model.load(folder, device="cpu", dtype=dtype)


def changed(family: str, **settings: object) -> dict[str, object]:
    """The family's configuration with settings that are given under BERT's names."""
    keys = DISTILBERT_KEYS if family == "distilbert" else {}
    return CONFIGS[family] | {keys.get(key, key): value for key, value in settings.items()}


def wanted_states(family: str, tensors: dict[str, np.ndarray], **options: object) -> np.ndarray:
    rows = tensors["embeddings.position_embeddings.weight"][FIRST_PLACE[family] :][: len(IDS)]
    segments = family != "distilbert"
    return states(tensors, np.array(IDS), rows, epsilon=EPSILON[family], segments=segments, **options)


def test_explanations_give_the_stored_values(family, reference):
    model, random = loaded(REFERENCES / family), np.random.default_rng(3)
    trace = model.trace(ids=[*reference["input_ids"].tolist(), model.config.pad_id])
    for step in trace.program.steps:
        for _ in range(4):
            index = tuple(int(random.integers(size)) for size in step.shape)
            explanation = trace.explain_cell(step.name, index)
            assert explanation.recomputed == pytest.approx(explanation.stored, abs=1e-9), (step.name, index)


def test_names_are_public_and_in_the_order_of_computation(tmp_path, family, tensors):
    model = loaded(checkpoint(tmp_path, CONFIGS[family], named(tensors, family)))
    text = re.sub(r"\bA\.", "encoder.0.self_attention.", re.sub(r"\bF\.", "encoder.0.feed_forward.", NAMES))
    wanted = [name for name in text.split() if family != "distilbert" or name != "embedding.segments"]
    later = tuple(f"encoder.{i}." for i in range(1, LAYERS))
    assert [name for name in model.trace(ids=IDS).names if not name.startswith(later)] == wanted


def test_weights_are_stored_in_times_out(tmp_path, family, tensors):
    trace = loaded(checkpoint(tmp_path, CONFIGS[family], named(tensors, family))).trace(ids=IDS)
    hidden = trace["encoder.2.feed_forward.hidden.weight"]
    assert hidden.shape == (WIDTH, INNER)
    assert np.array_equal(hidden, tensors["encoder.layer.2.intermediate.dense.weight"].T)
    assert "output.logits.weight" not in trace.program.weights


def test_shapes_follow_the_configuration(tmp_path, family, tensors):
    trace = loaded(checkpoint(tmp_path, CONFIGS[family], named(tensors, family))).trace(ids=IDS)
    n = len(IDS)
    assert trace["encoder.2.self_attention.weights"].shape == (HEADS, n, n)
    assert trace["encoder.2.feed_forward.activation"].shape == (n, INNER)
    assert trace["output.transform.norm"].shape == (n, WIDTH)
    assert trace["output.logits"].shape == (n, WORDS)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_other_sizes_and_activations_are_computed(tmp_path, family, tensors, activation):
    model = loaded(checkpoint(tmp_path, changed(family, hidden_act=activation), named(tensors, family)))
    trace, function = model.trace(ids=IDS), ACTIVATIONS[activation]
    hidden = wanted_states(family, tensors, activation=function)
    np.testing.assert_allclose(trace["encoder.2.output"], hidden, rtol=0, atol=1e-10)
    in_head = gelu if family == "roberta" else function
    wanted = logits(tensors, hidden, epsilon=EPSILON[family], activation=in_head)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("tied", [True, False])
def test_a_head_of_its_own_is_used_whatever_the_file_says(tmp_path, family, tensors, tied):
    decoder = "cls.predictions.decoder.weight"
    own = tensors | {decoder: np.random.default_rng(1).normal(size=(WORDS, WIDTH))}
    model = loaded(checkpoint(tmp_path, changed(family, tie_word_embeddings=tied), named(own, family)))
    wanted = logits(own, wanted_states(family, tensors), epsilon=EPSILON[family], table=decoder)
    np.testing.assert_allclose(model.trace(ids=IDS)["output.logits"], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("only", [True, False])
def test_a_tied_head_may_be_in_the_file_too_or_alone(tmp_path, family, tensors, only):
    table, decoder = "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    twice = {name: tensor for name, tensor in tensors.items() if not (only and name == table)}
    trace = loaded(checkpoint(tmp_path, CONFIGS[family], named(twice | {decoder: tensors[table]}, family))).trace(
        ids=IDS
    )
    assert "output.logits.weight" not in trace.program.weights
    wanted = logits(tensors, wanted_states(family, tensors), epsilon=EPSILON[family])
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=0, atol=1e-10)


def test_the_bias_of_the_head_may_lie_in_its_decoder(tmp_path, family, tensors):
    moved = dict(tensors)
    moved["cls.predictions.decoder.bias"] = moved.pop("cls.predictions.bias")
    trace = loaded(checkpoint(tmp_path, CONFIGS[family], named(moved, family))).trace(ids=IDS)
    assert np.array_equal(trace["output.logits.bias"], tensors["cls.predictions.bias"])


def test_without_a_head_the_last_layer_is_the_end(tmp_path, family, tensors):
    encoder = {name: tensor for name, tensor in tensors.items() if not name.startswith("cls.")}
    extra = {"pooler.dense.weight": np.ones((2, 2)), "embeddings.position_ids": np.arange(20)[None]}
    model = loaded(checkpoint(tmp_path, CONFIGS[family], named(encoder, family, prefix="") | extra))
    trace = model.trace(ids=IDS)
    assert trace.names[-1] == "encoder.2.output"
    assert not any(name.startswith("output.") for name in (*trace.names, *trace.program.weights))
    np.testing.assert_allclose(trace["encoder.2.output"], wanted_states(family, tensors), rtol=0, atol=1e-10)


def test_old_names_of_norms_are_read(tmp_path, family, tensors):
    new = named(tensors, family)
    norms = re.compile(r"([Ll]ayer_?[Nn]orm)\.(weight|bias)$")
    old = {norms.sub(lambda m: f"{m[1]}.{'gamma' if m[2] == 'weight' else 'beta'}", name): new[name] for name in new}
    assert any("gamma" in name for name in old)
    trace = loaded(checkpoint(tmp_path, CONFIGS[family], old)).trace(ids=IDS)
    np.testing.assert_allclose(trace["encoder.2.output"], wanted_states(family, tensors), rtol=0, atol=1e-10)


def test_what_is_saved_is_loaded_again(tmp_path, family, reference):
    model, ids = loaded(REFERENCES / family, "float32"), reference["input_ids"].tolist()
    model.save(tmp_path / "saved")
    again = loaded(tmp_path / "saved", "float32")
    assert again.config == model.config
    check_same(again, model, ids)


def test_a_missing_tensor_is_named_as_the_family_names_it(tmp_path, family, tensors):
    whole = named(tensors, family)
    name = next(name for name in whole if name.endswith(("intermediate.dense.weight", "lin1.weight")))
    with pytest.raises(InputError, match=rf"tensor {re.escape(name)} is missing"):
        loaded(checkpoint(tmp_path, CONFIGS[family], {key: whole[key] for key in whole if key != name}))


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
    ],
)
def test_what_is_not_computed_is_refused_by_name(tmp_path, family, tensors, settings, message):
    folder = checkpoint(tmp_path, changed(family, **settings), named(tensors, family))
    with pytest.raises(InputError, match=r"config\.json: ") as caught:
        loaded(folder)
    assert message in str(caught.value)


def test_heads_that_do_not_divide_the_width_are_refused_by_the_names_of_the_file(tmp_path, family, tensors):
    folder = checkpoint(tmp_path, changed(family, num_attention_heads=5), named(tensors, family))
    keys = "dim 24 is not divisible by n_heads" if family == "distilbert" else "hidden_size 24 is not .* num_attention"
    with pytest.raises(InputError, match=keys):
        loaded(folder)


def test_settings_at_the_value_that_is_computed_are_read(tmp_path, family, tensors):
    settings = {"is_decoder": False, "position_embedding_type": "absolute", "pruned_heads": {}, "use_cache": True}
    folder = checkpoint(tmp_path, changed(family, **settings), named(tensors, family))
    plain = checkpoint(tmp_path / "plain", CONFIGS[family], named(tensors, family))
    assert loaded(folder).config == loaded(plain).config


def test_only_the_tensors_tell_whether_there_is_a_head(family):
    config = loaded(REFERENCES / family).config
    assert config.head
    assert type(config).from_json(config.to_json()) == replace(config, head=False)
    assert config.summary == f"{family} · d_model 32 · 4 heads · d_ff 96 · 2 layers"


def test_padding_changes_nothing_for_the_tokens(tmp_path, family, tensors):
    model = loaded(checkpoint(tmp_path, CONFIGS[family], named(tensors, family)))
    pad_id = model.config.pad_id
    batch = model.trace(ids=[IDS, [*IDS[:4], pad_id, pad_id]])["output.logits"]
    np.testing.assert_allclose(batch[0], model.trace(ids=IDS)["output.logits"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(batch[1, :4], model.trace(ids=IDS[:4])["output.logits"], rtol=0, atol=1e-12)
