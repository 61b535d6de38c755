"""SmolLM3 (Bakouch et al. 2025): Llama whose every fourth layer has no rotary positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import Layer
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.llama import WEIGHTS, LlamaConfig
from tui_transformer.model.families.settings import a_size, optional
from tui_transformer.model.families.windowed import WindowedConfig


def turned_layers(key: str, value: object) -> None:
    """1 for a layer with rotary positions and 0 for one without, for every layer."""
    if not isinstance(value, tuple) or not all(each in (0, 1) for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of 0 and 1")


@dataclass(frozen=True)
class SmolLm3Config(LlamaConfig, WindowedConfig):
    """The keys of SmolLM3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "smollm3"
    title: ClassVar[str] = "SmolLM3"
    theta: ClassVar[float] = 2_000_000.0
    checks: ClassVar[Mapping[str, Check]] = {
        **LlamaConfig.checks,
        **WindowedConfig.checks,
        "use_sliding_window": truth,
        "no_rope_layers": optional(turned_layers),
        "no_rope_layer_interval": a_size,
    }

    vocab_size: int = 128256
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 128004
    hidden_size: int = 2048
    num_hidden_layers: int = 36
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    sliding_window: int | None = None
    use_sliding_window: bool = False
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.turned) < self.num_hidden_layers:
            raise UsageError(f"no_rope_layers names {len(self.turned)} layers of {self.num_hidden_layers}")

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        turned = raw.get("no_rope_layers")
        return super().from_json({**raw, "no_rope_layers": tuple(turned) if isinstance(turned, list) else turned})

    @property
    def turned(self) -> tuple[int, ...]:
        """1 for a layer with rotary positions, whatever the key's name says."""
        every, layers = self.no_rope_layer_interval, range(self.num_hidden_layers)
        return tuple(int((i + 1) % every != 0) for i in layers) if self.no_rope_layers is None else self.no_rope_layers

    def usual_kind(self, layer: int) -> str:
        """A window where there are no rotary positions, if windows are used."""
        return SLIDING if self.use_sliding_window and self.sliding_window and not self.turned[layer] else FULL

    def layers(self) -> tuple[Layer, ...]:
        """Without rotary positions where the file says so (Kazemnejad et al. 2023)."""
        return tuple(
            layer if turned else replace(layer, attention=replace(layer.attention, rotary=None))
            for layer, turned in zip(super().layers(), self.turned, strict=False)
        )


SMOLLM3 = decoder_family(SmolLm3Config, WEIGHTS)
