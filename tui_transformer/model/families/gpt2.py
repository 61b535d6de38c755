"""GPT-2 (Radford et al. 2019) in its published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Scale
from tui_transformer.model.checks import Check, small, truth
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    Norm,
)
from tui_transformer.model.families.decoder_only import DecoderConfig, decoder_family
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, layers_count, optional
from tui_transformer.model.layers import NOT_DIVIDED, divided
from tui_transformer.model.weight_table import Part, Take, WeightTable


@dataclass(frozen=True)
class Gpt2Config(DecoderConfig):
    """The keys of GPT-2's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt2"
    title: ClassVar[str] = "GPT-2"
    fixed: ClassVar[Mapping[str, Any]] = {**DecoderConfig.fixed, "add_cross_attention": False}
    other_names: ClassVar[Mapping[str, str]] = {
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_positions": "max_position_embeddings",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("n_positions", "n_embd", "n_head"), a_size),
        "n_layer": layers_count,
        "n_inner": optional(a_size),
        "activation_function": an_activation,
        "layer_norm_epsilon": small,
        **dict.fromkeys(("scale_attn_weights", "scale_attn_by_inverse_layer_idx"), truth),
    }

    vocab_size: int = 50257
    tie_word_embeddings: bool = True
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("n_embd", self.n_embd, "n_head", self.n_head)

    @property
    def max_length(self) -> int:
        """Rows of the table of positions."""
        return self.n_positions

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.n_embd

    def final_norm(self) -> Norm:
        """Layer norm."""
        return Norm(self.layer_norm_epsilon)

    def embedding(self) -> Embedding:
        """Token and learned position."""
        return Embedding(positions="learned", max_length=self.n_positions)

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers with every bias (Radford et al. 2019, §2.3)."""
        activation = ACTIVATION_NAMES[self.activation_function]
        feed_forward = FeedForward(self.n_inner or 4 * self.n_embd, activation, bias=FEED_FORWARD_MATRICES)
        return tuple(
            Layer(self._attention(layer), feed_forward, self.final_norm(), "pre") for layer in range(self.n_layer)
        )

    def _attention(self, layer: int) -> Attention:
        width = self.n_embd // self.n_head
        divisor = layer + 1.0 if self.scale_attn_by_inverse_layer_idx else 1.0
        if self.scale_attn_weights:
            scale = divided(width, divisor)
        else:
            scale = NOT_DIVIDED if divisor == 1.0 else Scale(1.0 / divisor, f"÷ {divisor:g}")
        return Attention(self.n_head, width, bias=ATTENTION_MATRICES, scale=scale, causal=True)


def third(place: int) -> Take:
    """Query (0), key (1) or value (2) of `c_attn`, whose columns hold them side by side."""

    def take(tensor: Host, config: Gpt2Config) -> Host:
        del config
        return np.split(tensor, 3, axis=-1)[place]

    return take


LAYER = "transformer.h.{}"
WEIGHTS = WeightTable(
    {
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
    },
    prefix="transformer.",
    in_out=True,
)
GPT2 = decoder_family(Gpt2Config, WEIGHTS)
