"""Checks of single settings; each raises UsageError that names the setting and says what it can be."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from tui_transformer.errors import UsageError

Check = Callable[[str, object], None]


LARGEST_SIZE = 1 << 24
"""No size of a model that fits any computer is larger; a config that says more is a mistake."""

MOST_LAYERS = 1024
"""Every layer is a dozen steps with names."""


def shown(value: object) -> str:
    """A value of a setting as a message shows it: on one line, short however long or deep the value is."""
    return reprlib.repr(value)


def size_up_to(largest: int) -> Check:
    """A whole number from 1."""

    def check(key: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
            raise UsageError(f"{key} {shown(value)} is not a whole number from 1 to {largest:,}")

    return check


a_size = size_up_to(LARGEST_SIZE)
layers_count = size_up_to(MOST_LAYERS)


def size_from(smallest: int) -> Check:
    """A whole number from `smallest`."""

    def check(key: str, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= LARGEST_SIZE:
            raise UsageError(f"{key} {shown(value)} is not a whole number from {smallest} to {LARGEST_SIZE:,}")

    return check


def one_of(choices: tuple[str, ...]) -> Check:
    """One of these words."""

    def check(key: str, value: object) -> None:
        if value not in choices:
            raise UsageError(f"{key} {shown(value)} is not known: use {', '.join(choices)}")

    return check


def optional(check: Check) -> Check:
    """None, or what another check lets through."""

    def check_unless_none(key: str, value: object) -> None:
        if value is not None:
            check(key, value)

    return check_unless_none


def token_id(key: str, value: object) -> None:
    """A token ID, or None."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise UsageError(f"{key} {shown(value)} is not a token ID (a whole number from 0, or null)")


def whole_number(key: str, value: object) -> None:
    """A whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{key} {shown(value)} is not a whole number from 0")


def whole_numbers(key: str, value: object) -> None:
    """Numbers of layers."""
    if not isinstance(value, tuple) or not all(type(each) is int and each >= 0 for each in value):
        raise UsageError(f"{key} {shown(value)} is not a list of numbers of layers")


def truth(key: str, value: object) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{key} {shown(value)} is neither true nor false")


def small(key: str, value: object) -> None:
    """A number between 0 and 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise UsageError(f"{key} {shown(value)} is not a number between 0 and 1")


def positive(key: str, value: object) -> None:
    """A finite number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise UsageError(f"{key} {shown(value)} is not a finite number above 0")


def positive_float(key: str, value: object) -> None:
    """A finite number above 0 that is written with a point, as transformers demands it of some settings."""
    positive(key, value)
    if not isinstance(value, float):
        raise UsageError(f"{key} {shown(value)} is a whole number: write it with a point")


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


NOT_READ: Mapping[str, str] = {
    "quantization_config": "quantized weights are read from a folder alone",
    "per_layer_config": "only layers that are all alike are supported",
}
"""Settings that any family may have and that are not supported, and why."""


def check_settings(raw: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    """Raise UsageError for a setting that is not supported in any family, or another value than one that is `fixed`."""
    for key, why in NOT_READ.items():
        if raw.get(key):
            raise UsageError(f"{key}: {why}")
    for key, value in fixed.items():
        if raw.get(key, value) != value:
            raise UsageError(f"{key} {shown(raw[key])} is not supported: only {shown(value)} is")
