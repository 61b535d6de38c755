"""BLOOM (BigScience Workshop 2022): no positions but distances taken off the scores, a norm of the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.model.checks import Check, small
from tui_transformer.model.config import LARGEST_SIZE
from tui_transformer.model.description import (
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    Norm,
)
from tui_transformer.model.families.decoder_only import DecoderConfig, decoder_family
from tui_transformer.model.families.settings import a_size, check_divides, layers_count
from tui_transformer.model.score_biases import Distances, alibi_slopes
from tui_transformer.model.weight_table import Part, WeightTable, of_every_group


@dataclass(frozen=True)
class BloomConfig(DecoderConfig):
    """The keys of BLOOM's `config.json` that change what is computed; `seq_length` is what it was made for."""

    model_type: ClassVar[str] = "bloom"
    title: ClassVar[str] = "BLOOM"
    fixed: ClassVar[Mapping[str, Any]] = {
        **DecoderConfig.fixed,
        **dict.fromkeys(("apply_residual_connection_post_layernorm", "slow_but_exact"), False),
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embed",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "n_head", "seq_length"), a_size),
        "n_layer": layers_count,
        "layer_norm_epsilon": small,
    }

    vocab_size: int = 250880
    tie_word_embeddings: bool = True
    hidden_size: int = 64
    n_layer: int = 2
    n_head: int = 8
    layer_norm_epsilon: float = 1e-5
    seq_length: int = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "n_head", self.n_head)

    @property
    def max_length(self) -> int:
        """The tokens that the model was made for."""
        return self.seq_length

    @property
    def longest(self) -> int:
        """Distances are computed: a sentence may have more tokens than the model was made for."""
        return LARGEST_SIZE

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.hidden_size

    def final_norm(self) -> Norm:
        """Layer norm."""
        return Norm(self.layer_norm_epsilon)

    def embedding(self) -> Embedding:
        """Words, normalised (BigScience Workshop 2022, §3.2.3)."""
        return Embedding(norm=self.final_norm())

    def layers(self) -> tuple[Layer, ...]:
        """Pre-norm layers with every bias, and distances taken off the scores (BigScience Workshop 2022, §3.2.2)."""
        attention = Attention(
            self.n_head,
            self.hidden_size // self.n_head,
            bias=ATTENTION_MATRICES,
            causal=True,
            score_bias=Distances(alibi_slopes(self.n_head)),
        )
        feed_forward = FeedForward(4 * self.hidden_size, "gelu_tanh", bias=FEED_FORWARD_MATRICES)
        return (Layer(attention, feed_forward, self.final_norm(), "pre"),) * self.n_layer


LAYER = "transformer.h.{}"


def fused(place: int) -> Part:
    """Query (0), key (1) or value (2), whose rows are q, k, v of head 0, then of head 1, and on."""
    take = of_every_group(place, 1, lambda config: config.n_head, lambda _: 3)
    return Part(f"{LAYER}.self_attention.query_key_value", take)


WEIGHTS = WeightTable(
    {
        "embedding.tokens": "transformer.word_embeddings",
        "embedding.norm": "transformer.word_embeddings_layernorm",
        "decoder.{}.self_attention.norm": f"{LAYER}.input_layernorm",
        "decoder.{}.self_attention.query": fused(0),
        "decoder.{}.self_attention.key": fused(1),
        "decoder.{}.self_attention.value": fused(2),
        "decoder.{}.self_attention.output": f"{LAYER}.self_attention.dense",
        "decoder.{}.feed_forward.norm": f"{LAYER}.post_attention_layernorm",
        "decoder.{}.feed_forward.hidden": f"{LAYER}.mlp.dense_h_to_4h",
        "decoder.{}.feed_forward.output": f"{LAYER}.mlp.dense_4h_to_h",
        "decoder.norm": "transformer.ln_f",
        "output.logits": "lm_head",
    },
    prefix="transformer.",
)
BLOOM = decoder_family(BloomConfig, WEIGHTS)
