"""Llama (Touvron et al. 2023) in its published checkpoints; the base of the families that differ in little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, small, truth
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
from tui_transformer.model.families.layer_kinds import FULL, SLIDING
from tui_transformer.model.families.layer_ropes import LayerRopes
from tui_transformer.model.families.rope import DEFAULT_THETA, Rope, read_rope
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, layers_count, optional
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class GroupedConfig(DecoderConfig):
    """The keys that Llama's `config.json` shares with those of its relatives.

    A relative changes `attention`, `feed_forward`, `layer` or `layers` where its layers differ.

    Class attributes:
        theta: θ where the file says nothing.
        turned_in_part: A part of a head's columns may be turned, the rest stays.
        whole: The part that is turned where the file says nothing.
        norm_kind: "rms", or "layer" for layer norms.
        gated: The feed-forward layer has a gate.
        biases: Setting → the matrices of the attention that have a bias where it is true.
        feed_forward_bias: The setting that gives every matrix of the feed-forward layer a bias, if there is one.
    """

    theta: ClassVar[float] = DEFAULT_THETA
    turned_in_part: ClassVar[bool] = False
    whole: ClassVar[float] = 1.0
    norm_kind: ClassVar[str] = "rms"
    gated: ClassVar[bool] = True
    biases: ClassVar[Mapping[str, frozenset[str]]] = {}
    feed_forward_bias: ClassVar[str] = ""

    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "intermediate_size", "num_attention_heads", "max_position_embeddings"), a_size),
        **dict.fromkeys(("num_key_value_heads", "head_dim"), optional(a_size)),
        "num_hidden_layers": layers_count,
        "hidden_act": an_activation,
        "rms_norm_eps": small,
    }

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_parameters: Rope | LayerRopes = field(default_factory=Rope)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None:
            check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_divides("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.kv_heads)
        for rope in self.ropes:
            if rope.partial_rotary_factor != 1.0 and not self.turned_in_part:
                raise UsageError(f"partial_rotary_factor other than 1 is not supported in {self.model_type} models")
            rope.width(self.head_width)

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def ropes(self) -> frozenset[Rope]:
        """The rotary positions of every kind of layer."""
        return frozenset({self.rope_of(FULL), self.rope_of(SLIDING)})

    def rope_of(self, kind: str) -> Rope:
        """The rotary positions of a kind of layer."""
        ropes = self.rope_parameters
        return ropes if isinstance(ropes, Rope) else ropes.of(kind)

    @property
    def biased(self) -> frozenset[str]:
        """The matrices of the attention that have a bias."""
        return NO_MATRICES.union(*(parts for setting, parts in self.biases.items() if getattr(self, setting)))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many keys a query sees in each layer; None for all."""
        return (None,) * self.num_hidden_layers

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
        turns = [rope.rotary(self.head_width) for rope in self.ropes]
        return all(turn.of(past) == turn.of(length) for turn in turns)

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.hidden_size

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json({**raw, "rope_parameters": cls.read_rope(raw)})

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        """The rotary positions of a `config.json`."""
        return read_rope(raw, default=cls.theta, whole=cls.whole, context=cls.max_position_embeddings)

    def final_norm(self) -> Norm:
        """RMS norm, or layer norm."""
        return Norm(self.rms_norm_eps, self.norm_kind)

    def attention(self) -> Attention:
        """With rotary positions and grouped keys (Touvron et al. 2023, §2.2; Ainslie et al. 2023)."""
        return Attention(
            self.num_attention_heads,
            self.head_width,
            self.kv_heads,
            bias=self.biased,
            rotary=self.rope_of(FULL).rotary(self.head_width),
            causal=True,
        )

    def feed_forward(self) -> FeedForward:
        """Gated (Touvron et al. 2023, §2.2), unless the family says otherwise."""
        biased = bool(self.feed_forward_bias and getattr(self, self.feed_forward_bias))
        bias = FEED_FORWARD_MATRICES if biased else NO_MATRICES
        return FeedForward(self.intermediate_size, ACTIVATION_NAMES[self.hidden_act], gated=self.gated, bias=bias)

    def layer(self) -> Layer:
        """Pre-norm, as far as all layers are alike."""
        return Layer(self.attention(), self.feed_forward(), self.final_norm(), "pre")

    def layers(self) -> tuple[Layer, ...]:
        """Every layer with its window (Jiang et al. 2023, §2)."""
        layer = self.layer()
        return tuple(replace(layer, attention=replace(layer.attention, window=window)) for window in self.windows)


@dataclass(frozen=True)
class LlamaConfig(GroupedConfig):
    """The keys of Llama's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "llama"
    title: ClassVar[str] = "Llama"
    biases: ClassVar[Mapping[str, frozenset[str]]] = {"attention_bias": ATTENTION_MATRICES}
    feed_forward_bias: ClassVar[str] = "mlp_bias"
    checks: ClassVar[Mapping[str, Check]] = {
        **GroupedConfig.checks,
        **dict.fromkeys(("attention_bias", "mlp_bias"), truth),
    }

    attention_bias: bool = False
    mlp_bias: bool = False


LAYER = "model.layers.{}"
PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "model.embed_tokens",
    "decoder.{}.self_attention.norm": f"{LAYER}.input_layernorm",
    "decoder.{}.self_attention.query": f"{LAYER}.self_attn.q_proj",
    "decoder.{}.self_attention.query_norm": f"{LAYER}.self_attn.q_norm",
    "decoder.{}.self_attention.key": f"{LAYER}.self_attn.k_proj",
    "decoder.{}.self_attention.key_norm": f"{LAYER}.self_attn.k_norm",
    "decoder.{}.self_attention.value": f"{LAYER}.self_attn.v_proj",
    "decoder.{}.self_attention.output": f"{LAYER}.self_attn.o_proj",
    "decoder.{}.feed_forward.norm": f"{LAYER}.post_attention_layernorm",
    "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.up_proj",
    "decoder.{}.feed_forward.gate": f"{LAYER}.mlp.gate_proj",
    "decoder.{}.feed_forward.output": f"{LAYER}.mlp.down_proj",
    "decoder.norm": "model.norm",
    "output.logits": "lm_head",
}
WEIGHTS = WeightTable(PARTS, prefix="model.")
LLAMA = decoder_family(LlamaConfig, WEIGHTS)
