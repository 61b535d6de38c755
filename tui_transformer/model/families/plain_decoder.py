"""The base of the decoders without rotary positions (GPT-2, GPT-Neo, OPT, BLOOM): layer norms, no gate, no groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, small
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
from tui_transformer.model.families.decoder_only import DecoderConfig
from tui_transformer.model.families.settings import a_size, an_activation, check_divides, layers_count, optional


@dataclass(frozen=True)
class PlainDecoderConfig(DecoderConfig):
    """The settings of GPT-2 (Radford et al. 2019, §2.3) and its relatives; `keys` says what a family calls them.

    A relative changes `embedding`, `attention`, `attentions` or `layers` where it differs.

    Attributes:
        intermediate_size: Width of the feed-forward layers; None for 4 · hidden_size.
    """

    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "num_attention_heads", "max_position_embeddings"), a_size),
        "num_hidden_layers": layers_count,
        "intermediate_size": optional(a_size),
        "activation_function": an_activation,
        "layer_norm_epsilon": small,
    }

    vocab_size: int = 50257
    tie_word_embeddings: bool = True
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 1024
    intermediate_size: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        size, heads = self.key("hidden_size"), self.key("num_attention_heads")
        check_divides(size, self.hidden_size, heads, self.num_attention_heads)

    @property
    def max_length(self) -> int:
        """Rows of the table of positions that tokens use."""
        return self.max_position_embeddings

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.hidden_size

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.hidden_size // self.num_attention_heads

    def final_norm(self) -> Norm:
        """Layer norm."""
        return Norm(self.layer_norm_epsilon)

    def embedding(self) -> Embedding:
        """Token and learned position."""
        return Embedding(positions="learned", max_length=self.max_position_embeddings)

    def attention(self) -> Attention:
        """With every bias."""
        return Attention(self.num_attention_heads, self.head_width, bias=ATTENTION_MATRICES, causal=True)

    def attentions(self) -> tuple[Attention, ...]:
        """That of every layer."""
        return (self.attention(),) * self.num_hidden_layers

    def feed_forward(self) -> FeedForward:
        """With every bias."""
        width = self.intermediate_size or 4 * self.hidden_size
        return FeedForward(width, ACTIVATION_NAMES[self.activation_function], bias=FEED_FORWARD_MATRICES)

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers (Radford et al. 2019, §2.3)."""
        return tuple(Layer(each, self.feed_forward(), self.final_norm(), "pre") for each in self.attentions())
