"""Cohere 2 (Command R7B, 2024): Cohere whose layers have a window and rotary positions, or neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import Check
from tui_transformer.model.description import Layer
from tui_transformer.model.families.cohere import WEIGHTS, CohereConfig
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.families.windowed import WindowedConfig


@dataclass(frozen=True)
class Cohere2Config(CohereConfig, WindowedConfig):
    """The keys of Cohere 2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "cohere2"
    title: ClassVar[str] = "Cohere 2"
    theta: ClassVar[float] = 10_000.0
    fixed: ClassVar[Mapping[str, Any]] = {**CohereConfig.fixed, "use_qk_norm": False}
    checks: ClassVar[Mapping[str, Check]] = {
        **CohereConfig.checks,
        **WindowedConfig.checks,
        "sliding_window_pattern": a_size,
    }

    sliding_window_pattern: int = 4

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a head has the model's width divided by the heads."""
        return super().from_json({key: value for key, value in raw.items() if key != "head_dim"})

    def usual_kind(self, layer: int) -> str:
        """No window in every fourth layer, or as the pattern says."""
        return SLIDING if (layer + 1) % self.sliding_window_pattern else FULL

    def layers(self) -> tuple[Layer, ...]:
        """Layers without a window have no rotary positions (Kazemnejad et al. 2023)."""
        return tuple(
            layer if layer.attention.window else replace(layer, attention=replace(layer.attention, rotary=None))
            for layer in super().layers()
        )


COHERE2 = decoder_family(Cohere2Config, WEIGHTS)
