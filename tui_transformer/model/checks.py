"""Checks of single settings; each raises UsageError that names the setting and says what it can be."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import numpy as np

from tui_transformer.errors import UsageError

Check = Callable[[str, object], None]

LARGEST_SIZE = 1 << 24
"""No size of a model that fits any computer is larger; a config that says more is a mistake."""

LARGEST_ID = (1 << 32) - 1
"""Vocabularies count with 32 bits; files of other programs have the largest where they mean none."""

MOST_LAYERS = 1024
"""Every layer is a dozen steps with names."""


def shown(value: object) -> str:
    """A value of a setting as a message shows it: on one line, short however long or deep the value is."""
    return reprlib.repr(value)


def checked(is_right: Callable[[Any], bool], otherwise: str) -> Check:
    """The check that a value is right; the message is its key, the value, and what it is otherwise."""

    def check(key: str, value: object) -> None:
        if not is_right(value):
            raise UsageError(f"{key} {shown(value)} {otherwise}")

    return check


def as_plain(value: Any) -> Any:
    """A number of NumPy as Python has it; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_whole(value: object, smallest: int = 0, largest: float = math.inf) -> TypeGuard[int]:
    """True for a whole number in a range; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and smallest <= value <= largest


def is_number(value: object, above: float = 0.0, below: float = math.inf) -> TypeGuard[float]:
    """True for a number between two others; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < below


def size_up_to(largest: int, smallest: int = 1) -> Check:
    """A whole number in a range."""
    said = f"is not a whole number from {smallest} to {largest:,}"
    return checked(lambda value: is_whole(value, smallest, largest), said)


a_size = size_up_to(LARGEST_SIZE)
layers_count = size_up_to(MOST_LAYERS)
whole_number = checked(is_whole, "is not a whole number from 0")
token_id = checked(
    lambda value: value is None or is_whole(value, largest=LARGEST_ID),
    f"is not a token ID (a whole number from 0 to {LARGEST_ID:,}, or null)",
)
whole_numbers = checked(
    lambda value: isinstance(value, tuple) and all(map(is_whole, value)), "is not a list of numbers of layers"
)
truth = checked(lambda value: isinstance(value, bool), "is neither true nor false")
small = checked(lambda value: is_number(value, below=1.0), "is not a number between 0 and 1")
positive = checked(is_number, "is not a finite number above 0")


def positive_float(key: str, value: object) -> None:
    """A finite number above 0 that is written with a point, as transformers demands it of some settings."""
    positive(key, value)
    if not isinstance(value, float):
        raise UsageError(f"{key} {shown(value)} is a whole number: write it with a point")


def one_of(choices: tuple[str, ...]) -> Check:
    """One of these words."""
    return checked(lambda value: value in choices, f"is not known: use {', '.join(choices)}")


def list_of(*choices: str | int) -> Check:
    """A list of these alone, one for every layer."""
    said = f"is not a list of {' and '.join(map(str, choices))}"
    return checked(lambda value: isinstance(value, tuple) and all(each in choices for each in value), said)


def optional(check: Check) -> Check:
    """None, or what another check lets through."""
    return lambda key, value: None if value is None else check(key, value)


def renamed(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a `config.json` under their own names, where it has them under other names (own → other).

    Raises:
        UsageError: It has both, and they differ.
    """
    settings = dict(raw)
    for own, other in names.items():
        if raw.get(other) is None:
            continue
        if settings.setdefault(own, raw[other]) != raw[other]:
            raise UsageError(f"{other} {shown(raw[other])} and {own} {shown(settings[own])} are the same setting")
    return settings
