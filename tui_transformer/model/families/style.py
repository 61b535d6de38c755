"""What the families of decoders differ in: the style of their layers, and by `model_type` their titles and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tui_transformer.engine.ops import Scale
from tui_transformer.records import dataclass, field

ALWAYS = "always"
"""In place of a setting that is true."""

Slides = Callable[[Any, int], bool]
"""Whether a layer has a window, from the configuration and the number of the layer."""


def all_but_every(count: int | str) -> Slides:
    """Windows in all layers but one of so many, the last of them; or of as many as a setting says."""

    def slides(config: Any, layer: int) -> bool:
        every: int = getattr(config, count) if isinstance(count, str) else count
        return (layer + 1) % every != 0

    return slides


every_other = all_but_every(2)


@dataclass(frozen=True)
class Style:
    """How the layers of a family differ from Llama's.

    Attributes:
        positions: "rotary", "learned" or "none".
        part: Of a head's columns that is turned where the file says nothing; None where all are, whatever it says.
        norm: "rms", or "layer" for layer norms.
        shift: Layer norms have β.
        place: Of the norms, as in `Layer`.
        parallel: How sublayers run side by side, as in `Layer`; unless `use_parallel_residual` is false.
        head_norms: How query and key heads are normalised, as in `Attention`, "" for not at all.
        head_norms_where: The setting that says whether they are.
        gated: The feed-forward layer has a gate.
        bias: Setting, or `ALWAYS`, that gives query, key and value a bias; "" for none.
        output_bias: The same of the output of the attention; None where one setting is for all.
        feed_forward_bias: The same of every matrix of the feed-forward layer.
        logits_bias: The logits have one.
        heads_divide: The number of heads divides the width of the model even where `head_dim` says another width.
        root_scaled: Rows of the embedding are times √d_model.
        scale: What scores are multiplied by; None for 1 ÷ √d_k.
        slides: Which layers have a window, where windows are used and the file has no `layer_types`.
        turns: Which have the rotary positions of their kind, by the number of the layer and its window.
        in_pairs: Files have columns that turn together side by side.
        usual_rope: `rope_parameters` of a file that says nothing of rotary positions.
        theta_of_windows: Where layers with a window have rotary positions of their own: the name of θ in old files, and
            its default.
    """

    positions: str = "rotary"
    part: float | None = None
    norm: str = "rms"
    shift: bool = True
    place: str = "pre"
    parallel: str = ""
    head_norms: str = ""
    head_norms_where: str = ALWAYS
    gated: bool = True
    bias: str = ""
    output_bias: str | None = None
    feed_forward_bias: str = ""
    logits_bias: bool = False
    heads_divide: bool = False
    root_scaled: bool = False
    scale: Scale | None = None
    slides: Slides = lambda _, __: True
    turns: Callable[[Any, int, int | None], bool] = lambda *_: True
    in_pairs: bool = False
    usual_rope: Mapping[str, Any] = field(default_factory=dict)
    theta_of_windows: tuple[str, float] | None = None


LLAMA, BIASED = Style(), Style(bias="attention_bias")

COLUMNS = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "max_position_embeddings", "rope_theta", "rms_norm_eps", "hidden_act"),
    *("pad_token_id", "tie_word_embeddings"),
)
"""Settings, in the order of the numbers behind a title below; an inner width of None is 4 · hidden_size."""

BY_TANH = "gelu_pytorch_tanh"
SIZES: Mapping[str, tuple[Any, ...]] = {
    # title, words, d_model, d_ff, layers, heads, key heads, d_k, tokens, θ, ε, activation, padding, tied
    "gpt2": ("GPT-2", 50257, 768, None, 12, 12, None, None, 1024, 1e4, 1e-5, "gelu_new", None, True),
    "gpt_neox": ("GPT-NeoX", 50432, 6144, 24576, 44, 64, None, None, 2048, 1e4, 1e-5, "gelu", None, False),
    "llama": ("Llama", 32000, 4096, 11008, 32, 32, None, None, 2048, 1e4, 1e-6, "silu", None, False),
    "mistral": ("Mistral", 32000, 4096, 14336, 32, 32, 8, None, 131072, 1e4, 1e-6, "silu", None, False),
    "qwen2": ("Qwen2", 151936, 4096, 22016, 32, 32, 32, None, 32768, 1e4, 1e-6, "silu", None, False),
    "qwen3": ("Qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e4, 1e-6, "silu", None, False),
    "gemma": ("Gemma", 256000, 3072, 24576, 28, 16, 16, 256, 8192, 1e4, 1e-6, BY_TANH, None, True),
    "gemma2": ("Gemma 2", 256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e4, 1e-6, BY_TANH, None, True),
    "gemma3_text": ("Gemma 3", 262208, 2304, 9216, 26, 8, 4, 256, 131072, 1e6, 1e-6, BY_TANH, None, True),
    "olmo2": ("OLMo 2", 50304, 4096, 11008, 32, 32, None, None, 2048, 1e4, 1e-5, "silu", 1, False),
    "olmo3": ("OLMo 3", 50304, 4096, 11008, 32, 32, None, None, 2048, 5e5, 1e-5, "silu", 1, False),
    "smollm3": ("SmolLM3", 128256, 2048, 11008, 36, 16, 4, None, 32768, 2e6, 1e-6, "silu", 128004, True),
    "phi3": ("Phi-3", 32064, 3072, 8192, 32, 32, None, None, 4096, 1e4, 1e-5, "silu", 32000, False),
    "granite": ("Granite", 32000, 4096, 11008, 32, 32, None, None, 2048, 1e4, 1e-6, "silu", None, False),
    "starcoder2": ("StarCoder 2", 49152, 3072, 12288, 30, 24, 2, None, 4096, 1e4, 1e-5, BY_TANH, None, True),
    "phi": ("Phi", 51200, 2048, 8192, 24, 32, None, None, 2048, 1e4, 1e-5, "gelu_new", None, False),
    "stablelm": ("StableLM", 50304, 2560, 6912, 32, 32, 32, None, 4096, 1e4, 1e-5, "silu", None, False),
    "cohere": ("Cohere", 256000, 8192, 22528, 40, 64, None, None, 8192, 5e5, 1e-5, "silu", 0, True),
    "falcon": ("Falcon", 65024, 4544, 18176, 32, 71, None, None, 2048, 1e4, 1e-5, "gelu", None, True),
    "bloom": ("BLOOM", 250880, 64, None, 2, 8, None, None, 2048, 1e4, 1e-5, "gelu_new", None, True),
    "opt": ("OPT", 50272, 768, 3072, 12, 12, None, None, 2048, 1e4, 1e-5, "relu", 1, True),
    "mixtral": ("Mixtral", 32000, 4096, 14336, 32, 32, 8, None, 131072, 1e6, 1e-5, "silu", None, False),
    "qwen2_moe": ("Qwen2-MoE", 151936, 2048, 5632, 24, 16, 16, None, 32768, 1e4, 1e-6, "silu", None, False),
    "qwen3_moe": ("Qwen3-MoE", 151936, 2048, 6144, 24, 32, 4, None, 32768, 1e4, 1e-6, "silu", None, False),
    "gpt_oss": ("gpt-oss", 201088, 2880, 2880, 36, 64, 8, 64, 131072, 1.5e5, 1e-5, "silu", None, False),
    "olmoe": ("OLMoE", 50304, 2048, 2048, 16, 16, None, None, 4096, 1e4, 1e-5, "silu", 1, False),
    "gpt_neo": ("GPT-Neo", 50257, 2048, None, 24, 16, None, None, 2048, 1e4, 1e-5, "gelu_new", None, True),
    "ministral": ("Ministral", 32000, 4096, 14336, 32, 32, 8, None, 131072, 1e4, 1e-6, "silu", None, False),
    "seed_oss": ("Seed-OSS", 155136, 4096, 27648, 64, 80, 8, 128, 524288, 1e4, 1e-6, "silu", 1, False),
    "cohere2": ("Cohere 2", 256000, 8192, 22528, 40, 64, None, None, 8192, 1e4, 1e-5, "silu", 0, True),
    "exaone4": ("EXAONE 4", 102400, 4096, 16384, 32, 32, 32, None, 2048, 1e4, 1e-5, "silu", None, False),
    "ernie4_5": ("ERNIE 4.5", 103424, 1024, 3072, 18, 16, 2, 128, 131072, 5e5, 1e-5, "silu", 0, True),
    "helium": ("Helium", 48000, 2560, 7040, 24, 20, 20, 128, 4096, 1e5, 1e-8, "silu", 3, False),
    "arcee": ("Arcee", 32000, 2560, 18432, 32, 32, None, None, 4096, 1e4, 1e-5, "relu2", None, False),
    "nemotron": ("Nemotron", 256000, 6144, 24576, 32, 48, None, None, 4096, 1e4, 1e-5, "relu2", None, False),
    "glm": ("GLM", 151552, 4096, 13696, 40, 32, 2, 128, 131072, 1e4, 1.5625e-7, "silu", 151329, False),
    "glm4": ("GLM-4", 151552, 4096, 13696, 40, 32, 2, 128, 131072, 1e4, 1.5625e-7, "silu", 151329, False),
    "internlm3": ("InternLM 3", 128512, 4096, 10240, 48, 32, 2, 128, 32768, 1e4, 1e-5, "silu", 2, False),
    "cwm": ("CWM", 128256, 6144, 21504, 64, 48, 8, 128, 131072, 1e6, 1e-5, "silu", None, False),
    "gpt_bigcode": ("GPT-BigCode", 50257, 768, None, 12, 12, 1, None, 1024, 1e4, 1e-5, BY_TANH, None, True),
    "gptj": ("GPT-J", 50400, 4096, None, 28, 16, None, None, 2048, 1e4, 1e-5, "gelu_new", None, False),
}


def sizes_of(model_type: str) -> dict[str, Any]:
    """The sizes of a family by setting, and its title under "title"."""
    return dict(zip(("title", *COLUMNS), SIZES[model_type], strict=True))
