"""Decoders of which some layers see all keys and others a window of them, as `layer_types` says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import Check
from tui_transformer.model.description import Layer
from tui_transformer.model.families.layer_kinds import SLIDING, check_layer_kinds, layer_kinds
from tui_transformer.model.families.llama import GroupedConfig
from tui_transformer.model.families.settings import a_size, optional


@dataclass(frozen=True)
class WindowedConfig(GroupedConfig):
    """The keys of windows, and layers by their kinds; a relative says in `usual_kind` which are where."""

    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        "sliding_window": optional(a_size),
        "layer_types": optional(layer_kinds),
    }

    sliding_window: int | None = 4096
    layer_types: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layer_kinds(self.layer_types, self.num_hidden_layers, self.window)

    @abstractmethod
    def usual_kind(self, layer: int) -> str:
        """The kind of a layer where the file has no `layer_types`."""

    @property
    def window(self) -> int | None:
        """How many keys a query of a layer with a window sees, where windows are used."""
        return self.sliding_window

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of every layer."""
        return self.layer_types or tuple(map(self.usual_kind, range(self.num_hidden_layers)))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many keys a query sees in each layer; None for all."""
        return tuple(self.window if kind == SLIDING else None for kind in self.kinds)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        kinds = raw.get("layer_types")
        return super().from_json({**raw, "layer_types": tuple(map(str, kinds)) if isinstance(kinds, list) else kinds})

    def layers(self) -> tuple[Layer, ...]:
        """Every layer with the window and the rotary positions of its kind."""
        turns = {kind: self.rope_of(kind).rotary(self.head_width) for kind in set(self.kinds)}
        return tuple(
            replace(layer, attention=replace(layer.attention, rotary=turns[kind]))
            for kind, layer in zip(self.kinds, super().layers(), strict=True)
        )
