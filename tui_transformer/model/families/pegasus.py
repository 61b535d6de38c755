"""Pegasus (Zhang et al. 2020): summaries; the layers of BART pre-norm, with Marian's sines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tui_transformer.model.families.bart import WEIGHTS, copies
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.marian import SinesConfig, fitted
from tui_transformer.model.families.mbart import MBartConfig
from tui_transformer.model.families.settings import described


@dataclass(frozen=True)
class PegasusConfig(MBartConfig, SinesConfig):
    """Sizes and choices of a Pegasus."""

    model_type: ClassVar[str] = "pegasus"
    title: ClassVar[str] = "Pegasus"
    fixed: ClassVar[Mapping[str, Any]] = {
        **MBartConfig.fixed,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "extra_pos_embeddings": 1,
    }

    pad_token_id: int | None = 0
    decoder_start_token_id: int | None = 0


PEGASUS = Family("pegasus", PegasusConfig.from_json, described, WEIGHTS, fitted=fitted, copies=copies)
