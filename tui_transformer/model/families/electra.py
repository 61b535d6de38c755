"""ELECTRA (Clark et al. 2020): BERT with a narrow embedding; its generator fills in masked words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check
from tui_transformer.model.families.bert import BertConfig, encoder_parts
from tui_transformer.model.families.masked_words import NarrowConfig, encoder_family
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class ElectraConfig(NarrowConfig, BertConfig):
    """Sizes and choices of an ELECTRA."""

    model_type: ClassVar[str] = "electra"
    keys: ClassVar[Mapping[str, str]] = {**BertConfig.keys, "table_width": "embedding_size"}
    checks: ClassVar[Mapping[str, Check]] = {**BertConfig.checks, **NarrowConfig.checks}

    d_model: int = 256
    heads: int = 4
    d_ff: int = 1024
    segments: int = 2

    @property
    def projected(self) -> bool:
        """Only an embedding that is narrower."""
        return self.table_width != self.d_model

    @property
    def head_activation(self) -> str:
        """GELU, whatever the layers have."""
        return "gelu"


WEIGHTS = WeightTable(
    {
        **encoder_parts("electra."),
        "embedding.projected": "electra.embeddings_project",
        "output.transform.hidden": "generator_predictions.dense",
        "output.transform.norm": "generator_predictions.LayerNorm",
        "output.logits": "generator_lm_head",
    },
    prefix="electra.",
)
ELECTRA = encoder_family(ElectraConfig, WEIGHTS)
