"""Encoders that were trained to fill in masked words (Devlin et al. 2018): what BERT, DistilBERT and RoBERTa share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, small, token_id, truth
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transform,
    Transformer,
)
from tui_transformer.model.families.base import Family, Places, counted
from tui_transformer.model.families.settings import (
    FamilyConfig,
    a_size,
    an_activation,
    check_ids,
    described,
    layers_count,
)
from tui_transformer.model.weight_table import WeightTable

TRANSFORM = "output.transform.hidden.weight"


@dataclass(frozen=True)
class MaskedWordConfig(FamilyConfig):
    """Sizes and choices of the encoder. A family gives the names that they have in its `config.json`.

    Attributes:
        position_rows: Rows of the table of positions.
        segments: Segments (token types), 0 for none.
        activation: A key of `ACTIVATION_NAMES`.
        sinusoidal: Positions are sines and cosines and not in the file.
        tie_output: The head uses the embedding table again.
        head: The file has the head that gives a logit for every word; only its tensors tell.

    Raises:
        UsageError: A size or choice that cannot be; the message names it as the file does.
    """

    of_the_file: ClassVar[frozenset[str]] = frozenset({"head"})
    fixed: ClassVar[Mapping[str, Any]] = {
        "is_decoder": False,
        "add_cross_attention": False,
        "is_encoder_decoder": False,
        "position_embedding_type": "absolute",
        "pruned_heads": {},
    }
    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("vocab_size", "d_model", "heads", "d_ff", "position_rows"), a_size),
        "layers": layers_count,
        "pad_id": token_id,
        "activation": an_activation,
        "norm_epsilon": small,
        "tie_output": truth,
    }

    vocab_size: int = 30522
    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    position_rows: int = 512
    segments: int = 0
    pad_id: int | None = 0
    activation: str = "gelu"
    norm_epsilon: float = 1e-12
    sinusoidal: bool = False
    tie_output: bool = True
    head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.heads:
            width, heads = self.key("d_model"), self.key("heads")
            raise UsageError(f"{width} {self.d_model} is not divisible by {heads} {self.heads}")
        check_ids(self, "pad_id")

    @property
    def max_length(self) -> int:
        """A position for every token."""
        return self.position_rows

    @property
    def tied(self) -> bool:
        """The head uses the embedding table again."""
        return self.tie_output

    @property
    def head_activation(self) -> str:
        """The activation in the head."""
        return self.activation

    def describe(self) -> Transformer:
        """Tokens → embedding → N layers, and where the file has the head → logits (Devlin et al. 2018, §3)."""
        stack = Stack(self.embedding(), self.layers_of_the_stack())
        return Transformer(self.vocab_size, self.d_model, encoder=stack, head=self.word_head() if self.head else None)

    def embedding(self) -> Embedding:
        """Words, positions and segments, normalised."""
        return Embedding(
            positions="sinusoidal" if self.sinusoidal else "learned",
            max_length=self.position_rows,
            segments=self.segments,
            norm=Norm(self.norm_epsilon),
        )

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        """Every layer by its own values."""
        return (self.layer(),) * self.layers

    def layer(self) -> Layer:
        """The 2017 paper's encoder layer, with every bias."""
        return Layer(
            Attention(self.heads, self.d_model // self.heads, bias=ATTENTION_MATRICES),
            FeedForward(self.d_ff, ACTIVATION_NAMES[self.activation], bias=FEED_FORWARD_MATRICES),
            Norm(self.norm_epsilon),
            "post",
        )

    def word_head(self) -> Head:
        """A matrix, activation and norm of its own, then a logit for every word."""
        activation = ACTIVATION_NAMES[self.head_activation]
        transform = Transform(activation=activation, norm=Norm(self.norm_epsilon))
        return Head(Embedding.table if self.tie_output else None, bias=True, transform=transform)


@dataclass(frozen=True)
class NarrowConfig(MaskedWordConfig):
    """An encoder with an embedding of its own width, which is brought to the model's (Lan et al. 2020, §3.1).

    Attributes:
        table_width: Width of the embedding.
    """

    checks: ClassVar[Mapping[str, Check]] = {**MaskedWordConfig.checks, "table_width": a_size}

    table_width: int = 128

    @property
    def projected(self) -> bool:
        """There is a matrix between the embedding and the layers."""
        return True

    def embedding(self) -> Embedding:
        """Words, positions and segments, normalised, and brought to the model's width."""
        return replace(super().embedding(), width=self.table_width if self.projected else 0)

    def word_head(self) -> Head:
        """The transformed states have the width of the embedding that they are compared with."""
        head = super().word_head()
        assert head.transform is not None  # noqa: S101 - as made above
        return replace(head, transform=replace(head.transform, width=self.table_width))


Masked = TypeVar("Masked", bound=MaskedWordConfig)


def fitted(weights: WeightTable, config: Masked, names: frozenset[str]) -> Masked:
    """With the head, where the file has it, tied or not."""
    own = weights.own_head(config, names)
    return replace(config, head=weights.has(TRANSFORM, names), tie_output=config.tie_output and not own)


def encoder_family(config: type[MaskedWordConfig], weights: WeightTable, places: Places = counted) -> Family:
    """The family of a configuration, whose files have this table of weights."""
    fit = partial(fitted, weights)
    return Family(config.model_type, config.from_json, described, weights, places, fit, weights.copies)
