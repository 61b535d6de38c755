"""What the published decoder-only models share: reading their settings, names of tensors, and the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.program import Builder, Program
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, check_settings, one_of, renamed, shown, size_up_to, token_id, truth
from tui_transformer.model.config import LARGEST_SIZE
from tui_transformer.model.embedding import Embedding, embed
from tui_transformer.model.families.base import Lengths
from tui_transformer.model.layers import ACTIVATION_NAMES, Layout, Sequence, encoder_layer, logits, norm, sequence

TABLE, HEAD = "embedding.tokens.weight", "output.logits.weight"

a_size = size_up_to(LARGEST_SIZE)
an_activation = one_of(tuple(ACTIVATION_NAMES))


def optional(check: Check) -> Check:
    """None, or what another check lets through."""

    def check_unless_none(key: str, value: object) -> None:
        if value is not None:
            check(key, value)

    return check_unless_none


@dataclass(frozen=True)
class DecoderConfig:
    """A configuration whose fields are the keys of `config.json`, with the defaults of the published format.

    Attributes:
        head: The file has logits: a matrix for them, or the embedding table used again; only its tensors tell.

    Raises:
        UsageError: A value that cannot be; the message names its key.
    """

    model_type: ClassVar[str]
    other_names: ClassVar[Mapping[str, str]] = {}
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

    def __post_init__(self) -> None:
        for key, check in self.checks.items():
            check(key, getattr(self, key))

    @property
    def has_decoder(self) -> bool:
        """There is one sequence."""
        return False

    @property
    def start_id(self) -> int | None:
        """There is no second sequence to begin."""
        return None

    @property
    def pad_id(self) -> int | None:
        """The ID of padding."""
        return self.pad_token_id

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        settings = {"model_type": self.model_type, **dataclasses.asdict(self)}
        return {key: value for key, value in settings.items() if key != "head"}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change no number are left alone."""
        check_settings(raw, cls.fixed)
        known = {each.name for each in dataclasses.fields(cls)} - {"head"}
        given = {key: value for key, value in renamed(raw, cls.other_names).items() if key in known}
        return cls(**given | {"pad_token_id": _padding(raw)})


def _padding(raw: Mapping[str, Any]) -> int | None:
    """The ID of padding; none where it is −1, or that of a real token: the one that ends every text."""
    pad, ends = raw.get("pad_token_id"), raw.get("eos_token_id")
    return None if pad in (-1, *(ends if isinstance(ends, list) else [ends])) else pad


def check_divides(many: str, count: int, few: str, parts: int) -> None:
    """Raise UsageError unless `parts` divides `count`; `many` and `few` are their keys."""
    if count % parts:
        raise UsageError(f"{many} {shown(count)} is not divisible by {few} {shown(parts)}")


def sizes_line(name: str, layout: Layout, layers: int) -> str:
    """The sizes in one line."""
    heads = f"{layout.heads} head" + ("s" if layout.heads > 1 else "")
    if layout.kv_heads != layout.heads:
        heads += f" on {layout.kv_heads} key head" + ("s" if layout.kv_heads > 1 else "")
    plural = "s" if layers > 1 else ""
    return f"{name} · d_model {layout.d_model} · {heads} · d_ff {layout.d_ff} · {layers} layer{plural}"


Decoder = TypeVar("Decoder", bound=DecoderConfig)


@dataclass(frozen=True)
class TensorNames:
    """Where the weights of a decoder are in a checkpoint.

    Attributes:
        prefix: In front of every name but the head's; a file of the bare decoder leaves it out.
        layers: In front of a layer's number.
        head: The matrix of `output.logits`, by its whole name.
        outside: Steps outside the layers → what their tensors are called.
        inside: Steps of a layer, after its number → what their tensors are called.
    """

    prefix: str
    layers: str
    head: str
    outside: Mapping[str, str]
    inside: Mapping[str, str]

    def place(self, config: DecoderConfig, weight: str, names: frozenset[str]) -> tuple[str, str]:
        """The step of a weight (without `decoder.<i>.`) and the tensor that it is in, given the names in the file."""
        step, _, kind = weight.rpartition(".")
        if step == "output.logits":
            return step, self.matrix
        if weight == TABLE:
            return step, self.table(config, names)
        prefix = self._prefix(names)
        if step in self.outside:
            return step, f"{prefix}{self.outside[step]}.{kind}"
        _, layer, step = step.split(".", 2)
        return step, f"{prefix}{self.layers}.{layer}.{self.inside[step]}.{kind}"

    @property
    def matrix(self) -> str:
        """The tensor of the logits."""
        return f"{self.head}.weight"

    def table(self, config: DecoderConfig, names: frozenset[str]) -> str:
        """The tensor of the embedding; that of the logits where both are tied and a file has only this one."""
        own = f"{self._prefix(names)}{self.outside['embedding.tokens']}.weight"
        return self.matrix if config.tie_word_embeddings and own not in names and self.matrix in names else own

    def copies(self, config: DecoderConfig, names: frozenset[str]) -> Mapping[str, str]:
        """The matrix of the logits is the embedding table again, where they are tied."""
        return {self.matrix: self.table(config, names)} if config.tie_word_embeddings else {}

    def fitted(self, config: Decoder, names: frozenset[str]) -> Decoder:
        """Tied or not, with logits or without, as the tensors tell."""
        own = HEAD in names or (self.matrix in names and self.table(config, names) != self.matrix)
        tied = config.tie_word_embeddings and not own
        return replace(config, tie_word_embeddings=tied, head=tied or own)

    def _prefix(self, names: frozenset[str]) -> str:
        """What is in front of names in a file."""
        return "" if f"{self.outside['embedding.tokens']}.weight" in names else self.prefix


Layer = Callable[[Builder, str, Sequence, Layout], str]
"""Adds the steps of a layer, and gives the name of what leaves it."""


def causal_layer(build: Builder, x: str, tokens: Sequence, layout: Layout) -> str:
    """Masked self-attention, then feed-forward, each with add & norm (Radford et al. 2018, figure 1)."""
    return encoder_layer(build, x, tokens, layout, Mask(causal=True, window=layout.window))


def decoder_program(
    config: DecoderConfig,
    lengths: Lengths,
    layouts: tuple[Layout, ...],
    embedding: Embedding,
    layer: Layer = causal_layer,
) -> Program:
    """Tokens → embedding → the layers → norm → logits, where there are any (Radford et al. 2019, §2.3)."""
    build, vocabulary, layout = Builder(), Axis("vocabulary", config.vocab_size), layouts[0]
    tokens = sequence(build, "tokens", lengths.tokens, lengths.past)
    x = embed(build, tokens, vocabulary, layout, embedding)
    stack = build.within("decoder")
    for i, each in enumerate(layouts):
        x = layer(stack.within(str(i)), x, tokens, each)
    x = norm(stack, x, layout)
    if config.head:
        tied = embedding.table if config.tie_word_embeddings else None
        logits(build, x, vocabulary, layout.model, tied=tied, bias=False)
    return build.program()
