"""Marian (Junczys-Dowmunt et al. 2018): the layers of BART with sinusoidal positions, sines before cosines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, shown, truth
from tui_transformer.model.description import Embedding, Head, Transformer
from tui_transformer.model.families import bart
from tui_transformer.model.families.bart import OWN_TABLE, WEIGHTS, BartConfig
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.settings import a_size, described, optional
from tui_transformer.model.families.shared_tables import repeated
from tui_transformer.model.weight_table import HEAD

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
    """Sizes and choices; source and target share one vocabulary and one embedding table, or each has its own."""

    model_type: ClassVar[str] = "marian"
    fixed: ClassVar[Mapping[str, Any]] = {
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        "is_encoder_decoder": True,
        "is_decoder": False,
        "is_causal": True,
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **BartConfig.checks,
        "decoder_vocab_size": optional(a_size),
        "share_encoder_decoder_embeddings": truth,
    }

    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    decoder_vocab_size: int | None = None
    share_encoder_decoder_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share_encoder_decoder_embeddings and self.target_vocab_size != self.vocab_size:
            sizes = f"decoder_vocab_size {shown(self.decoder_vocab_size)} is not vocab_size {self.vocab_size}"
            raise UsageError(f"{sizes}: only with share_encoder_decoder_embeddings false may they differ")

    @property
    def target_vocab_size(self) -> int:
        """The words of the decoder: the encoder's, where it says nothing else."""
        return self.decoder_vocab_size or self.vocab_size

    @property
    def start_id(self) -> int | None:
        """The ID that the decoder's sequence begins with: padding, where nothing else is said."""
        return self.pad_token_id if self.decoder_start_token_id is None else self.decoder_start_token_id

    def describe(self) -> Transformer:
        """Where the tables are two, the logits use the decoder's again."""
        whole = super().describe()
        if self.share_encoder_decoder_embeddings:
            return whole
        head = Head(None if self.own_head else OWN_TABLE, bias=self.logits_bias)
        known = self.own_head or self.tie_word_embeddings
        return replace(whole, head=head if known else None, target_vocab_size=self.target_vocab_size)


Configured = TypeVar("Configured", bound=SinesConfig)


def fitted(config: Configured, names: frozenset[str]) -> Configured:
    """With what BART's files tell, and with tables of positions, where the file has them."""
    return replace(bart.fitted(config, names), own_positions=WEIGHTS.has(POSITIONS, names))


def fitted_of_two(config: MarianConfig, names: frozenset[str]) -> MarianConfig:
    """The same; two tables are two, and the logits may have a matrix of their own."""
    if config.share_encoder_decoder_embeddings:
        return fitted(config, names)
    own_head = HEAD in names or bart.tables_in(names)[-1] in names
    bias, own_positions = (WEIGHTS.has(name, names) for name in (bart.LOGITS_BIAS, POSITIONS))
    return replace(config, logits_bias=bias, own_head=own_head, own_table=True, own_positions=own_positions)


def copies(config: MarianConfig, names: frozenset[str]) -> Mapping[str, str]:
    """As in BART; of two tables the decoder's serves the logits."""
    if config.share_encoder_decoder_embeddings:
        return bart.copies(config, names)
    *_, decoder, matrix = bart.tables_in(names)
    return repeated(names, (decoder, matrix)) if config.tie_word_embeddings else {}


MARIAN = Family("marian", MarianConfig.from_json, described, WEIGHTS, fitted=fitted_of_two, copies=copies)
