"""RoBERTa: BERT with other training, and places that count from behind the pad ID (Liu et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.families.base import unpadded
from tui_transformer.model.families.bert import BertConfig, encoder_parts
from tui_transformer.model.families.masked_words import encoder_family
from tui_transformer.model.weight_table import Part, WeightTable


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """Sizes and choices of a RoBERTa."""

    model_type: ClassVar[str] = "roberta"

    vocab_size: int = 50265
    pad_id: int | None = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_id is None or self.max_length < 1:
            rows = self.position_rows
            raise UsageError(
                f"pad_token_id {shown(self.pad_id)} leaves no position: they count from it, up to {rows} rows"
            )

    @property
    def max_length(self) -> int:
        """The first token is at the place after the pad ID, so the rows before are not for tokens."""
        return self.position_rows - (self.pad_id or 0) - 1

    @property
    def head_activation(self) -> str:
        """GELU, whatever the layers have."""
        return "gelu"


WEIGHTS = WeightTable(
    {
        **encoder_parts("roberta."),
        "output.transform.hidden": "lm_head.dense",
        "output.transform.norm": "lm_head.layer_norm",
        "output.logits": Part(("lm_head.decoder", "lm_head")),
    },
    prefix="roberta.",
    prefixes=("", "data2vec_text."),
)
ROBERTA = encoder_family(RobertaConfig, WEIGHTS, unpadded)
