"""A family of models, and the configurations that all families share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.model.sequence import Lengths
from tui_transformer.model.weight_table import OWN_NAMES, WeightTable


class ModelConfig(Protocol):
    """The members of every configuration, whatever the family. Configurations are hashable."""

    def __hash__(self) -> int:
        """Programs are kept by configuration."""

    @property
    def vocab_size(self) -> int:
        """How many token IDs there are; 0 where the model reads no tokens."""

    @property
    def max_length(self) -> int:
        """How many tokens a sentence may have."""

    @property
    def longest(self) -> int:
        """How many tokens can be read: more than `max_length` where positions are computed."""

    def keeps(self, past: int, length: int) -> bool:
        """Whether keys of the first `past` tokens serve a sentence of `length` tokens."""

    @property
    def pad_id(self) -> int | None:
        """The ID of padding, if there is one."""

    @property
    def has_decoder(self) -> bool:
        """Whether a decoder reads a sequence of its own beside the encoder's output."""

    @property
    def start_id(self) -> int | None:
        """The ID that the decoder's sequence begins with."""

    @property
    def summary(self) -> str:
        """The sizes in one line."""

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""


Places = Callable[[Host, int | None], Host]
"""The places of the tokens of every row, given the ID of padding."""


def target_size(config: ModelConfig) -> int:
    """How many token IDs a model writes: those of the decoder, where it has words of its own beside the encoder's."""
    size: int = getattr(config, "target_vocab_size", config.vocab_size)
    return size


def counted(rows: Host, pad_id: int | None) -> Host:
    """Places 0, 1, 2 … of the tokens of every row."""
    del pad_id
    return np.broadcast_to(np.arange(rows.shape[1], dtype=np.int64), rows.shape)


def unpadded(rows: Host, pad_id: int | None) -> Host:
    """Places from the pad ID + 1 that count no padding, which stays at the pad ID (as in fairseq)."""
    real = rows != pad_id
    return np.where(real, np.cumsum(real, axis=1), 0) + (pad_id or 0)


def no_copies(config: Any, names: frozenset[str]) -> Mapping[str, str]:
    """No tensor is in the file twice."""
    del config, names
    return {}


def as_read(config: ModelConfig, names: frozenset[str]) -> ModelConfig:
    """The configuration that `config.json` gives, whatever tensors the file has."""
    del names
    return config


@dataclass(frozen=True)
class Family:
    """How to read a configuration of a family, and the program that it describes for sentences of a length.

    Attributes:
        model_type: As in `config.json`.
        read: Makes the configuration from the JSON object.
        program: Builds the steps.
        weights: Where the weights of a program are in a file; by default under their own names.
        places: The places of tokens, where they are not 0, 1, 2 …
        fitted: The configuration with what only the names in the file tell, such as whether there is an output head.
        copies: Tensors that the configuration calls copies of others, and those others. Where both are in a file and
            equal, the copy counts as not there; where they differ, it is a weight of its own.
        wrapped: What classifiers have in front of the names of all layers.
    """

    model_type: str
    read: Callable[[Mapping[str, Any]], ModelConfig]
    program: Callable[[Any, Lengths], Program]
    weights: WeightTable = OWN_NAMES
    places: Places = counted
    fitted: Callable[[Any, frozenset[str]], ModelConfig] = as_read
    copies: Callable[[Any, frozenset[str]], Mapping[str, str]] = no_copies
    wrapped: str = ""
