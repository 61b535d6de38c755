"""DistilBERT: half of BERT's layers, without segments, trained to imitate it (Sanh et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.masked_words import MaskedWordConfig
from tui_transformer.model.families.masked_words import fitted as fitted_head
from tui_transformer.model.families.settings import described
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class DistilBertConfig(MaskedWordConfig):
    """Sizes and choices of a DistilBERT; ε is not a setting."""

    model_type: ClassVar[str] = "distilbert"
    keys: ClassVar[Mapping[str, str]] = {
        "d_model": "dim",
        "heads": "n_heads",
        "d_ff": "hidden_dim",
        "layers": "n_layers",
        "position_rows": "max_position_embeddings",
        "pad_id": "pad_token_id",
        "sinusoidal": "sinusoidal_pos_embds",
        "tie_output": "tie_word_embeddings",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "dim": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
    }
    of_the_file: ClassVar[frozenset[str]] = MaskedWordConfig.of_the_file | {"segments", "norm_epsilon"}
    checks: ClassVar[Mapping[str, Check]] = {**MaskedWordConfig.checks, "sinusoidal": truth}

    layers: int = 6


LAYER = "distilbert.transformer.layer.{}"
WEIGHTS = WeightTable(
    {
        "embedding.tokens": "distilbert.embeddings.word_embeddings",
        "embedding.positions": "distilbert.embeddings.position_embeddings",
        "embedding.norm": "distilbert.embeddings.LayerNorm",
        "encoder.{}.self_attention.query": f"{LAYER}.attention.q_lin",
        "encoder.{}.self_attention.key": f"{LAYER}.attention.k_lin",
        "encoder.{}.self_attention.value": f"{LAYER}.attention.v_lin",
        "encoder.{}.self_attention.output": f"{LAYER}.attention.out_lin",
        "encoder.{}.self_attention.norm": f"{LAYER}.sa_layer_norm",
        "encoder.{}.feed_forward.hidden": f"{LAYER}.ffn.lin1",
        "encoder.{}.feed_forward.output": f"{LAYER}.ffn.lin2",
        "encoder.{}.feed_forward.norm": f"{LAYER}.output_layer_norm",
        "output.transform.hidden": "vocab_transform",
        "output.transform.norm": "vocab_layer_norm",
        "output.logits": "vocab_projector",
    },
    prefix="distilbert.",
)


def fitted(config: DistilBertConfig, names: frozenset[str]) -> DistilBertConfig:
    """With the head, where the file has it; a table of positions in the file counts, whatever config.json says.

    Published files say `sinusoidal_pos_embds` and hold a table that training has moved away from sines.
    """
    table = WEIGHTS.has("embedding.positions.weight", names)
    return replace(fitted_head(WEIGHTS, config, names), sinusoidal=config.sinusoidal and not table)


DISTILBERT = Family("distilbert", DistilBertConfig.from_json, described, WEIGHTS, fitted=fitted, copies=WEIGHTS.copies)
