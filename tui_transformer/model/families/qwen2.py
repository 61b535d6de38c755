"""Qwen2 (Yang et al. 2024) in its published checkpoints: Llama with biases of query, key and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import QUERY_KEY_VALUE
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.llama import WEIGHTS
from tui_transformer.model.families.windowed import WindowedConfig


def from_layer(key: str, value: object) -> None:
    """The number of a layer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{key} {shown(value)} is not a whole number from 0")


@dataclass(frozen=True)
class QwenConfig(WindowedConfig):
    """The keys that `config.json` of Qwen2 and Qwen3 share."""

    checks: ClassVar[Mapping[str, Check]] = {
        **WindowedConfig.checks,
        "use_sliding_window": truth,
        "max_window_layers": from_layer,
    }

    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    max_window_layers: int = 28

    def usual_kind(self, layer: int) -> str:
        """A window in the layers from `max_window_layers` on."""
        return SLIDING if layer >= self.max_window_layers else FULL

    @property
    def window(self) -> int | None:
        """How many keys a query of a sliding layer sees, where windows are used."""
        return self.sliding_window if self.use_sliding_window else None


@dataclass(frozen=True)
class Qwen2Config(QwenConfig):
    """The keys of Qwen2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen2"
    title: ClassVar[str] = "Qwen2"

    @property
    def biased(self) -> frozenset[str]:
        """The matrices that have a bias."""
        return QUERY_KEY_VALUE


QWEN2 = decoder_family(Qwen2Config, WEIGHTS)
