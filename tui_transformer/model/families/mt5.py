"""mT5 (Xue et al. 2021): T5 1.1 for a hundred languages, whose logits are never scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.model.families.base import Family
from tui_transformer.model.families.settings import described
from tui_transformer.model.families.t5 import WEIGHTS, T5Config, copies, fitted


@dataclass(frozen=True)
class MT5Config(T5Config):
    """Sizes and choices of an mT5."""

    model_type: ClassVar[str] = "mt5"
    title: ClassVar[str] = "mT5"
    of_the_file: ClassVar[frozenset[str]] = T5Config.of_the_file | {"scale_decoder_outputs"}

    scale_decoder_outputs: bool = False
    decoder_start_token_id: int | None = 0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; gated by tanh's GELU, where it does not say."""
        return super().from_json({"feed_forward_proj": "gated-gelu", **raw})


MT5 = Family("mt5", MT5Config.from_json, described, WEIGHTS, fitted=fitted, copies=copies, wrapped="transformer.")
