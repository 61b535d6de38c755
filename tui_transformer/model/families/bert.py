"""BERT: an encoder with segments, trained to fill in masked words (Devlin et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.families.masked_words import MaskedWordConfig, encoder_family
from tui_transformer.model.families.settings import a_size
from tui_transformer.model.weight_table import Part, WeightTable

KEYS: Mapping[str, str] = {
    "d_model": "hidden_size",
    "heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "layers": "num_hidden_layers",
    "position_rows": "max_position_embeddings",
    "segments": "type_vocab_size",
    "pad_id": "pad_token_id",
    "activation": "hidden_act",
    "norm_epsilon": "layer_norm_eps",
    "tie_output": "tie_word_embeddings",
}
"""Names of the settings in `config.json`."""


def encoder_parts(prefix: str) -> Mapping[str, str]:
    """The parts of the encoder and their tensors."""
    layer = f"{prefix}encoder.layer.{{}}"
    return {
        "embedding.tokens": f"{prefix}embeddings.word_embeddings",
        "embedding.positions": f"{prefix}embeddings.position_embeddings",
        "embedding.segments": f"{prefix}embeddings.token_type_embeddings",
        "embedding.norm": f"{prefix}embeddings.LayerNorm",
        "encoder.{}.self_attention.query": f"{layer}.attention.self.query",
        "encoder.{}.self_attention.key": f"{layer}.attention.self.key",
        "encoder.{}.self_attention.value": f"{layer}.attention.self.value",
        "encoder.{}.self_attention.output": f"{layer}.attention.output.dense",
        "encoder.{}.self_attention.norm": f"{layer}.attention.output.LayerNorm",
        "encoder.{}.feed_forward.hidden": f"{layer}.intermediate.dense",
        "encoder.{}.feed_forward.output": f"{layer}.output.dense",
        "encoder.{}.feed_forward.norm": f"{layer}.output.LayerNorm",
    }


@dataclass(frozen=True)
class BertConfig(MaskedWordConfig):
    """Sizes and choices of a BERT."""

    model_type: ClassVar[str] = "bert"
    keys: ClassVar[Mapping[str, str]] = KEYS
    of_the_file: ClassVar[frozenset[str]] = MaskedWordConfig.of_the_file | {"sinusoidal"}
    checks: ClassVar[Mapping[str, Check]] = {**MaskedWordConfig.checks, "segments": a_size}

    segments: int = 2


WEIGHTS = WeightTable(
    {
        **encoder_parts("bert."),
        "output.transform.hidden": "cls.predictions.transform.dense",
        "output.transform.norm": "cls.predictions.transform.LayerNorm",
        "output.logits": Part(("cls.predictions.decoder", "cls.predictions")),
    },
    prefix="bert.",
)
BERT = encoder_family(BertConfig, WEIGHTS)
