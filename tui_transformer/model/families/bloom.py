"""BLOOM (BigScience Workshop 2022): no positions but distances taken off the scores, a norm of the embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.model.config import LARGEST_SIZE
from tui_transformer.model.description import Attention, Embedding
from tui_transformer.model.families.decoder_only import decoder_family
from tui_transformer.model.families.plain_decoder import PlainDecoderConfig
from tui_transformer.model.score_biases import Distances, alibi_slopes
from tui_transformer.model.weight_table import Part, WeightTable, of_every_group


@dataclass(frozen=True)
class BloomConfig(PlainDecoderConfig):
    """The keys of BLOOM's `config.json` that change what is computed; `seq_length` is what it was made for."""

    model_type: ClassVar[str] = "bloom"
    title: ClassVar[str] = "BLOOM"
    of_the_file: ClassVar[frozenset[str]] = PlainDecoderConfig.of_the_file | {
        "intermediate_size",
        "activation_function",
    }
    fixed: ClassVar[Mapping[str, Any]] = {
        **PlainDecoderConfig.fixed,
        **dict.fromkeys(("apply_residual_connection_post_layernorm", "slow_but_exact"), False),
    }
    keys: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "seq_length",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embed",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
    }

    vocab_size: int = 250880
    hidden_size: int = 64
    num_hidden_layers: int = 2
    num_attention_heads: int = 8
    max_position_embeddings: int = 2048

    @property
    def longest(self) -> int:
        """Distances are computed: a sentence may have more tokens than the model was made for."""
        return LARGEST_SIZE

    def embedding(self) -> Embedding:
        """Words, normalised (BigScience Workshop 2022, §3.2.3)."""
        return Embedding(norm=self.final_norm())

    def attention(self) -> Attention:
        """Distances are taken off the scores (BigScience Workshop 2022, §3.2.2)."""
        return replace(super().attention(), score_bias=Distances(alibi_slopes(self.num_attention_heads)))


LAYER = "transformer.h.{}"


def fused(place: int) -> Part:
    """Query (0), key (1) or value (2), whose rows are q, k, v of head 0, then of head 1, and on."""
    take = of_every_group(place, 1, lambda config: config.num_attention_heads, lambda _: 3)
    return Part(f"{LAYER}.self_attention.query_key_value", take)


PARTS: Mapping[str, str | Part] = {
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
}
WEIGHTS = WeightTable(PARTS, prefix="transformer.")
BLOOM = decoder_family(BloomConfig, WEIGHTS)
