"""GPT-2 (Radford et al. 2019) in its published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Scale
from tui_transformer.model.checks import Check, truth
from tui_transformer.model.description import Attention
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.layers import NOT_DIVIDED, divided
from tui_transformer.model.weight_table import Part, Take, WeightTable


@dataclass(frozen=True)
class Gpt2Config(PlainDecoderConfig):
    """The keys of GPT-2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt2"
    title: ClassVar[str] = "GPT-2"
    fixed: ClassVar[Mapping[str, Any]] = {**PlainDecoderConfig.fixed, "add_cross_attention": False}
    keys: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "max_position_embeddings": "n_positions",
        "intermediate_size": "n_inner",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        stored: field for field, stored in keys.items() if field != "intermediate_size"
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **PlainDecoderConfig.checks,
        **dict.fromkeys(("scale_attn_weights", "scale_attn_by_inverse_layer_idx"), truth),
    }

    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False

    def attentions(self) -> tuple[Attention, ...]:
        """Scores may be divided by the number of the layer too, or not at all."""
        return tuple(replace(self.attention(), scale=self._scale(layer)) for layer in range(self.num_hidden_layers))

    def _scale(self, layer: int) -> Scale:
        divisor = layer + 1.0 if self.scale_attn_by_inverse_layer_idx else 1.0
        if self.scale_attn_weights:
            return divided(self.head_width, divisor)
        return NOT_DIVIDED if divisor == 1.0 else Scale(1.0 / divisor, f"÷ {divisor:g}")


def third(place: int) -> Take:
    """Query (0), key (1) or value (2) of `c_attn`, whose columns hold them side by side."""

    def take(tensor: Host, config: Gpt2Config) -> Host:
        del config
        return np.split(tensor, 3, axis=-1)[place]

    return take


LAYER = "transformer.h.{}"
PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "transformer.wte",
    "embedding.positions": "transformer.wpe",
    "decoder.{}.self_attention.norm": f"{LAYER}.ln_1",
    "decoder.{}.self_attention.query": Part(f"{LAYER}.attn.c_attn", third(0)),
    "decoder.{}.self_attention.key": Part(f"{LAYER}.attn.c_attn", third(1)),
    "decoder.{}.self_attention.value": Part(f"{LAYER}.attn.c_attn", third(2)),
    "decoder.{}.self_attention.output": f"{LAYER}.attn.c_proj",
    "decoder.{}.feed_forward.norm": f"{LAYER}.ln_2",
    "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.c_fc",
    "decoder.{}.feed_forward.output": f"{LAYER}.mlp.c_proj",
    "decoder.norm": "transformer.ln_f",
    "output.logits": Part("lm_head", turned=True),
}
WEIGHTS = WeightTable(PARTS, prefix="transformer.", in_out=True)
GPT2 = decoder_family(Gpt2Config, WEIGHTS)
