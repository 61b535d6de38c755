"""OLMo (OLMo Team 2024, 2025) and EXAONE 4: norms behind the sublayers, and of query and key heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import ATTENTION_MATRICES
from tui_transformer.model.families.decoder import LAYER, PARTS, ROUTED_PARTS, DecoderConfig
from tui_transformer.model.families.layer_kinds import LayerRopes, read_layer_ropes
from tui_transformer.model.weight_table import WeightTable

WEIGHTS = WeightTable(
    {
        **PARTS,
        "decoder.{}.self_attention.output_norm": f"{LAYER}.post_attention_layernorm",
        "decoder.{}.feed_forward.output_norm": f"{LAYER}.post_feedforward_layernorm",
    },
    prefix="model.",
)


@dataclass(frozen=True)
class OlmoSettings:
    """What the families of OLMo share: an RMS norm of all query heads, and of all key heads (OLMo 2, §3.2)."""

    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    place: ClassVar[str] = "output"
    head_norms: ClassVar[str] = "together"

    vocab_size: int = 50304
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 1
    attention_bias: bool = False


@dataclass(frozen=True)
class Olmo2Config(OlmoSettings, DecoderConfig):
    """OLMo 2: sublayers are x + norm(f(x)) (OLMo Team 2024, §3.2)."""

    model_type = "olmo2"
    title = "OLMo 2"
    weights = WEIGHTS


@dataclass(frozen=True)
class Olmo3Config(OlmoSettings, DecoderConfig):
    """OLMo 3: OLMo 2 with a window in three of four layers."""

    model_type = "olmo3"
    title = "OLMo 3"
    theta = 500_000.0
    weights = WEIGHTS

    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> LayerRopes:
        """`rope_theta` of old files is that of the layers without a window, as the published code reads it."""
        return read_layer_ropes(raw, cls.theta, cls.theta, "", cls.max_position_embeddings)

    def slides(self, layer: int) -> bool:
        """But for every fourth layer."""
        return (layer + 1) % 4 != 0


@dataclass(frozen=True)
class OlmoeConfig(OlmoSettings, DecoderConfig):
    """OLMoE (Muennighoff et al. 2024): pre-norm, with experts (§2)."""

    model_type = "olmoe"
    title = "OLMoE"
    other_names: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "clip_qkv": None}
    place = "pre"
    weights = WeightTable({**PARTS, **ROUTED_PARTS}, prefix="model.")

    hidden_size: int = 2048
    intermediate_size: int | None = 2048
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    max_position_embeddings: int = 4096
    num_experts: int = 64
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = False


@dataclass(frozen=True)
class Exaone4Config(DecoderConfig):
    """EXAONE 4 (LG AI Research 2025): norms behind the sublayers and of heads; windows in some layers."""

    model_type = "exaone4"
    title = "EXAONE 4"
    place = "output"
    head_norms = "alike"
    weights = WEIGHTS

    vocab_size: int = 102400
    intermediate_size: int | None = 16384
    num_key_value_heads: int | None = 32
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None
    sliding_window_pattern: str | int | None = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        pattern = self.sliding_window_pattern if self.sliding_window is not None else None
        if pattern is not None and not isinstance(pattern, str) and not _counts(pattern):
            raise UsageError(f"sliding_window_pattern {shown(pattern)} is neither a count of layers nor letters")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a pattern of letters is only read as `layer_types`."""
        pattern = raw.get("sliding_window_pattern", 4)
        if raw.get("layer_types") is None and raw.get("sliding_window", 4096) is not None and not _counts(pattern):
            raise UsageError(f"sliding_window_pattern {shown(pattern)} without layer_types is not supported")
        return super().from_json(raw)

    def slides(self, layer: int) -> bool:
        """But for every fourth layer, or as the pattern says."""
        pattern = self.sliding_window_pattern
        return self.sliding_window is not None and isinstance(pattern, int) and (layer + 1) % pattern != 0

    def is_turned(self, layer: int, window: int | None) -> bool:
        """Where some layers have a window, those without have no rotary positions (Kazemnejad et al. 2023)."""
        del layer
        return self.sliding_window is None or window is not None


def _counts(pattern: object) -> bool:
    return isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0
