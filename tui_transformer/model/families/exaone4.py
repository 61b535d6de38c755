"""EXAONE 4 (LG AI Research 2025): norms behind the sublayers and of heads; layers without a window are not turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import Attention, Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.olmo2 import WEIGHTS
from tui_transformer.model.families.windowed import WindowedConfig


@dataclass(frozen=True)
class Exaone4Config(WindowedConfig):
    """The keys of EXAONE 4's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "exaone4"
    title: ClassVar[str] = "EXAONE 4"

    vocab_size: int = 102400
    intermediate_size: int = 16384
    num_key_value_heads: int | None = 32
    rms_norm_eps: float = 1e-5
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

    def usual_kind(self, layer: int) -> str:
        """No window in every fourth layer, or as the pattern says."""
        pattern = self.sliding_window_pattern
        counts = self.sliding_window is not None and isinstance(pattern, int) and (layer + 1) % pattern
        return SLIDING if counts else FULL

    def attention(self) -> Attention:
        """With an RMS norm of every query and key head."""
        return replace(super().attention(), head_norm=self.final_norm())

    def layer(self) -> Layer:
        """Sublayers are x + norm(f(x))."""
        return replace(super().layer(), place="output")

    def layers(self) -> tuple[Layer, ...]:
        """Where some layers have a window, those without have no rotary positions (Kazemnejad et al. 2023)."""
        everywhere = self.sliding_window is None
        return tuple(
            layer
            if everywhere or layer.attention.window
            else replace(layer, attention=replace(layer.attention, rotary=None))
            for layer in super().layers()
        )


def _counts(pattern: object) -> bool:
    return isinstance(pattern, int) and not isinstance(pattern, bool) and pattern > 0


EXAONE4 = decoder_family(Exaone4Config, WEIGHTS)
