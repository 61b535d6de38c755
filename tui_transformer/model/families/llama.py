"""Llama (Touvron et al. 2023) in its published checkpoints, and the families that differ from it in little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, optional, positive, shown
from tui_transformer.model.description import ATTENTION_MATRICES, QUERY_KEY_VALUE
from tui_transformer.model.families.decoder import LAYER, DecoderConfig, less_one, llama_like
from tui_transformer.model.families.rope import LayerRopes, Rope
from tui_transformer.model.families.style import ALWAYS, ATTENTION_BIAS, Style
from tui_transformer.model.weight_table import Part, cut

STYLE = Style(biases=ATTENTION_BIAS, feed_forward_bias="mlp_bias")
BIASES = {"attention_bias": False, "mlp_bias": False}


@dataclass(frozen=True)
class LlamaConfig(DecoderConfig):
    """Llama."""

    model_type = "llama"
    style = STYLE
    own = BIASES


@dataclass(frozen=True)
class ArceeConfig(DecoderConfig):
    """Arcee (Arcee AI 2025): feed-forward layers have no gate and square what ReLU lets through."""

    model_type = "arcee"
    style = replace(STYLE, gated=False)
    own = BIASES


@dataclass(frozen=True)
class InternLm3Config(DecoderConfig):
    """InternLM 3 (Shanghai AI Laboratory 2025): Llama under other names of its biases."""

    model_type = "internlm3"
    style = STYLE
    own = BIASES
    other_names: ClassVar[Mapping[str, str]] = {"attention_bias": "qkv_bias", "mlp_bias": "bias"}


MULTIPLIERS = dict.fromkeys(
    ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"), 1.0
)


@dataclass(frozen=True)
class GraniteConfig(DecoderConfig):
    """Granite (Granite Team 2024): four multipliers, of embeddings, scores, sublayers and logits."""

    model_type = "granite"
    style = STYLE
    own = BIASES | MULTIPLIERS
    checks = dict.fromkeys(MULTIPLIERS, positive)


@dataclass(frozen=True)
class SeedOssConfig(DecoderConfig):
    """Seed-OSS (ByteDance Seed 2025): biases of query, key and value, and a setting for that of the output."""

    model_type = "seed_oss"
    style = replace(
        STYLE,
        biases={"attention_bias": QUERY_KEY_VALUE, "attention_out_bias": ATTENTION_MATRICES - QUERY_KEY_VALUE},
    )
    own: ClassVar[Mapping[str, Any]] = {"attention_bias": True, "mlp_bias": False, "attention_out_bias": False}


@dataclass(frozen=True)
class NemotronConfig(DecoderConfig):
    """Nemotron (Parmar et al. 2024): layer norms whose files hold γ − 1, no gate, half of every head turned."""

    model_type = "nemotron"
    style = replace(STYLE, gated=False, norm="layer", turned_in_part=True, whole=0.5)
    own = BIASES
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}
    weights = llama_like(
        {
            "decoder.{}.self_attention.norm.weight": less_one(f"{LAYER}.input_layernorm"),
            "decoder.{}.feed_forward.norm.weight": less_one(f"{LAYER}.post_attention_layernorm"),
            "decoder.norm.weight": less_one("model.norm"),
        }
    )


# With windows


@dataclass(frozen=True)
class MistralConfig(DecoderConfig):
    """Mistral (Jiang et al. 2023): Llama without biases, and with a window in every layer."""

    model_type = "mistral"
    own: ClassVar[Mapping[str, Any]] = {"sliding_window": 4096}


@dataclass(frozen=True)
class MinistralConfig(DecoderConfig):
    """Ministral (Mistral AI 2024): Mistral with a window in some layers, as `layer_types` says."""

    model_type = "ministral"
    own: ClassVar[Mapping[str, Any]] = {"sliding_window": 4096, "layer_types": None}


@dataclass(frozen=True)
class Starcoder2Config(DecoderConfig):
    """StarCoder 2 (Lozhkov et al. 2024): layer norms, biases everywhere, an ungated feed-forward layer."""

    model_type = "starcoder2"
    style = Style(biases={"use_bias": ATTENTION_MATRICES}, feed_forward_bias="use_bias", gated=False, norm="layer")
    own: ClassVar[Mapping[str, Any]] = {"use_bias": True, "sliding_window": None}
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_epsilon"}
    weights = llama_like(hidden="mlp.c_fc", down="mlp.c_proj")


LONGER: Mapping[str, Any] = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
"""Rotary positions of a file of CWM that says nothing of them: as in Llama 3.1."""


@dataclass(frozen=True)
class CwmConfig(DecoderConfig):
    """CWM (Meta FAIR 2025, "Code World Model"): a window in three of four layers; the first has none."""

    model_type = "cwm"
    style = Style(feed_forward_bias="mlp_bias")
    own: ClassVar[Mapping[str, Any]] = {"sliding_window": 8192, "layer_types": None, "mlp_bias": False}

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        said = raw.get("rope_parameters") or raw.get("rope_scaling")
        return super().read_rope(raw if said else {**raw, "rope_parameters": {"rope_theta": cls.theta, **LONGER}})

    def slides(self, layer: int) -> bool:
        return layer % 4 != 0


def turned_layers(key: str, value: object) -> None:
    """1 for a layer with rotary positions and 0 for one without, for every layer."""
    if not isinstance(value, tuple) or not all(each in (0, 1) for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of 0 and 1")


@dataclass(frozen=True)
class SmolLm3Config(DecoderConfig):
    """SmolLM3 (Bakouch et al. 2025): Llama whose every fourth layer has no rotary positions, and maybe a window."""

    model_type = "smollm3"
    style = STYLE
    own = BIASES | {"sliding_window": None, "layer_types": None, "use_sliding_window": False}
    checks: ClassVar[Mapping[str, Check]] = {"no_rope_layers": optional(turned_layers)}

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
        return not self.is_turned(layer)


# Phi


@dataclass(frozen=True)
class PhiConfig(DecoderConfig):
    """Phi (Gunasekar et al. 2023; Javaheripi et al. 2023): both sublayers read one norm, every matrix has a bias."""

    model_type = "phi"
    style = Style(
        turned_in_part=True,
        whole=0.5,
        biases={ALWAYS: ATTENTION_MATRICES},
        feed_forward_bias=ALWAYS,
        logits_bias=True,
        gated=False,
        norm="layer",
        parallel="one norm",
        head_norms="alike",
        head_norms_where="qk_layernorm",
    )
    own: ClassVar[Mapping[str, Any]] = {"qk_layernorm": False}
    keys: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "layer_norm_eps"}
    weights = llama_like(
        {"decoder.norm": "model.final_layernorm"},
        query_norm="self_attn.q_layernorm",
        key_norm="self_attn.k_layernorm",
        output="self_attn.dense",
        hidden="mlp.fc1",
        down="mlp.fc2",
    )


def projected(place: int) -> Part:
    """Query (0), key (1) or value (2), of a matrix that holds all three."""
    return Part("self_attn.qkv_proj", cut(place, lambda config: config.projected))


def gated(place: int) -> Part:
    """The gate (0) or what it gates (1)."""
    return Part("mlp.gate_up_proj", cut(place, lambda config: (config.intermediate_size,) * 2))


@dataclass(frozen=True)
class Phi3Config(DecoderConfig):
    """Phi-3 (Abdin et al. 2024), of which Phi-4 is one: Llama whose files hold query, key and value in one matrix."""

    model_type = "phi3"
    style = Style(turned_in_part=True)
    own: ClassVar[Mapping[str, Any]] = {"original_max_position_embeddings": 4096, "sliding_window": None}
    weights = llama_like(query=projected(0), key=projected(1), value=projected(2), gate=gated(0), hidden=gated(1))

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """`su` and `yarn` of old files are `longrope`; the old context is a setting of the model."""
        given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
        kind = given.get("rope_type", given.get("type", "default")) if isinstance(given, Mapping) else "default"
        if kind not in ("default", "longrope", "su", "yarn"):
            raise UsageError(f"rope_type {shown(kind)} is not known in {cls.model_type} models: use default, longrope")
        raw = {"original_max_position_embeddings": cls.own["original_max_position_embeddings"], **raw}
        if kind in ("su", "yarn"):
            raw = {**raw, "rope_scaling": {**given, "rope_type": "longrope"}}
        return super().read_rope(raw)

    @property
    def projected(self) -> tuple[int, int, int]:
        """Rows of query, key and value in the matrix that holds all three."""
        keys = self.kv_heads * self.head_width
        return self.num_attention_heads * self.head_width, keys, keys
