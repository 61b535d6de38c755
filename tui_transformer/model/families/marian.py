"""Marian (Junczys-Dowmunt et al. 2018): the layers of BART with sinusoidal positions, sines before cosines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.description import Embedding
from tui_transformer.model.families import bart
from tui_transformer.model.families.bart import WEIGHTS, BartConfig, copies
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.settings import described

POSITIONS = "embedding.positions.weight"


@dataclass(frozen=True)
class SinesConfig(BartConfig):
    """BART's settings, with sines for positions.

    Attributes:
        own_positions: No setting: the file has tables of positions, or not.
    """

    of_the_file: ClassVar[frozenset[str]] = BartConfig.of_the_file | {"own_positions"}

    own_positions: bool = False

    def embedding(self) -> Embedding:
        """Words and positions; those that a file stores are looked up there."""
        positions = "learned" if self.own_positions else "halves"
        return Embedding(scale=self.embedding_scale, positions=positions, max_length=self.max_position_embeddings)


@dataclass(frozen=True)
class MarianConfig(SinesConfig):
    """Sizes and choices; source and target share one vocabulary and one embedding table."""

    model_type: ClassVar[str] = "marian"
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "is_encoder_decoder": True,
        "is_decoder": False,
        "is_causal": True,
    }

    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None

    @property
    def start_id(self) -> int | None:
        """The ID that the decoder's sequence begins with: padding, where nothing else is said."""
        return self.pad_token_id if self.decoder_start_token_id is None else self.decoder_start_token_id

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        words = raw.get("decoder_vocab_size")
        if words is not None and words != raw.get("vocab_size"):
            raise UsageError(
                f"decoder_vocab_size {shown(words)} is not supported: only one vocabulary for both sides is"
            )
        return super().from_json(raw)


Configured = TypeVar("Configured", bound=SinesConfig)


def fitted(config: Configured, names: frozenset[str]) -> Configured:
    """With what BART's files tell, and with tables of positions, where the file has them."""
    return replace(bart.fitted(config, names), own_positions=WEIGHTS.has(POSITIONS, names))


MARIAN = Family("marian", MarianConfig.from_json, described, WEIGHTS, fitted=fitted, copies=copies)
