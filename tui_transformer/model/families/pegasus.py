"""Pegasus (Zhang et al. 2020): summaries; the layers of BART pre-norm, with Marian's sines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tui_transformer.model.description import Embedding
from tui_transformer.model.families import bart
from tui_transformer.model.families.bart import WEIGHTS, copies
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.marian import POSITIONS
from tui_transformer.model.families.mbart import MBartConfig
from tui_transformer.model.families.settings import described


@dataclass(frozen=True)
class PegasusConfig(MBartConfig):
    """Sizes and choices of a Pegasus.

    `own_positions` is no setting: the file has tables of positions or not.
    """

    model_type: ClassVar[str] = "pegasus"
    title: ClassVar[str] = "Pegasus"
    of_the_file: ClassVar[frozenset[str]] = MBartConfig.of_the_file | {"own_positions"}
    fixed: ClassVar[Mapping[str, Any]] = {
        **MBartConfig.fixed,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "extra_pos_embeddings": 1,
    }

    pad_token_id: int | None = 0
    decoder_start_token_id: int | None = 0
    own_positions: bool = False

    def embedding(self) -> Embedding:
        """Words and positions; those that a file stores are looked up there."""
        positions = "learned" if self.own_positions else "halves"
        return Embedding(scale=self.embedding_scale, positions=positions, max_length=self.max_position_embeddings)


def fitted(config: PegasusConfig, names: frozenset[str]) -> PegasusConfig:
    """With what BART's files tell, and with tables of positions, where the file has them."""
    return replace(bart.fitted(config, names), own_positions=WEIGHTS.has(POSITIONS, names))


PEGASUS = Family("pegasus", PegasusConfig.from_json, described, WEIGHTS, fitted=fitted, copies=copies)
