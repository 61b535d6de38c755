"""UMT5 (Chung et al. 2023): T5 1.1 for a hundred languages, with a table of distances in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tui_transformer.model.description import Layer, Stack, Transformer
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.settings import described
from tui_transformer.model.families.t5 import WEIGHTS, T5Config, copies, fitted
from tui_transformer.model.score_biases import RelativePositions


@dataclass(frozen=True)
class UMT5Config(T5Config):
    """Sizes and choices of a UMT5."""

    model_type: ClassVar[str] = "umt5"
    title: ClassVar[str] = "UMT5"

    decoder_start_token_id: int | None = 0

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; gated by tanh's GELU, where it does not say."""
        return super().from_json({"feed_forward_proj": "gated-gelu", **raw})

    def describe(self) -> Transformer:
        """Every layer has a table of its own."""
        whole = super().describe()
        encoder, decoder = _own_tables("encoder", whole.encoder), _own_tables("decoder", whole.decoder)
        return replace(whole, encoder=encoder, decoder=decoder)


def _own_tables(name: str, stack: Stack | None) -> Stack | None:
    if stack is None:
        return None
    return replace(stack, layers=tuple(_own_table(f"{name}.{i}", layer) for i, layer in enumerate(stack.layers)))


def _own_table(name: str, layer: Layer) -> Layer:
    bias = layer.attention.score_bias
    assert isinstance(bias, RelativePositions)  # noqa: S101 - as T5 has it
    own = replace(bias, table=f"{name}.self_attention.biased.weight")
    return replace(layer, attention=replace(layer.attention, score_bias=own))


UMT5 = Family("umt5", UMT5Config.from_json, described, WEIGHTS, fitted=fitted, copies=copies, wrapped="transformer.")
