"""Qwen2 (Yang et al. 2024) in its published checkpoints: Llama with biases of query, key and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.layer_kinds import FULL, SLIDING, check_layer_kinds, layer_kinds
from tui_transformer.model.families.llama import WEIGHTS, GroupedConfig
from tui_transformer.model.families.settings import a_size, optional


def _from_layer(key: str, value: object) -> None:
    """The number of a layer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{key} {shown(value)} is not a whole number from 0")


@dataclass(frozen=True)
class QwenConfig(GroupedConfig):
    """The keys that `config.json` of Qwen2 and Qwen3 share."""

    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "use_sliding_window": truth,
        "sliding_window": optional(a_size),
        "max_window_layers": _from_layer,
        "layer_types": optional(layer_kinds),
    }

    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28
    layer_types: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layer_kinds(self.layer_types, self.num_hidden_layers, self.window)

    @property
    def window(self) -> int | None:
        """How many keys a query of a sliding layer sees, where windows are used."""
        return self.sliding_window if self.use_sliding_window else None

    @property
    def windows(self) -> tuple[int | None, ...]:
        """A window where `layer_types` says so; without that in the layers from `max_window_layers` on."""
        layers = range(self.num_hidden_layers)
        kinds = self.layer_types or tuple(SLIDING if i >= self.max_window_layers else FULL for i in layers)
        return tuple(self.window if kind == SLIDING else None for kind in kinds)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        kinds = raw.get("layer_types")
        frozen = tuple(map(str, kinds)) if isinstance(kinds, list) else kinds
        return super().from_json({**raw, "layer_types": frozen})


@dataclass(frozen=True)
class Qwen2Config(QwenConfig):
    """The keys of Qwen2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen2"
    title: ClassVar[str] = "Qwen2"

    @property
    def biased(self) -> frozenset[str]:
        """The matrices that have a bias."""
        return frozenset({"query", "key", "value"})


QWEN2 = decoder_family(Qwen2Config, WEIGHTS)
