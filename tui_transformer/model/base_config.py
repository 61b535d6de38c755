"""The base of all configurations: settings that are checked, read from `config.json`, written to it and summed up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, a_size, optional, renamed, shown, truth
from tui_transformer.model.description import SentenceHead, Transformer
from tui_transformer.model.labels import Labels, Layout, label_head, read_labels
from tui_transformer.model.sentence import read_sentence, written_modules
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.transformer import transformer
from tui_transformer.model.weight_table import HEAD, WeightTable
from tui_transformer.records import dataclass

BESIDE = frozenset({"labels", "sentence"})
"""Fields that are no settings of a family: several keys say them."""

BY_TYPE: Mapping[str, Check] = {
    "bool": truth,
    "bool | None": optional(truth),
    "int": a_size,
    "int | None": optional(a_size),
}
"""What the value of a field has to be, by its type, where `checks` says nothing else."""

KINDS: Mapping[str, str] = {
    "sliding_window": "int | None",
    "layer_types": "tuple[str, ...] | None",
    "mlp_only_layers": "tuple[int, ...]",
}
"""Types of settings that not all families have, where the default does not tell them."""

NOT_READ: Mapping[str, str] = {
    "quantization_config": "quantized weights are read from a folder alone",
    "per_layer_config": "only layers that are all alike are supported",
}
"""Settings that any family may have and that are not supported, and why."""


@dataclass(frozen=True)
class BaseConfig:
    """Settings of a model, each a field, and the transformer that they describe. A family is one such class.

    `checks` and `of_the_file` of a class are added to those of its bases; `defaults` are as if they were written out
    in the class, and what is written there counts.

    Class attributes:
        model_type: As in `config.json`.
        title: What the summary calls it; "" for the model type.
        keys: Field → its name in `config.json`, where that is another.
        other_names: Key of `config.json` → another name that it may have there.
        fixed: Keys that would change what is computed, and the one value that is.
        checks: Field → what its value has to be.
        of_the_file: Fields that are no settings: `config.json` does not have them.
        defaults: Settings and their defaults, beside those that are written out.
        layouts: How classifiers of the family make logits of labels, by their task.
        weights: Where the weights of a program are in a file; by default under their own names.
        wrapped: What classifiers have in front of the names of all layers.
        starts_padded: A decoder beside an encoder begins with padding, where the file says nothing else.

    Attributes:
        labels: Of a classifier; they take the place of the words.
        sentence: What makes one vector of a sentence, in a folder of sentence-transformers; it takes the place of both.

    Raises:
        UsageError: A value that cannot be; the message names its key.
    """

    model_type: ClassVar[str]
    title: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, str]] = {}
    other_names: ClassVar[Mapping[str, str]] = {}
    fixed: ClassVar[Mapping[str, Any]] = {}
    checks: ClassVar[Mapping[str, Check]] = {}
    of_the_file: ClassVar[frozenset[str]] = frozenset()
    defaults: ClassVar[Mapping[str, Any]] = {}
    layouts: ClassVar[Mapping[str, Layout]] = {}
    weights: ClassVar[WeightTable] = WeightTable()
    wrapped: ClassVar[str] = ""
    starts_padded: ClassVar[bool] = False

    if TYPE_CHECKING:
        vocab_size: int = 0  # a field of every configuration, in the place that its settings have
    labels: Labels | None = dataclasses.field(default=None, kw_only=True, repr=False)
    sentence: SentenceHead | None = dataclasses.field(default=None, kw_only=True, repr=False)

    def __init_subclass__(cls) -> None:
        said = [vars(each) for each in reversed(cls.__mro__)]
        cls.checks = {field: check for each in said for field, check in each.get("checks", {}).items()}
        cls.of_the_file = frozenset().union(*(each.get("of_the_file", ()) for each in said))
        own = vars(cls)
        given = {name: value for name, value in cls.defaults.items() if name not in own}
        kinds = {field.name: field.type for field in dataclasses.fields(cls)} | {**KINDS}
        types = {name: kinds.get(name, type(value).__name__) for name, value in given.items()}
        cls.__annotations__ = {**types, **own.get("__annotations__", {})}
        for name, value in given.items():
            setattr(cls, name, value)

    def __post_init__(self) -> None:
        for field in self.settings():
            check = self.checks.get(field.name) or BY_TYPE.get(str(field.type))
            if check is not None:
                check(self.key(field.name), getattr(self, field.name))

    @property
    def max_length(self) -> int:
        """How many tokens a sentence may have."""
        return int(vars(self)["max_position_embeddings"])

    @property
    def pad_id(self) -> int | None:
        """The ID of padding, if there is one."""
        pad_id: int | None = vars(self)["pad_token_id"]
        return pad_id

    def describe(self) -> Transformer:
        """The transformer, every layer by its own values; what is none has a `program` and a `summary` of its own."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        return sizes_line(self.title or self.model_type, self.describe())

    def program(self, lengths: Lengths) -> Program:
        """The steps for sentences of these lengths, with the head of labels or of sentences, where there is one."""
        what = self.describe()
        if self.sentence is not None:
            what = dataclasses.replace(what, head=self.sentence)
        elif self.labels is not None:
            layout, stack = self.layouts[self.labels.task], what.encoder or what.decoder
            norm = None if stack is None else stack.norm
            what = dataclasses.replace(what, head=label_head(self.labels, layout, norm))
        return transformer(what, lengths)

    @property
    def longest(self) -> int:
        """How many tokens can be read: more than `max_length` where positions are computed."""
        return self.max_length

    def keeps(self, past: int, length: int) -> bool:
        """Whether keys of the first `past` tokens serve a sentence of `length` tokens."""
        del past, length
        return True

    @property
    def has_decoder(self) -> bool:
        """Whether a decoder reads a sequence of its own beside the encoder's output."""
        return False

    @property
    def start_id(self) -> int | None:
        """The ID that a decoder beside an encoder begins with."""
        start: int | None = vars(self).get("decoder_start_token_id")
        return self.pad_id if start is None and self.starts_padded else start

    @property
    def target_vocab_size(self) -> int:
        """How many token IDs it writes: those of the decoder, where it has words of its own beside the encoder's."""
        return self.vocab_size

    def places(self, rows: Host) -> Host:
        """The places of the tokens of every row: 0, 1, 2 … by default."""
        return counted(rows)

    # The file

    def fitted(self, names: frozenset[str]) -> Self:
        """With what only the names in the file tell, such as whether there is an output head."""
        del names
        return self

    def copies(self, names: frozenset[str]) -> Mapping[str, str]:
        """Tensors that the settings call copies of others, and those others.

        Where both are in a file and equal, the copy counts as not there; where they differ, it is a weight of its own.
        """
        return {self.weights.tensor(HEAD, names): self.weights.table(self, names)} if self.tied else {}

    @property
    def tied(self) -> bool:
        """The logits use the embedding table again, where one matrix serves both."""
        return False

    @classmethod
    def key(cls, field: str) -> str:
        """The name of a field in `config.json`."""
        return cls.keys.get(field, field)

    @classmethod
    def settings(cls) -> list[dataclasses.Field[Any]]:
        """The fields that `config.json` has under one key each."""
        return [field for field in dataclasses.fields(cls) if field.name not in cls.of_the_file | BESIDE]

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        values = dataclasses.asdict(self)
        labels = {} if self.labels is None else self.labels.to_json()
        sentence = {} if self.sentence is None else written_modules(self.sentence)
        settings = {self.key(field.name): values[field.name] for field in self.settings()}
        return {"model_type": self.model_type} | settings | labels | sentence

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change no number are left alone."""
        for key, why in NOT_READ.items():
            if raw.get(key):
                raise UsageError(f"{key}: {why}")
        for key, value in cls.fixed.items():
            if raw.get(key, value) != value:
                raise UsageError(f"{key} {shown(raw[key])} is not supported: only {shown(value)} is")
        raw = renamed(raw, cls.other_names)
        sentence = read_sentence(raw)
        labels = read_labels(raw, cls.layouts) if sentence is None else None
        values: dict[str, Any] = {"labels": labels, "sentence": sentence}
        for field in cls.settings():
            key, kind = cls.key(field.name), str(field.type)
            if key in raw:
                value = raw[key]
                if isinstance(value, list) and kind.startswith("tuple"):
                    value = tuple(map(str, value) if kind.startswith("tuple[str") else value)
                values[field.name] = value
            elif field.default is field.default_factory is dataclasses.MISSING:
                values[field.name] = None  # which its check refuses
        config = cls(**values)
        if sentence is not None and config.has_decoder:
            raise UsageError(f"sentence vectors of {cls.model_type} models with a decoder are not supported")
        return config


def counted(rows: Host) -> Host:
    """Places 0, 1, 2 … of the tokens of every row."""
    return np.broadcast_to(np.arange(rows.shape[1], dtype=np.int64), rows.shape)


def unpadded(rows: Host, pad_id: int | None) -> Host:
    """Places from the pad ID + 1 that count no padding, which stays at the pad ID (as in fairseq)."""
    real = rows != pad_id
    return np.where(real, np.cumsum(real, axis=1), 0) + (pad_id or 0)


def sizes_line(name: str, what: Transformer) -> str:
    """Widths, heads and layers in one line; of both stacks where they differ."""
    stacks = [stack for stack in (what.encoder, what.decoder) if stack is not None]
    layers = [layer for stack in stacks for layer in stack.layers]
    attentions = [layer.attention for layer in layers]
    heads = _differing(each.heads for each in attentions)
    keys = _differing(each.kv_heads for each in attentions if each.kv_heads not in (0, each.heads))
    of_heads = f"{heads} head" + "s" * (heads != "1")
    of_heads += f" on {keys} key head" + "s" * (keys != "1") if keys else ""
    inner, counts = _differing(layer.feed_forward.width for layer in layers), [len(stack.layers) for stack in stacks]
    of_layers = f"{' + '.join(map(str, counts))} layer" + "s" * (counts != [1])
    return f"{name} · d_model {what.d_model} · {of_heads} · d_ff {inner} · {of_layers}"


def _differing(values: Iterable[int]) -> str:
    return " + ".join(map(str, dict.fromkeys(values)))


def check_divides(many: str, count: int, few: str, parts: int) -> None:
    """Raise UsageError unless `parts` divides `count`; `many` and `few` are their keys."""
    if count % parts:
        raise UsageError(f"{many} {shown(count)} is not divisible by {few} {shown(parts)}")


def check_ids(config: BaseConfig, *fields: str, words: int | None = None) -> None:
    """Raise UsageError for a token ID outside the vocabulary, or outside another of so many words."""
    size = config.vocab_size if words is None else words
    for field in fields:
        value = getattr(config, field)
        if (value or 0) >= size:
            raise UsageError(f"{config.key(field)} {shown(value)} is outside the vocabulary of {size}")
