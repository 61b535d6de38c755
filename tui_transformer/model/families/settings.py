"""Configurations of families: read from `config.json`, checked, written and summed up in one place."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.engine.program import Program
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.model.checks import Check, check_settings, one_of, renamed, shown, size_up_to
from tui_transformer.model.config import LARGEST_SIZE, MOST_LAYERS
from tui_transformer.model.description import ACTIVATION_NAMES, Layer, SentenceHead, Transformer
from tui_transformer.model.families.labels import LAYOUTS, Labels, Layout, label_head, read_labels
from tui_transformer.model.families.sentence import read_sentence, written_modules
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.transformer import transformer

a_size = size_up_to(LARGEST_SIZE)
layers_count = size_up_to(MOST_LAYERS)
BESIDE = frozenset({"labels", "sentence"})
"""Fields that are no settings of a family: several keys say them."""

an_activation = one_of(tuple(ACTIVATION_NAMES))


@dataclass(frozen=True)
class FamilyConfig(BaseConfig):
    """Settings of a family, and the transformer that they describe. A family gives tables.

    Class attributes:
        title: What the summary calls it; "" for the model type.
        other_names: Key of `config.json` → another name that it may have there.
        fixed: Keys that would change what is computed, and the one value that is.
        layouts: How classifiers of the family make logits of labels, by their task; None to look the family up.

    Attributes:
        labels: Of a classifier; they take the place of the words.
        sentence: What makes one vector of a sentence, in a folder of sentence-transformers; it takes the place of both.

    Raises:
        UsageError: A value that cannot be; the message names its key.
    """

    title: ClassVar[str] = ""
    other_names: ClassVar[Mapping[str, str]] = {}
    fixed: ClassVar[Mapping[str, Any]] = {}
    layouts: ClassVar[Mapping[str, Layout] | None] = None

    vocab_size: int
    labels: Labels | None = dataclasses.field(default=None, kw_only=True)
    sentence: SentenceHead | None = dataclasses.field(default=None, kw_only=True)

    @abstractmethod
    def describe(self) -> Transformer:
        """The transformer, every layer by its own values."""

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        return sizes_line(self.title or self.model_type, self.describe())

    @classmethod
    def settings(cls) -> list[dataclasses.Field[Any]]:
        """The fields that `config.json` has under one key each."""
        return [field for field in super().settings() if field.name not in BESIDE]

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        labels = {} if self.labels is None else self.labels.to_json()
        sentence = {} if self.sentence is None else written_modules(self.sentence)
        return super().to_json() | labels | sentence

    @classmethod
    def label_layouts(cls) -> Mapping[str, Layout]:
        """How classifiers of the family make logits of labels, by their task."""
        return LAYOUTS.get(cls.model_type, {}) if cls.layouts is None else cls.layouts

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change no number are left alone."""
        check_settings(raw, cls.fixed)
        raw = renamed(raw, cls.other_names)
        needed = {field.name: None for field in cls.settings() if _is_needed(field)}
        sentence = read_sentence(raw)
        labels = read_labels(raw, cls.label_layouts()) if sentence is None else None
        config = cls(**needed | cls.fields_of(raw), labels=labels, sentence=sentence)
        if sentence is not None and config.has_decoder:
            raise UsageError(f"sentence vectors of {cls.model_type} models with a decoder are not supported")
        return config


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def described(config: FamilyConfig, lengths: Lengths) -> Program:
    """The program of the transformer that a configuration describes, with the head of its labels or of sentences."""
    what = config.describe()
    if config.sentence is not None:
        what = dataclasses.replace(what, head=config.sentence)
    elif config.labels is not None:
        layout, stack = config.label_layouts()[config.labels.task], what.encoder or what.decoder
        norm = None if stack is None else stack.norm
        what = dataclasses.replace(what, head=label_head(config.labels, layout, norm))
    return transformer(what, lengths)


def sizes_line(name: str, what: Transformer) -> str:
    """Widths, heads and layers in one line; of both stacks where they differ."""
    stacks = [stack for stack in (what.encoder, what.decoder) if stack is not None]
    layers = [layer for stack in stacks for layer in stack.layers]
    widths = _differing(str(layer.feed_forward.width) for layer in layers)
    counts = " + ".join(str(len(stack.layers)) for stack in stacks)
    plural = "" if counts == "1" else "s"
    return f"{name} · d_model {what.d_model} · {_heads(layers)} · d_ff {widths} · {counts} layer{plural}"


def _heads(layers: Iterable[Layer]) -> str:
    """Query heads, and the key heads where they are fewer."""
    attentions = [layer.attention for layer in layers]
    heads = _differing(str(each.heads) for each in attentions)
    grouped = _differing(str(each.kv_heads) for each in attentions if each.kv_heads not in (0, each.heads))
    text = f"{heads} head" + "s" * (heads != "1")
    return f"{text} on {grouped} key head" + "s" * (grouped != "1") if grouped else text


def _differing(values: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(values))


def optional(check: Check) -> Check:
    """None, or what another check lets through."""

    def check_unless_none(key: str, value: object) -> None:
        if value is not None:
            check(key, value)

    return check_unless_none


def check_divides(many: str, count: int, few: str, parts: int) -> None:
    """Raise UsageError unless `parts` divides `count`; `many` and `few` are their keys."""
    if count % parts:
        raise UsageError(f"{many} {shown(count)} is not divisible by {few} {shown(parts)}")


def check_ids(config: Any, *fields: str, words: int | None = None) -> None:
    """Raise UsageError for a token ID outside the vocabulary, or outside another of so many words."""
    size = config.vocab_size if words is None else words
    for field in fields:
        value = getattr(config, field)
        if (value or 0) >= size:
            raise UsageError(f"{config.key(field)} {shown(value)} is outside the vocabulary of {size}")
