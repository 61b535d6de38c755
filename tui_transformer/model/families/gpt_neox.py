"""GPT-NeoX (Black et al. 2022), of which Pythia (Biderman et al. 2023) is one, in its published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, small, truth
from tui_transformer.model.config import LARGEST_SIZE
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    NO_MATRICES,
    Attention,
    FeedForward,
    Layer,
    Norm,
)
from tui_transformer.model.families.decoder_only import DecoderConfig, decoder_family
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, layers_count
from tui_transformer.model.weight_table import Part, WeightTable, of_every_group

TURNED = 0.25
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class NeoxConfig(DecoderConfig):
    """The keys of GPT-NeoX's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt_neox"
    title: ClassVar[str] = "GPT-NeoX"
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "intermediate_size", "num_attention_heads", "max_position_embeddings"), a_size),
        "num_hidden_layers": layers_count,
        "hidden_act": an_activation,
        "layer_norm_eps": small,
        **dict.fromkeys(("use_parallel_residual", "attention_bias"), truth),
    }

    vocab_size: int = 50432
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    hidden_act: str = "gelu"
    max_position_embeddings: int = 2048
    layer_norm_eps: float = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True
    rope_parameters: Rope = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        self.rope_parameters.width(self.head_width)

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.hidden_size // self.num_attention_heads

    @property
    def max_length(self) -> int:
        """The tokens that the model was made for."""
        return self.max_position_embeddings

    @property
    def longest(self) -> int:
        """Positions are computed: a sentence may have more tokens than the model was made for."""
        return LARGEST_SIZE

    def keeps(self, past: int, length: int) -> bool:
        """Keys were turned as they are in a sentence of this length."""
        turn = self.rope_parameters.rotary(self.head_width)
        return turn.of(past) == turn.of(length)

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.hidden_size

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        if "rotary_pct" in raw and raw["rotary_pct"] is None:
            raise UsageError("rotary_pct is null, which is no number: leave it out for the default")
        rope = read_rope(raw, theta=("rotary_emb_base",), partial=("rotary_pct",), whole=TURNED)
        config = super().from_json({**raw, "rope_parameters": rope})
        if raw.get("head_dim", config.head_width) != config.head_width:
            raise UsageError(
                f"head_dim {shown(raw['head_dim'])} is not hidden_size ÷ num_attention_heads, {config.head_width}: "
                "not supported"
            )
        return config

    def final_norm(self) -> Norm:
        """Layer norm."""
        return Norm(self.layer_norm_eps)

    def layers(self) -> tuple[Layer, ...]:
        """Layers whose sublayers run side by side (Black et al. 2022, §2.1)."""
        attention = Attention(
            self.num_attention_heads,
            self.head_width,
            bias=ATTENTION_MATRICES if self.attention_bias else NO_MATRICES,
            rotary=self.rope_parameters.rotary(self.head_width),
            causal=True,
        )
        activation = ACTIVATION_NAMES[self.hidden_act]
        feed_forward = FeedForward(self.intermediate_size, activation, bias=FEED_FORWARD_MATRICES)
        parallel = "two norms" if self.use_parallel_residual else ""
        layer = Layer(attention, feed_forward, self.final_norm(), "pre", parallel=parallel)
        return (layer,) * self.num_hidden_layers


def fused(place: int) -> Part:
    """Query (0), key (1) or value (2), whose rows are q, k, v of head 0, then of head 1, and on."""
    take = of_every_group(place, 1, lambda config: config.num_attention_heads, lambda _: 3)
    return Part("gpt_neox.layers.{}.attention.query_key_value", take)


LAYER = "gpt_neox.layers.{}"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "gpt_neox.embed_in",
        "decoder.{}.self_attention.norm": f"{LAYER}.input_layernorm",
        "decoder.{}.self_attention.query": fused(0),
        "decoder.{}.self_attention.key": fused(1),
        "decoder.{}.self_attention.value": fused(2),
        "decoder.{}.self_attention.output": f"{LAYER}.attention.dense",
        "decoder.{}.feed_forward.norm": f"{LAYER}.post_attention_layernorm",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.dense_h_to_4h",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.dense_4h_to_h",
        "decoder.norm": "gpt_neox.final_layer_norm",
        "output.logits": "embed_out",
    },
    prefix="gpt_neox.",
)
GPT_NEOX = decoder_family(NeoxConfig, WEIGHTS)
