"""Llama (Touvron et al. 2023) in its published checkpoints, and the families that differ from it in little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, optional, positive, shown
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder import LAYER, PARTS, WEIGHTS, DecoderConfig, less_one
from tui_transformer.model.families.layer_kinds import LayerRopes
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class LlamaSettings:
    """The settings of Llama that not all its relatives have."""

    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = "mlp_bias"

    attention_bias: bool = False
    mlp_bias: bool = False


@dataclass(frozen=True)
class LlamaConfig(LlamaSettings, DecoderConfig):
    """Llama."""

    model_type = "llama"
    title = "Llama"
    weights = WEIGHTS


@dataclass(frozen=True)
class ArceeConfig(LlamaSettings, DecoderConfig):
    """Arcee (Arcee AI 2025): feed-forward layers have no gate and square what ReLU lets through."""

    model_type = "arcee"
    title = "Arcee"
    weights = WEIGHTS
    gated = False

    hidden_size: int = 2560
    intermediate_size: int | None = 18432
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5


@dataclass(frozen=True)
class InternLm3Config(LlamaSettings, DecoderConfig):
    """InternLM 3 (Shanghai AI Laboratory 2025): Llama under other names of its biases."""

    model_type = "internlm3"
    title = "InternLM 3"
    other_names: ClassVar[Mapping[str, str]] = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}
    weights = WEIGHTS

    vocab_size: int = 128512
    pad_token_id: int | None = 2
    intermediate_size: int | None = 10240
    num_hidden_layers: int = 48
    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-5


@dataclass(frozen=True)
class GraniteConfig(LlamaSettings, DecoderConfig):
    """Granite (Granite Team 2024): four multipliers, of embeddings, scores, sublayers and logits."""

    model_type = "granite"
    title = "Granite"
    checks = dict.fromkeys(
        ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"), positive
    )
    weights = WEIGHTS

    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0


@dataclass(frozen=True)
class SeedOssConfig(LlamaSettings, DecoderConfig):
    """Seed-OSS (ByteDance Seed 2025): biases of query, key and value, and a setting for that of the output."""

    model_type = "seed_oss"
    title = "Seed-OSS"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {
        "attention_bias": QUERY_KEY_VALUE,
        "attention_out_bias": ATTENTION_MATRICES - QUERY_KEY_VALUE,
    }
    weights = WEIGHTS

    vocab_size: int = 155136
    pad_token_id: int | None = 1
    intermediate_size: int | None = 27648
    num_hidden_layers: int = 64
    num_attention_heads: int = 80
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False


@dataclass(frozen=True)
class NemotronConfig(LlamaSettings, DecoderConfig):
    """Nemotron (Parmar et al. 2024): layer norms whose files hold γ − 1, no gate, half of every head turned."""

    model_type = "nemotron"
    title = "Nemotron"
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}
    gated = False
    norm_kind = "layer"
    turned_in_part = True
    whole = 0.5
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.self_attention.norm.weight": less_one(f"{LAYER}.input_layernorm"),
            "decoder.{}.feed_forward.norm.weight": less_one(f"{LAYER}.post_attention_layernorm"),
            "decoder.norm.weight": less_one("model.norm"),
        },
        prefix="model.",
    )

    vocab_size: int = 256000
    hidden_size: int = 6144
    intermediate_size: int | None = 24576
    num_attention_heads: int = 48
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5


# With windows


@dataclass(frozen=True)
class MistralConfig(DecoderConfig):
    """Mistral (Jiang et al. 2023): Llama without biases, and with a window in every layer."""

    model_type = "mistral"
    title = "Mistral"
    weights = WEIGHTS

    intermediate_size: int | None = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096


@dataclass(frozen=True)
class MinistralConfig(DecoderConfig):
    """Ministral (Mistral AI 2024): Mistral with a window in some layers, as `layer_types` says."""

    model_type = "ministral"
    title = "Ministral"
    weights = WEIGHTS

    intermediate_size: int | None = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Starcoder2Config(DecoderConfig):
    """StarCoder 2 (Lozhkov et al. 2024): layer norms, biases everywhere, an ungated feed-forward layer."""

    model_type = "starcoder2"
    title = "StarCoder 2"
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_epsilon"}
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"use_bias": ATTENTION_MATRICES}
    feed_forward_bias = "use_bias"
    gated = False
    norm_kind = "layer"
    weights = WeightTable(
        {
            **PARTS,
            "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.c_fc",
            "decoder.{}.feed_forward.output": f"{LAYER}.mlp.c_proj",
        },
        prefix="model.",
    )

    vocab_size: int = 49152
    tie_word_embeddings: bool = True
    hidden_size: int = 3072
    intermediate_size: int | None = 12288
    num_hidden_layers: int = 30
    num_attention_heads: int = 24
    num_key_value_heads: int | None = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5
    use_bias: bool = True
    sliding_window: int | None = None


LONGER: Mapping[str, Any] = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
"""Rotary positions of a file of CWM that says nothing of them: as in Llama 3.1."""


@dataclass(frozen=True)
class CwmConfig(DecoderConfig):
    """CWM (Meta FAIR 2025, "Code World Model"): a window in three of four layers."""

    model_type = "cwm"
    title = "CWM"
    theta = 1e6
    feed_forward_bias = "mlp_bias"
    weights = WEIGHTS

    vocab_size: int = 128256
    hidden_size: int = 6144
    intermediate_size: int | None = 21504
    num_hidden_layers: int = 64
    num_attention_heads: int = 48
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 8192
    layer_types: tuple[str, ...] | None = None
    mlp_bias: bool = False

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """Scaled where the file says nothing."""
        said = raw.get("rope_parameters") or raw.get("rope_scaling")
        return super().read_rope(raw if said else {**raw, "rope_parameters": {"rope_theta": cls.theta, **LONGER}})

    def slides(self, layer: int) -> bool:
        """In three of four layers; the first has none."""
        return layer % 4 != 0


def turned_layers(key: str, value: object) -> None:
    """1 for a layer with rotary positions and 0 for one without, for every layer."""
    if not isinstance(value, tuple) or not all(each in (0, 1) for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of 0 and 1")


@dataclass(frozen=True)
class SmolLm3Config(LlamaSettings, DecoderConfig):
    """SmolLM3 (Bakouch et al. 2025): Llama whose every fourth layer has no rotary positions."""

    model_type = "smollm3"
    title = "SmolLM3"
    theta = 2_000_000.0
    checks: ClassVar[Mapping[str, Check]] = {"no_rope_layers": optional(turned_layers)}
    weights = WEIGHTS

    vocab_size: int = 128256
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 128004
    hidden_size: int = 2048
    num_hidden_layers: int = 36
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    sliding_window: int | None = None
    layer_types: tuple[str, ...] | None = None
    use_sliding_window: bool = False
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.num_hidden_layers if self.no_rope_layers is None else len(self.no_rope_layers)
        if named < self.num_hidden_layers:
            raise UsageError(f"no_rope_layers names {named} layers of {self.num_hidden_layers}")

    def is_turned(self, layer: int, window: int | None = None) -> bool:
        """Where the file says 1, whatever the key's name says (Kazemnejad et al. 2023)."""
        del window
        every, said = self.no_rope_layer_interval, self.no_rope_layers
        return (layer + 1) % every != 0 if said is None else said[layer] == 1

    def slides(self, layer: int) -> bool:
        """Where there are no rotary positions."""
        return not self.is_turned(layer)
