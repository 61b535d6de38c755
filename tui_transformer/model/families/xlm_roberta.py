"""XLM-R (Conneau et al. 2020): RoBERTa for a hundred languages, with other defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.families.base import unpadded
from tui_transformer.model.families.masked_words import encoder_family
from tui_transformer.model.families.roberta import WEIGHTS, RobertaConfig


@dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """Sizes and choices of an XLM-R."""

    model_type: ClassVar[str] = "xlm-roberta"

    vocab_size: int = 30522


XLM_ROBERTA = encoder_family(XlmRobertaConfig, WEIGHTS, unpadded)
