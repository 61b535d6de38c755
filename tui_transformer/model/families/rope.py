"""Rotary positions as checkpoints describe them: the frequencies, and how a longer context scales them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import one_of, shown, size_up_to
from tui_transformer.model.config import LARGEST_SIZE
from tui_transformer.model.layers import Rotary

DEFAULT_THETA = 10000.0


@dataclass(frozen=True)
class Rope:
    """The keys of `rope_parameters`.

    Attributes:
        rope_type: A key of `SCALINGS`.
        rope_theta: θ of θ^(−2i/width).
        partial_rotary_factor: The part of a head's columns that is turned.
        factor: How many times longer the context was made; with `linear` and `llama3`.
        low_freq_factor: With `llama3`: waves longer than the old context ÷ this are scaled.
        high_freq_factor: With `llama3`: waves shorter than the old context ÷ this are kept.
        original_max_position_embeddings: With `llama3`: the old context, in tokens.

    Raises:
        UsageError: A kind that is not implemented, or a number that cannot be.
    """

    rope_type: str = "default"
    rope_theta: float = DEFAULT_THETA
    partial_rotary_factor: float = 1.0
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192

    def __post_init__(self) -> None:
        one_of(tuple(SCALINGS))("rope_type", self.rope_type)
        for key in ("rope_theta", "factor"):
            _number(key, getattr(self, key), 1.0, math.inf)
        _number("partial_rotary_factor", self.partial_rotary_factor, 0.0, 1.0)
        _number("low_freq_factor", self.low_freq_factor, 0.0, math.inf)
        _number("high_freq_factor", self.high_freq_factor, self.low_freq_factor, math.inf)
        if self.high_freq_factor == self.low_freq_factor:
            raise UsageError(f"high_freq_factor {shown(self.high_freq_factor)} is not larger than low_freq_factor")
        size_up_to(LARGEST_SIZE)("original_max_position_embeddings", self.original_max_position_embeddings)

    def width(self, head_width: int) -> int:
        """The columns of a head that are turned; UsageError where they are not pairs."""
        width = int(head_width * self.partial_rotary_factor)
        if width < 2 or width % 2:
            raise UsageError(
                f"partial_rotary_factor {self.partial_rotary_factor:g} of {head_width} columns of a head is {width}: "
                "rotary positions turn pairs of columns"
            )
        return width

    def rotary(self, head_width: int) -> Rotary:
        """Frequency θ^(−2i/width) for every pair i of columns, scaled (Su et al. 2021, §3.2.2); in radians a token."""
        width, scaled = self.width(head_width), SCALINGS[self.rope_type]
        return Rotary(tuple(scaled(self, self.rope_theta ** (-i / width)) for i in range(0, width, 2)))


def read_rope(
    raw: Mapping[str, Any],
    *,
    theta: tuple[str, ...] = ("rope_theta",),
    partial: tuple[str, ...] = ("partial_rotary_factor",),
    whole: float = 1.0,
) -> Rope:
    """What a `config.json` says of rotary positions, in `rope_parameters` (new) or beside `rope_scaling` (old).

    Args:
        raw: The JSON object.
        theta: Old names of θ, the first that is there counts.
        partial: Old names of the part that is turned.
        whole: The part where the file says nothing.

    Raises:
        UsageError: A kind of scaling that is not implemented, or one without its numbers.
    """
    given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    if not isinstance(given, Mapping) or any(isinstance(value, Mapping) for value in given.values()):
        raise UsageError(f"rope_parameters {shown(given)} is not one table of numbers for all layers")
    values = {key: given[key] for key in NUMBERS if given.get(key) is not None}
    kind = given.get("rope_type", given.get("type", "default"))
    one_of(tuple(SCALINGS))("rope_type", kind)
    values.setdefault("rope_theta", _first(raw, theta, DEFAULT_THETA))
    values.setdefault("partial_rotary_factor", _first(raw, partial, whole))
    if kind == "llama3":
        old = raw.get("original_max_position_embeddings") or values.get("original_max_position_embeddings")
        values["original_max_position_embeddings"] = old or raw.get("max_position_embeddings")
    for key in NEEDED.get(kind, ()):
        if key not in values:
            raise UsageError(f"rope_parameters of type {kind} has no {key}")
    return Rope(rope_type=kind, **values)


def _kept(_: Rope, frequency: float) -> float:
    return frequency


def _linear(rope: Rope, frequency: float) -> float:
    """Every frequency ÷ factor: position interpolation (Chen et al. 2023, equation 4)."""
    return frequency / rope.factor


def _llama3(rope: Rope, frequency: float) -> float:
    """Long waves as `_linear`, short ones as they are, a mixture between (`apply_scaling` of Meta's Llama 3.1 code).

    With turns = old context · frequency ÷ 2π, how often the wave turns in the old context:
    share = (turns − low) ÷ (high − low), cut to 0 … 1, and frequency · (share + (1 − share) ÷ factor).
    """
    turns = rope.original_max_position_embeddings * frequency / (2.0 * math.pi)
    share = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    share = min(max(share, 0.0), 1.0)
    return frequency * (share + (1.0 - share) / rope.factor)


SCALINGS: Mapping[str, Callable[[Rope, float], float]] = {"default": _kept, "linear": _linear, "llama3": _llama3}
NEEDED = {"linear": ("factor",), "llama3": ("factor", "low_freq_factor", "high_freq_factor")}
NUMBERS = ("rope_theta", "partial_rotary_factor", *NEEDED["llama3"], "original_max_position_embeddings")


def _first(raw: Mapping[str, Any], keys: tuple[str, ...], default: float) -> Any:
    """The value of the first key that is there."""
    return next((raw[key] for key in keys if raw.get(key) is not None), default)


def _number(key: str, value: object, lowest: float, largest: float) -> None:
    """A finite number in a range; 0 is in none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value == 0:
        raise UsageError(f"{key} {shown(value)} is not a finite number other than 0")
    if not lowest <= value <= largest:
        above = f"from {lowest:g}" if largest == math.inf else f"between {lowest:g} and {largest:g}"
        raise UsageError(f"{key} {shown(value)} is not a number {above}")
