"""The base of the published decoder-only models: reading their settings, and the whole from the layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from tui_transformer.model.checks import Check, token_id, truth
from tui_transformer.model.description import Embedding, Head, Layer, Norm, Stack, Transformer
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.labels import ONE_STACK, Layout
from tui_transformer.model.families.settings import FamilyConfig, a_size, described
from tui_transformer.model.weight_table import WeightTable


@dataclass(frozen=True)
class DecoderConfig(FamilyConfig):
    """A configuration whose fields are the keys of `config.json`, with the defaults of the published format.

    Attributes:
        head: The file has logits: a matrix for them, or the embedding table used again; only its tensors tell.

    Raises:
        UsageError: A value that cannot be; the message names its key.
    """

    of_the_file: ClassVar[frozenset[str]] = frozenset({"head"})
    layouts: ClassVar[Mapping[str, Layout]] = ONE_STACK
    fixed: ClassVar[Mapping[str, Any]] = {"is_causal": True}
    checks: ClassVar[Mapping[str, Check]] = {
        "vocab_size": a_size,
        "tie_word_embeddings": truth,
        "pad_token_id": token_id,
    }

    vocab_size: int
    tie_word_embeddings: bool = False
    pad_token_id: int | None = None
    head: bool = field(default=True, kw_only=True)

    @property
    def pad_id(self) -> int | None:
        """The ID of padding."""
        return self.pad_token_id

    @property
    def places_by_mask(self) -> bool:
        """The first token that is no padding has the first place."""
        return True

    @property
    def tied(self) -> bool:
        """The head uses the embedding table again."""
        return self.tie_word_embeddings

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        return super().from_json({**raw, "pad_token_id": _padding(raw)})

    @property
    @abstractmethod
    def d_model(self) -> int:
        """Width of the residual stream."""

    @abstractmethod
    def layers(self) -> tuple[Layer, ...]:
        """Every layer by its own values."""

    @abstractmethod
    def final_norm(self) -> Norm:
        """The norm after the last layer."""

    def embedding(self) -> Embedding:
        """The embedding, which enters layer 0."""
        return Embedding()

    def word_head(self) -> Head:
        """The head, which gives the logits."""
        return Head(Embedding.table if self.tie_word_embeddings else None)

    def describe(self) -> Transformer:
        """Tokens → embedding → the layers → norm → logits, where there are any (Radford et al. 2019, §2.3)."""
        stack = Stack(self.embedding(), self.layers(), self.final_norm())
        return Transformer(self.vocab_size, self.d_model, decoder=stack, head=self.word_head() if self.head else None)


def _padding(raw: Mapping[str, Any]) -> int | None:
    """The ID of padding; none where it is −1, or that of a real token: one that begins or ends every text."""
    pad, begins, ends = (raw.get(f"{name}_token_id") for name in ("pad", "bos", "eos"))
    return None if pad in (-1, begins, *(ends if isinstance(ends, list) else [ends])) else pad


Decoder = TypeVar("Decoder", bound=DecoderConfig)


def decoder_family(config: type[DecoderConfig], weights: WeightTable) -> Family:
    """The family of a configuration, whose files have this table of weights."""

    def fitted(config: Decoder, names: frozenset[str]) -> Decoder:
        """Tied or not, with logits or without, as the tensors tell."""
        own = weights.own_head(config, names)
        tied = config.tie_word_embeddings and not own
        return replace(config, tie_word_embeddings=tied, head=tied or own)

    return Family(config.model_type, config.from_json, described, weights, fitted=fitted, copies=weights.copies)
