"""Models: weights from a seed, token IDs, padding and masks, settings changed, and settings that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses

from tui_transformer.engine import backend as backend_module
from tui_transformer.engine import parts
from tui_transformer.engine.backend import Gpu
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.checks import LARGEST_SIZE, MOST_LAYERS
from tui_transformer.model.config import Config
from tui_transformer.model.families import FAMILIES, family_of
from tui_transformer.model.sequence import Lengths

TEXT = "The waves crashed forcefully against the shore!"
SCOPE = "encoder.0.self_attention"
WIDE = {"vocabulary": "dog", "d_model": 8, "heads": 2}


def weights(model: Model) -> dict[str, np.ndarray]:
    program = model.program(1)
    return {name: model.weights.get(name, program.shape(name)) for name in program.weights}


def test_random_weights_are_those_of_their_seed_and_name_whatever_the_other_sizes_and_the_precision():
    single, double = (weights(Model.load("encoder", device="cpu", dtype=dtype)) for dtype in ("float32", "float64"))
    assert all(np.array_equal(single[name], double[name]) for name in single)
    assert {array.dtype for array in double.values()} == {np.dtype(np.float64)}
    first, again, other = (weights(Model.load("encoder", device="cpu", seed=seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert [name for name in first if np.array_equal(first[name], other[name])] == [
        name for name in first if ".norm." in name
    ]
    table = weights(Model.load("encoder", device="cpu", layers=2))
    square = [array.tobytes() for name, array in table.items() if array.shape == (8, 8)]
    assert len(set(square)) == len(square)
    for change in ({"d_ff": 16}, {"layers": 3}, {"heads": 2}, {"activation": "gelu"}, {"bias": True}):
        before, after = (
            weights(Model.load("encoder", device="cpu")),
            weights(Model.load("encoder", device="cpu", **change)),
        )
        same_shape = [name for name in before if before[name].shape == after[name].shape]
        assert len(same_shape) >= len(before) - 2
        assert all(np.array_equal(before[name], after[name]) for name in same_shape)


def test_random_weights_have_mean_0_and_the_deviation_and_norms_are_the_identity():
    table = weights(Model.load("encoder", device="cpu", d_ff=4096))
    hidden = table["encoder.0.feed_forward.hidden.weight"]
    assert abs(float(hidden.mean())) < 0.01
    assert float(hidden.std()) == pytest.approx(0.2, rel=0.02)
    assert (table[f"{SCOPE}.norm.weight"] == 1).all()
    assert (table[f"{SCOPE}.norm.bias"] == 0).all()


def test_ids_that_cannot_be_are_refused_and_either_they_or_a_text_are_given():
    for ids, says in (
        ([8], "token ID 8 is outside the vocabulary: IDs go from 0 to 7"),
        ([1, -1], "token ID -1 is outside"),
        ([2**62], "is outside the vocabulary"),
        ([2**64], "whole numbers, in rows of the same length"),
        ([1.0, 2.0], "whole numbers, in rows of the same length"),
        ([1.5], "whole numbers"),
        (["1"], "whole numbers"),
        ([True], "whole numbers"),
        ([None], "whole numbers"),
        ([[1, 2], [3]], "in rows of the same length"),
        ([[[1]]], "in rows of the same length"),
        ([[], []], "there are no token IDs"),
        ([1] * 4097, "4097 tokens are more than the 4096 that the model reads"),
    ):
        refuses(says, lambda ids=ids: Model.load("encoder", device="cpu").trace(ids=ids))
    for given in ({}, {"text": TEXT, "ids": [1]}):
        with pytest.raises(UsageError, match="either a text or token IDs"):
            Model.load("encoder", device="cpu").trace(**given)
    refuses("no tokens", lambda: Model.load("encoder", device="cpu").trace("  "))
    model = Model.load("encoder", device="cpu", max_length=4)
    with pytest.raises(InputError):
        model.trace(TEXT)
    assert model.trace(TEXT, cut=True)["tokens"].shape == (4,)
    assert model.trace(ids=model.trace(ids=[5, 6])["tokens"][1])["tokens"].tolist() == [6]  # an ID alone


def padded(ids: list[int], **sizes: object):
    return Model.load("encoder", device="cpu", pad_id=1, **sizes).trace(ids=ids)


def test_runs_of_pads_at_the_beginning_and_at_the_end_are_padding_and_others_are_not():
    for ids, visible in (
        ([2, 3, 1, 1], [1, 1, 0, 0]),
        ([2, 3, 4, 5], [1, 1, 1, 1]),
        ([1, 2, 1, 3], [0, 1, 1, 1]),
        ([1, 2, 1, 3, 1], [0, 1, 1, 1, 0]),
        ([1, 1], [0, 0]),
    ):
        trace = padded(ids)
        assert trace["input.visible"].tolist() == [bool(each) for each in visible]
        hidden = np.isneginf(trace[f"{SCOPE}.masked"])
        assert np.array_equal(hidden, np.broadcast_to(~trace["input.visible"], hidden.shape))
    visible = padded([[2, 3, 1], [2, 1, 1], [1, 2, 3]])["input.visible"]
    assert visible.tolist() == [[True, True, False], [True, False, False], [False, True, True]]
    unmasked = padded([2, 3, 1], padding_mask=False)
    assert unmasked["input.visible"].all()
    assert unmasked[f"{SCOPE}.weights"].min() > 0
    assert Model.load("encoder", device="cpu", pad_id=None).trace(ids=[2, 1, 1])["input.visible"].all()


def test_padding_changes_nothing_for_the_tokens_before_it_and_alone_it_gives_zeros():
    short, long, alone = padded([2, 3, 4]), padded([2, 3, 4, 1, 1]), padded([1, 1, 1])
    np.testing.assert_allclose(long["output.logits"][:3], short["output.logits"], rtol=1e-5, atol=1e-6)
    assert not long[f"{SCOPE}.weights"][:, :, 3:].any()
    assert not alone[f"{SCOPE}.weights"].any()
    assert not alone[f"{SCOPE}.context"].any()
    assert all(np.isfinite(alone[name]).all() for name in alone if not name.endswith(".masked"))


@pytest.mark.parametrize(("name", "sizes"), [("decoder", {}), ("encoder", {"causal": True})])
def test_a_causal_model_sees_no_later_key(name, sizes):
    model = Model.load(name, device="cpu", layers=2, **sizes)
    trace, other = model.trace(ids=[2, 3, 4, 5, 6]), model.trace(ids=[2, 3, 4, 7, 7])
    weights = trace[f"{name}.0.self_attention.weights"]
    assert not weights[:, *np.triu_indices(5, 1)].any()
    assert weights[:, *np.tril_indices(5)].all()
    np.testing.assert_allclose(trace["output.logits"][:3], other["output.logits"][:3], rtol=1e-5)


def test_a_decoder_cannot_be_without_its_causal_mask():
    refuses("causal cannot be off in a decoder", lambda: Model.load("decoder", device="cpu", causal=False), UsageError)
    decoder = Model.load("decoder", device="cpu", causal=True)
    assert decoder.changed(layers=2).config.masks_future
    refuses("causal cannot be off in a decoder", lambda: decoder.changed(causal=False), UsageError)


def test_the_embedding_is_scaled_where_the_model_scales():
    plain, scaled = (
        Model.load("encoder", device="cpu", d_model=16, scale_embedding=scale).trace(ids=[2, 3])["embedding.tokens"]
        for scale in (False, True)
    )
    np.testing.assert_allclose(scaled, 4 * plain, rtol=1e-6)


def test_changed_keeps_the_other_settings_and_the_model():
    model = Model.load("encoder", device="cpu", seed=5, d_ff=32, **WIDE)
    changed = model.changed(layers=2)
    assert (changed.config.layers, changed.config.d_ff, changed.config.heads) == (2, 32, 2)
    assert (changed.seed, changed.vocabulary) == (5, model.vocabulary)
    assert model.config.layers == 1
    assert model.changed(dtype="float64").backend.dtype == np.float64
    assert [model.changed(seed=seed).seed for seed in (2, 0)] == [2, 0]
    changed = Model.load("encoder", device="cpu").changed(vocabulary="dog")
    assert (changed.vocabulary.name, changed.config.vocab_size) == ("dog", changed.vocabulary.size)
    example = Model.load("attention", device="cpu").changed(causal=False, dtype="float64")
    assert (example.config.causal, example.backend.dtype) == (False, np.float64)
    # what cannot be
    model = Model.load("encoder", device="cpu")
    with pytest.raises(UsageError):
        model.changed(heads=3)
    assert model.trace(TEXT)["output.logits"].shape == (8, 8)


def test_a_model_from_a_folder_changes_its_precision_only(reference):
    model = reference.model("float64")
    assert model.changed(dtype="float32").backend.dtype == np.float32
    for size in ("d_ff", "seed"):
        refuses(size, lambda size=size: model.changed(**{size: 8}), UsageError)
    for size in ("d_model", "layers", "seed"):
        with pytest.raises(UsageError, match=f"^{size}: the sizes and weights of .* are in its folder and cannot be"):
            Model.load(reference.folder, **{size: 2})


def test_programs_are_made_once_for_a_length_or_two():
    model, both = Model.load("encoder", device="cpu"), Model.load("encoder-decoder", device="cpu")
    assert model.program(5) is model.program(5)
    assert model.program(6).shape("tokens") == (6,)
    assert model.config.program(Lengths(5)).names == model.program(5).names
    assert both.program(5, 3) is both.program(5, 3)
    assert [both.program(5, 3).shape(name) for name in ("tokens", "decoder.tokens")] == [(5,), (3,)]


# Settings that cannot be are refused with one line that names them


REFUSED = [
    ({"d_model": 0}, "d_model 0 is not a whole number from 1"),
    ({"d_model": 8.0}, "d_model 8.0 is not"),
    ({"d_model": "8"}, "d_model '8' is not"),
    ({"d_model": True}, "d_model True is not"),
    ({"d_model": None}, "d_model None is not"),
    ({"d_model": LARGEST_SIZE + 1}, "d_model 16777217 is not"),
    ({"d_ff": 10**40}, "is not a whole number from 1 to 16,777,216"),
    ({"layers": 0}, "layers 0 is not"),
    ({"layers": MOST_LAYERS + 1}, "layers 1025 is not a whole number from 1 to 1,024"),
    ({"decoder_layers": 2}, "decoder_layers is a setting of the encoder-decoder: set layers of the encoder"),
    ({"heads": 3}, "d_model 8 is not divisible by 3 heads: heads can be 1, 2, 4, 8"),
    ({"pad_id": 8}, "pad_id 8 is outside the vocabulary of 8"),
    ({"pad_id": -1}, "pad_id -1 is not a token ID"),
    ({"pad_id": 1.0}, "pad_id 1.0 is not a token ID"),
    ({"norm": "middle"}, "norm 'middle' is not known: use post, pre"),
    ({"norm": ["post"]}, "norm ['post'] is not known"),
    ({"activation": "swish"}, "activation 'swish' is not known: use relu, relu2, gelu, "),
    ({"positions": 3}, "positions 3 is not known: use sinusoidal, learned, none"),
    ({"architecture": "both"}, "architecture 'both' is not known: use encoder, decoder, encoder-decoder"),
    ({"start_id": 8}, "start_id 8 is outside the vocabulary of 8"),
    ({"start_id": "a"}, "start_id 'a' is not a token ID"),
    ({"norm_epsilon": 0}, "norm_epsilon 0 is not a number between 0 and 1"),
    ({"norm_epsilon": float("nan")}, "norm_epsilon nan is not"),
    ({"bias": "yes"}, "bias 'yes' is neither true nor false"),
    ({"seed": -1}, "seed -1 is not a whole number from 0"),
    ({"seed": 1.5}, "seed 1.5 is not"),
    ({"dtype": "float16"}, "dtype 'float16' is not known: use float32 or float64"),
    ({"device": "tpu"}, "device 'tpu' is not known: use auto, cpu or gpu"),
    ({"d_modle": 8}, "d_modle is not a setting of this model"),
]


def message(where: str = "encoder", **settings: object) -> str:
    """The one line that refuses the settings."""
    text = refuses("", lambda: Model.load(where, **{"device": "cpu", **settings}))
    assert len(text) < 250
    return text


@pytest.mark.parametrize(
    ("settings", "says"), REFUSED, ids=[f"{key}={value}" for case, _ in REFUSED for key, value in case.items()]
)
def test_a_setting_that_cannot_be_is_refused(settings, says):
    assert says in message(**settings)


def test_the_attention_example_reads_no_tokens_cannot_be_resized_and_can_do_without_its_mask():
    trace = Model.load("attention", device="cpu", causal=False).trace()
    assert trace["encoder.0.self_attention.weights"].min() > 0
    refuses("reads no tokens", lambda: Model.load("attention", device="cpu").trace(ids=[1]))
    for settings in ({"length": 5}, {"width": 3}, {"vocab_size": 8}, {"d_model": 8}, {"causal": "no"}):
        assert message("attention", **settings)
    for layers in (0, 1.5, MOST_LAYERS + 1):
        assert f"decoder_layers {layers} is not a whole number" in message("encoder-decoder", decoder_layers=layers)


def test_what_does_not_fit_the_memory_or_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(None, "CuPy sees no GPU"))
    assert message(device="gpu") == "no GPU: CuPy sees no GPU; use device cpu"
    # weights, before they are made
    assert "of memory and" in message(d_model=1 << 20, heads=8, d_ff=1 << 24)
    # a trace
    model = Model.load("encoder", device="cpu")
    monkeypatch.setattr(parts, "available_memory", lambda: 100_000)
    model.trace(ids=[[2] * 40] * 2)
    monkeypatch.setattr(parts, "available_memory", lambda: 80_000)
    refuses("160 tokens need 80 KiB of memory and", lambda: model.trace(ids=[[2] * 40] * 4))


def test_an_unknown_model_is_told_where_those_are_listed():
    advice = "`tui-transformer models` lists those on this computer"
    assert message("encodr") == f"encodr: no such folder, and no model of this name: {advice}"
    for where in ("x" * 5000, "a\0b"):  # which no file can have
        refuses("no such folder", lambda where=where: Model.load(where))


@pytest.mark.parametrize(
    ("config", "summary"),
    [
        (Config(), "encoder · d_model 8 · 8 heads · d_ff 128 · 1 layer"),
        (Config(architecture="decoder", norm="pre", pad_id=1, bias=True, layers=3), "8 heads · d_ff 128 · 3 layers"),
        (
            Config(architecture="encoder-decoder", layers=3, decoder_layers=2, start_id=4),
            "encoder-decoder · d_model 8 · 8 heads · d_ff 128 · 3 + 2 layers",
        ),
    ],
)
def test_a_configuration_survives_json_with_keys_that_are_not_known(config, summary):
    written = config.to_json()
    assert Config.from_json(written | {"model_type": "vanilla", "transformers_version": "5"}) == config
    assert config.summary.endswith(summary)
    assert ({"decoder_layers", "start_id"} & written.keys() != set()) == config.has_decoder
    assert Config.from_json({"architecture": "encoder-decoder", "layers": 3}).decoder_layers == 3


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_family_is_at_most_three_classes_deep(model_type):
    own = [each.__name__ for each in family_of(model_type).__mro__ if each.__module__.startswith("tui_transformer.")]
    assert len(own) <= 3, own
