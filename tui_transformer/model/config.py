"""The configuration of the project's own models: what `config.json` holds, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tui_transformer.errors import UsageError
from tui_transformer.model.layers import ACTIVATIONS, NORM_PLACES, POSITIONS, Sizes

Architecture = Literal["encoder", "decoder"]
ARCHITECTURES = ("encoder", "decoder")
MAX_LENGTH = 4096
LARGEST_SIZE = 1 << 24
"""No size of a model that fits any computer is larger; a config that says more is a mistake."""


@dataclass(frozen=True)
class Config:
    """Sizes and choices of a transformer as the 2017 paper has it.

    The defaults are those of the classic tutorials' encoder.

    Raises:
        UsageError: A size or choice that cannot be; the message names it and says what can.
    """

    architecture: str = "encoder"
    vocab_size: int = 8
    d_model: int = 8
    heads: int = 8
    d_ff: int = 128
    layers: int = 1
    max_length: int = MAX_LENGTH
    pad_id: int | None = None
    norm: str = "post"
    norm_epsilon: float = 1e-5
    activation: str = "relu"
    positions: str = "sinusoidal"
    scale_embedding: bool = False
    bias: bool = False
    tie_output: bool = False
    causal: bool = False
    padding_mask: bool = True

    def __post_init__(self) -> None:
        for key, check in _CHECKS.items():
            check(key, getattr(self, key))
        if self.d_model % self.heads:
            raise UsageError(
                f"d_model {self.d_model} is not divisible by {self.heads} heads: heads can be {_divisors(self.d_model)}"
            )
        if self.pad_id is not None and self.pad_id >= self.vocab_size:
            raise UsageError(f"pad_id {self.pad_id} is outside the vocabulary of {self.vocab_size}")

    @property
    def stack(self) -> str:
        """The name that the layers' steps begin with."""
        return self.architecture

    @property
    def masks_future(self) -> bool:
        """A query may not look at later keys."""
        return self.causal or self.architecture == "decoder"

    @property
    def sizes(self) -> Sizes:
        """What the layers need."""
        return Sizes(self.d_model, self.heads, self.d_ff, self.bias, self.activation, self.norm, self.norm_epsilon)

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        layers = f"{self.layers} layer" + ("s" if self.layers > 1 else "")
        heads = f"{self.heads} head" + ("s" if self.heads > 1 else "")
        return f"{self.architecture} · d_model {self.d_model} · {heads} · d_ff {self.d_ff} · {layers}"

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        return {"model_type": "vanilla", **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Config:
        """The configuration that a `config.json` describes; keys that are not known are left alone."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in raw.items() if key in known})


def _size(key: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_SIZE:
        raise UsageError(f"{key} {value!r} is not a whole number from 1 to {LARGEST_SIZE:,}")


def _token_id(key: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise UsageError(f"{key} {value!r} is not a token ID (a whole number from 0, or null)")


def _truth(key: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"{key} {value!r} is neither true nor false")


def _small(key: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise UsageError(f"{key} {value!r} is not a number between 0 and 1")


def _one_of(choices: tuple[str, ...]) -> Callable[[str, object], None]:
    def check(key: str, value: object) -> None:
        if value not in choices:
            raise UsageError(f"{key} {value!r} is not known: use {', '.join(choices)}")

    return check


_CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "architecture": _one_of(ARCHITECTURES),
    **dict.fromkeys(("vocab_size", "d_model", "heads", "d_ff", "layers", "max_length"), _size),
    "pad_id": _token_id,
    "norm": _one_of(NORM_PLACES),
    "norm_epsilon": _small,
    "activation": _one_of(tuple(ACTIVATIONS)),
    "positions": _one_of(POSITIONS),
    **dict.fromkeys(("scale_embedding", "bias", "tie_output", "causal", "padding_mask"), _truth),
}


def _divisors(number: int) -> str:
    """The first few divisors, as text."""
    found = [i for i in range(1, min(number, 4096) + 1) if number % i == 0]
    return ", ".join(map(str, found[:12]))
