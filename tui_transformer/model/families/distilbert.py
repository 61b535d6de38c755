"""DistilBERT: half of BERT's layers, without segments, trained to imitate it (Sanh et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.families.base import Family
from tui_transformer.model.families.masked_words import MaskedWordConfig, MaskedWordTensors, program

PREFIX = "distilbert."

KEYS: Mapping[str, str] = {
    "vocab_size": "vocab_size",
    "d_model": "dim",
    "heads": "n_heads",
    "d_ff": "hidden_dim",
    "layers": "n_layers",
    "position_rows": "max_position_embeddings",
    "pad_id": "pad_token_id",
    "activation": "activation",
    "sinusoidal": "sinusoidal_pos_embds",
    "tie_output": "tie_word_embeddings",
}
"""What the settings are called in `config.json`; ε is not a setting."""

TENSORS: Mapping[str, str] = {
    "embedding.tokens": "distilbert.embeddings.word_embeddings",
    "embedding.positions": "distilbert.embeddings.position_embeddings",
    "embedding.norm": "distilbert.embeddings.LayerNorm",
    "encoder.{}.self_attention.query": "distilbert.transformer.layer.{}.attention.q_lin",
    "encoder.{}.self_attention.key": "distilbert.transformer.layer.{}.attention.k_lin",
    "encoder.{}.self_attention.value": "distilbert.transformer.layer.{}.attention.v_lin",
    "encoder.{}.self_attention.output": "distilbert.transformer.layer.{}.attention.out_lin",
    "encoder.{}.self_attention.norm": "distilbert.transformer.layer.{}.sa_layer_norm",
    "encoder.{}.feed_forward.hidden": "distilbert.transformer.layer.{}.ffn.lin1",
    "encoder.{}.feed_forward.output": "distilbert.transformer.layer.{}.ffn.lin2",
    "encoder.{}.feed_forward.norm": "distilbert.transformer.layer.{}.output_layer_norm",
    "output.transform.hidden": "vocab_transform",
    "output.transform.norm": "vocab_layer_norm",
    "output.logits": "vocab_projector",
}


@dataclass(frozen=True)
class DistilBertConfig(MaskedWordConfig):
    """Sizes and choices of a DistilBERT."""

    model_type: ClassVar[str] = "distilbert"
    keys: ClassVar[Mapping[str, str]] = KEYS
    other_names: ClassVar[Mapping[str, str]] = {
        "dim": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
    }

    layers: int = 6


NAMES = MaskedWordTensors(PREFIX, TENSORS)


def fitted(config: MaskedWordConfig, names: frozenset[str]) -> MaskedWordConfig:
    """With the head, where the file has it; a table of positions in the file counts, whatever config.json says.

    Published files say `sinusoidal_pos_embds` and hold a table that training has moved away from sines.
    """
    table = NAMES.has("embedding.positions.weight", names)
    return replace(NAMES.fitted(config, names), sinusoidal=config.sinusoidal and not table)


DISTILBERT = Family("distilbert", DistilBertConfig.from_json, program, NAMES.stored, fitted=fitted, copies=NAMES.copies)
