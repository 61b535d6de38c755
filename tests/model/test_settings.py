"""Settings that cannot be are refused with one line that names them."""

from __future__ import annotations

import pytest

from tui_transformer.engine import backend as backend_module
from tui_transformer.engine import parts
from tui_transformer.engine.backend import Gpu
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.checks import LARGEST_SIZE, MOST_LAYERS
from tui_transformer.model.config import Config
from tui_transformer.model.families import FAMILIES, family_of

REFUSED = [
    ({"d_model": 0}, "d_model 0 is not a whole number from 1"),
    ({"d_model": -8}, "d_model -8 is not"),
    ({"d_model": 8.0}, "d_model 8.0 is not"),
    ({"d_model": "8"}, "d_model '8' is not"),
    ({"d_model": True}, "d_model True is not"),
    ({"d_model": None}, "d_model None is not"),
    ({"d_model": [8]}, "d_model [8] is not"),
    ({"d_model": LARGEST_SIZE + 1}, "d_model 16777217 is not"),
    ({"d_ff": 0}, "d_ff 0 is not"),
    ({"d_ff": 10**40}, "is not a whole number from 1 to 16,777,216"),
    ({"layers": 0}, "layers 0 is not"),
    ({"layers": MOST_LAYERS + 1}, "layers 1025 is not a whole number from 1 to 1,024"),
    ({"decoder_layers": 2}, "decoder_layers is a setting of the encoder-decoder: set layers of the encoder"),
    ({"heads": 0}, "heads 0 is not"),
    ({"heads": 3}, "d_model 8 is not divisible by 3 heads: heads can be 1, 2, 4, 8"),
    ({"heads": 16}, "d_model 8 is not divisible by 16 heads"),
    ({"max_length": 0}, "max_length 0 is not"),
    ({"vocab_size": 0}, "vocab_size 0 is not"),
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
    ({"causal": 1}, "causal 1 is neither true nor false"),
    ({"seed": -1}, "seed -1 is not a whole number from 0"),
    ({"seed": 1.5}, "seed 1.5 is not"),
    ({"seed": "x"}, "seed 'x' is not"),
    ({"dtype": "float16"}, "dtype 'float16' is not known: use float32 or float64"),
    ({"device": "tpu"}, "device 'tpu' is not known: use auto, cpu or gpu"),
    ({"d_modle": 8}, "d_modle is not a setting of this model"),
]


def message(where: str = "encoder", **settings: object) -> str:
    """The one line that refuses the settings."""
    with pytest.raises(InputError) as caught:
        Model.load(where, **{"device": "cpu", **settings})
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert len(text) < 250
    return text


@pytest.mark.parametrize(
    ("settings", "says"), REFUSED, ids=[f"{key}={value}" for case, _ in REFUSED for key, value in case.items()]
)
def test_a_setting_that_cannot_be_is_refused(settings, says):
    assert says in message(**settings)


@pytest.mark.parametrize("layers", [0, 1.5, MOST_LAYERS + 1])
def test_layers_of_a_decoder_that_cannot_be_are_refused(layers):
    assert f"decoder_layers {layers} is not a whole number" in message("encoder-decoder", decoder_layers=layers)


@pytest.mark.parametrize("settings", [{"length": 5}, {"width": 3}, {"vocab_size": 8}, {"d_model": 8}, {"causal": "no"}])
def test_the_attention_example_cannot_be_resized(settings):
    assert message("attention", **settings)


def test_the_attention_example_can_do_without_its_mask():
    trace = Model.load("attention", device="cpu", causal=False).trace()
    assert trace["encoder.0.self_attention.weights"].min() > 0


def test_the_attention_example_reads_no_tokens():
    with pytest.raises(InputError, match="reads no tokens"):
        Model.load("attention", device="cpu").trace(ids=[1])


def test_a_missing_gpu_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(None, "CuPy sees no GPU"))
    assert message(device="gpu") == "no GPU: CuPy sees no GPU; use --device cpu"


def test_weights_that_do_not_fit_the_memory_are_refused_before_they_are_made():
    assert "of memory and" in message(d_model=1 << 20, heads=8, d_ff=1 << 24)


def test_a_trace_that_does_not_fit_the_memory_is_refused(monkeypatch):
    model = Model.load("encoder", device="cpu")
    monkeypatch.setattr(parts, "available_memory", lambda: 100_000)
    model.trace(ids=[[2] * 40] * 2)
    monkeypatch.setattr(parts, "available_memory", lambda: 80_000)
    with pytest.raises(InputError, match="160 tokens need 80 KiB of memory and"):
        model.trace(ids=[[2] * 40] * 4)


def test_an_unknown_model_is_told_where_those_are_listed():
    advice = "`tui-transformer models` lists those on this computer"
    assert message("encodr") == f"encodr: no such folder, and no model of this name: {advice}"


@pytest.mark.parametrize("where", ["x" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_refused(where):
    with pytest.raises(InputError, match="no such folder"):
        Model.load(where)


def test_the_defaults_are_a_valid_encoder():
    assert Config().summary == "encoder · d_model 8 · 8 heads · d_ff 128 · 1 layer"


def test_a_configuration_survives_json():
    config = Config(architecture="decoder", norm="pre", pad_id=1, bias=True, layers=3)
    assert Config.from_json(config.to_json()) == config


def test_a_configuration_of_two_stacks_survives_json():
    config = Config(architecture="encoder-decoder", layers=3, decoder_layers=2, start_id=4)
    assert Config.from_json(config.to_json()) == config
    assert config.summary == "encoder-decoder · d_model 8 · 8 heads · d_ff 128 · 3 + 2 layers"


def test_both_stacks_are_equally_high_where_json_gives_one_number():
    assert Config.from_json({"architecture": "encoder-decoder", "layers": 3}).decoder_layers == 3


def test_a_model_of_one_stack_writes_no_settings_of_a_second():
    assert not {"decoder_layers", "start_id"} & set(Config().to_json())


def test_keys_of_json_that_are_not_known_are_left_alone():
    assert Config.from_json({"model_type": "vanilla", "transformers_version": "5"}) == Config()


@pytest.mark.parametrize("size", ["d_model", "layers", "seed"])
def test_settings_of_a_folder_cannot_be_changed(reference, size):
    with pytest.raises(UsageError, match=f"^{size}: the sizes and weights of .* are in its folder and cannot be set"):
        Model.load(reference.folder, **{size: 2})


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_family_is_at_most_three_classes_deep(model_type):
    own = [each.__name__ for each in family_of(model_type).__mro__ if each.__module__.startswith("tui_transformer.")]
    assert len(own) <= 3, own
