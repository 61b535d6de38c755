"""OLMo 3 (OLMo Team 2025): OLMo 2 with a window in three of four layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.layer_ropes import LayerRopes, read_layer_ropes
from tui_transformer.model.families.olmo2 import WEIGHTS, OlmoConfig
from tui_transformer.model.families.rope import Rope
from tui_transformer.model.families.windowed import WindowedConfig

THETA = 500_000.0


@dataclass(frozen=True)
class Olmo3Config(OlmoConfig, WindowedConfig):
    """The keys of OLMo 3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "olmo3"
    title: ClassVar[str] = "OLMo 3"
    checks: ClassVar[Mapping[str, Check]] = {**OlmoConfig.checks, **WindowedConfig.checks}

    rope_parameters: Rope | LayerRopes = field(default_factory=LayerRopes)

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> LayerRopes:
        """`rope_theta` of old files is that of the layers without a window, as the published code reads it."""
        return read_layer_ropes(raw, THETA, THETA, "", cls.max_position_embeddings)

    def usual_kind(self, layer: int) -> str:
        """No window in every fourth layer."""
        return SLIDING if (layer + 1) % 4 else FULL


OLMO3 = decoder_family(Olmo3Config, WEIGHTS)
