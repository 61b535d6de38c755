"""The base of all configurations: settings that are checked, read from `config.json` and written to it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tui_transformer.model.checks import Check


@dataclass(frozen=True)
class BaseConfig(ABC):
    """Settings of a model, each a field.

    Class attributes:
        model_type: As in `config.json`.
        keys: Field → its name in `config.json`, where that is another.
        checks: Field → what its value has to be.
        of_the_file: Fields that are no settings: `config.json` does not have them.

    Raises:
        UsageError: A value that cannot be; the message names its key.
    """

    model_type: ClassVar[str]
    keys: ClassVar[Mapping[str, str]] = {}
    checks: ClassVar[Mapping[str, Check]] = {}
    of_the_file: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for field, check in self.checks.items():
            check(self.key(field), getattr(self, field))

    @property
    @abstractmethod
    def max_length(self) -> int:
        """How many tokens a sentence may have."""

    @property
    @abstractmethod
    def pad_id(self) -> int | None:
        """The ID of padding, if there is one."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The sizes in one line."""

    @property
    def longest(self) -> int:
        """How many tokens can be read: more than `max_length` where positions are computed."""
        return self.max_length

    def keeps(self, past: int, length: int) -> bool:
        """Keys of the first `past` tokens serve a sentence of `length` tokens."""
        del past, length
        return True

    @property
    def has_decoder(self) -> bool:
        """Whether a decoder reads a sequence of its own beside the encoder's output."""
        return False

    @property
    def start_id(self) -> int | None:
        """The ID that a decoder beside an encoder begins with."""
        return None

    @classmethod
    def key(cls, field: str) -> str:
        """The name of a field in `config.json`."""
        return cls.keys.get(field, field)

    @classmethod
    def settings(cls) -> list[dataclasses.Field[Any]]:
        """The fields that `config.json` has."""
        return [field for field in dataclasses.fields(cls) if field.name not in cls.of_the_file]

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        values = dataclasses.asdict(self)
        return {"model_type": self.model_type} | {self.key(field.name): values[field.name] for field in self.settings()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; keys that change no number are left alone."""
        return cls(**cls.fields_of(raw))

    @classmethod
    def fields_of(cls, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The values of fields that a `config.json` has."""
        return {field.name: raw[cls.key(field.name)] for field in cls.settings() if cls.key(field.name) in raw}
