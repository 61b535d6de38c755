"""M2M-100 (Fan et al. 2020) and NLLB (NLLB Team 2022): translation between a hundred languages, with computed sines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import Embedding
from tui_transformer.model.families.bart import WEIGHTS, BartConfig, copies, fitted
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.mbart import MBartConfig
from tui_transformer.model.families.settings import described


@dataclass(frozen=True)
class M2M100Config(MBartConfig):
    """Sizes and choices of an M2M-100."""

    model_type: ClassVar[str] = "m2m_100"
    title: ClassVar[str] = "M2M-100"
    fixed: ClassVar[Mapping[str, Any]] = {
        key: value for key, value in BartConfig.fixed.items() if key.startswith("is_")
    }

    vocab_size: int = 128112
    activation_function: str = "relu"
    scale_embedding: bool = True
    decoder_start_token_id: int | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None:
            raise UsageError(f"pad_token_id {shown(None)} leaves no position: they count from it")
        if self.d_model < 4 or self.d_model % 2:
            raise UsageError(f"d_model {self.d_model} gives no pairs of sines and cosines: use an even number from 4")

    def embedding(self) -> Embedding:
        """Words and sines; the row of padding is 0."""
        return Embedding(scale=self.embedding_scale, positions="fairseq", silent=self.pad_token_id)


M2M_100 = Family("m2m_100", M2M100Config.from_json, described, WEIGHTS, fitted=fitted, copies=copies)
