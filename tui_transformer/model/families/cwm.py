"""CWM (Meta FAIR 2025, "Code World Model"): Llama with a window in three of four layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.llama import WEIGHTS
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.windowed import WindowedConfig

USUAL: Mapping[str, Any] = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@dataclass(frozen=True)
class CwmConfig(WindowedConfig):
    """The keys of CWM's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "cwm"
    title: ClassVar[str] = "CWM"
    theta: ClassVar[float] = 1e6
    feed_forward_bias: ClassVar[str] = "mlp_bias"
    checks: ClassVar[Mapping[str, Check]] = {**WindowedConfig.checks, "mlp_bias": truth}

    vocab_size: int = 128256
    hidden_size: int = 6144
    intermediate_size: int = 21504
    num_hidden_layers: int = 64
    num_attention_heads: int = 48
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    sliding_window: int | None = 8192
    mlp_bias: bool = False
    rope_parameters: Rope | LayerRopes = field(default_factory=lambda: Rope(rope_theta=1e6, **USUAL))

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """Scaled as in Llama 3.1 where the file says nothing."""
        said = raw.get("rope_parameters") or raw.get("rope_scaling")
        return super().read_rope(raw if said else {**raw, "rope_parameters": {"rope_theta": cls.theta, **USUAL}})

    def usual_kind(self, layer: int) -> str:
        """No window in every fourth layer, the first among them."""
        return SLIDING if layer % 4 else FULL


CWM = decoder_family(CwmConfig, WEIGHTS)
