"""Cohere (Command R, 2024), and the other families whose files have columns that turn together side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder import LAYER, PARTS, DecoderConfig
from tui_transformer.model.families.llama import LlamaSettings
from tui_transformer.model.families.phi import gated
from tui_transformer.model.weight_table import Part, WeightTable, halves_of_pairs

IN_HALVES = halves_of_pairs(lambda config: config.head_width)
WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.query": Part(f"{LAYER}.self_attn.q_proj", IN_HALVES),
        "decoder.{}.self_attention.query_norm.{}": Part(
            f"{LAYER}.self_attn.q_norm", IN_HALVES, turned=False, stacked=True
        ),
        "decoder.{}.self_attention.key": Part(f"{LAYER}.self_attn.k_proj", IN_HALVES),
        "decoder.{}.self_attention.key_norm.{}": Part(
            f"{LAYER}.self_attn.k_norm", IN_HALVES, turned=False, stacked=True
        ),
    },
    prefix="model.",
)


@dataclass(frozen=True)
class CohereSettings:
    """What the families of Cohere share: both sublayers read one norm, which has no shift."""

    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    norm_kind: ClassVar[str] = "layer"
    shift: ClassVar[bool] = False
    parallel: ClassVar[str] = "one norm"
    head_norms: ClassVar[str] = "own"
    head_norms_where: ClassVar[str] = "use_qk_norm"
    weights: ClassVar[WeightTable] = WEIGHTS

    vocab_size: int = 256000
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    hidden_size: int = 8192
    intermediate_size: int | None = 22528
    num_hidden_layers: int = 40
    num_attention_heads: int = 64
    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    logit_scale: float = 0.0625
    attention_bias: bool = False
    use_qk_norm: bool = False


@dataclass(frozen=True)
class CohereConfig(CohereSettings, DecoderConfig):
    """Cohere."""

    model_type = "cohere"
    title = "Cohere"
    theta = 500_000.0


@dataclass(frozen=True)
class Cohere2Config(CohereSettings, DecoderConfig):
    """Cohere 2 (Command R7B, 2024): layers have a window and rotary positions, or neither."""

    model_type = "cohere2"
    title = "Cohere 2"
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "use_qk_norm": False}

    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    sliding_window_pattern: int = 4

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a head has the model's width divided by the heads."""
        return super().from_json({key: value for key, value in raw.items() if key != "head_dim"})

    def slides(self, layer: int) -> bool:
        """But for every fourth layer, or as the pattern says."""
        return (layer + 1) % self.sliding_window_pattern != 0

    def is_turned(self, layer: int, window: int | None) -> bool:
        """Layers without a window have no rotary positions (Kazemnejad et al. 2023)."""
        del layer
        return window is not None


@dataclass(frozen=True)
class HeliumConfig(LlamaSettings, DecoderConfig):
    """Helium (Kyutai 2025): Llama."""

    model_type = "helium"
    title = "Helium"
    theta = 100_000.0
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": QUERY_KEY_VALUE}
    weights = WEIGHTS

    vocab_size: int = 48000
    pad_token_id: int | None = 3
    hidden_size: int = 2560
    intermediate_size: int | None = 7040
    num_hidden_layers: int = 24
    num_attention_heads: int = 20
    num_key_value_heads: int | None = 20
    head_dim: int = 128
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-8


@dataclass(frozen=True)
class Ernie45Config(DecoderConfig):
    """ERNIE 4.5 (Baidu 2025), dense: Llama with one setting for all biases."""

    model_type = "ernie4_5"
    title = "ERNIE 4.5"
    theta = 500_000.0
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"use_bias": ATTENTION_MATRICES}
    feed_forward_bias = "use_bias"
    weights = WEIGHTS

    vocab_size: int = 103424
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    hidden_size: int = 1024
    intermediate_size: int | None = 3072
    num_hidden_layers: int = 18
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    use_bias: bool = False


# Half of every head turned


def turned(config: DecoderConfig) -> int:
    """Columns of a head that are turned."""
    (rope,) = config.ropes
    return rope.width(config.head_width)


TURNED = halves_of_pairs(turned)
"""Columns that are not turned are put in the same order in queries and keys: scores are the same."""

GLM_PARTS: Mapping[str, str | Part] = {
    **PARTS,
    "decoder.{}.self_attention.query": Part(f"{LAYER}.self_attn.q_proj", TURNED),
    "decoder.{}.self_attention.key": Part(f"{LAYER}.self_attn.k_proj", TURNED),
    "decoder.{}.feed_forward.gate": gated(0),
    "decoder.{}.feed_forward.hidden": gated(1),
}


@dataclass(frozen=True)
class GlmSettings:
    """What the families of GLM share."""

    turned_in_part: ClassVar[bool] = True
    whole: ClassVar[float] = 0.5
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": QUERY_KEY_VALUE}

    vocab_size: int = 151552
    pad_token_id: int | None = 151329
    intermediate_size: int | None = 13696
    num_hidden_layers: int = 40
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1.5625e-7
    attention_bias: bool = True


def _check_turned(config: DecoderConfig) -> None:
    """Raise UsageError where columns that are turned do not divide those of a head."""
    if config.head_width % turned(config):
        raise UsageError(
            f"{shown(turned(config))} columns that are turned do not divide head_dim {shown(config.head_width)}: "
            "this is not supported"
        )


@dataclass(frozen=True)
class GlmConfig(GlmSettings, DecoderConfig):
    """GLM-4 (GLM Team 2024) in its newer files."""

    model_type = "glm"
    title = "GLM"
    weights = WeightTable(GLM_PARTS, prefix="model.")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_turned(self)


@dataclass(frozen=True)
class Glm4Config(GlmSettings, DecoderConfig):
    """GLM-4-0414 (Zhipu AI 2025): a norm before and after every sublayer."""

    model_type = "glm4"
    title = "GLM-4"
    place = "both"
    weights = WeightTable(
        {
            **GLM_PARTS,
            "decoder.{}.self_attention.output_norm": f"{LAYER}.post_self_attn_layernorm",
            "decoder.{}.feed_forward.output_norm": f"{LAYER}.post_mlp_layernorm",
        },
        prefix="model.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_turned(self)
