"""What a family of models is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tui_transformer.engine.program import Program


class ModelConfig(Protocol):
    """What every configuration tells, whatever the family. Configurations are hashable."""

    def __hash__(self) -> int:
        """Programs are kept by configuration."""

    @property
    def vocab_size(self) -> int:
        """How many token IDs there are; 0 where the model reads no tokens."""

    @property
    def max_length(self) -> int:
        """How many tokens a sentence may have."""

    @property
    def pad_id(self) -> int | None:
        """The ID of padding, if there is one."""

    @property
    def summary(self) -> str:
        """The sizes in one line."""

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""


@dataclass(frozen=True)
class Family:
    """How to read a configuration of a family, and the program that it describes for sentences of a length."""

    model_type: str
    read: Callable[[Mapping[str, Any]], ModelConfig]
    program: Callable[[Any, int], Program]
