"""Precision of the numbers in a dump: how far each may lie from the number that was computed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host

FLOAT32_UNIT = 2.0**-24
"""Largest relative error of rounding to float32: half a unit in the last of 24 bits."""


@dataclass(frozen=True)
class Precision:
    """A number x of a dump is within `absolute` + `relative` · |x| of what was computed.

    Attributes:
        name: As it is said: "float32", "bf16", "6 digits".
        unit: Largest relative error of one operation in the precision that the values were computed in.
    """

    name: str
    relative: float
    absolute: float = 0.0
    unit: float = FLOAT32_UNIT

    def of(self, values: Host) -> Host:
        """How far each of these may be off."""
        size: Host = np.where(np.isfinite(values), np.abs(values), 0.0)
        return self.absolute + self.relative * size


FLOAT64 = Precision("float64", 2.0**-53)
FLOAT32 = Precision("float32", FLOAT32_UNIT)
FLOAT16 = Precision("float16", 2.0**-11, 2.0**-25, 2.0**-11)
BFLOAT16 = Precision("bf16", 2.0**-8, 0.0, 2.0**-8)
WHOLE = Precision("whole numbers", 0.0)

_BY_TYPE = {"f8": FLOAT64, "f4": FLOAT32, "f2": FLOAT16}


def stored_precision(dtype: np.dtype[Any]) -> Precision:
    """The precision of numbers that are stored as they were in memory."""
    return _BY_TYPE.get(dtype.str[1:], WHOLE)


def printed_precision(words: Collection[str], digits: int = 0) -> Precision:
    """The precision of printed numbers, from the digits that they have.

    As many decimals in all (`%.4f`): half a unit of the last. Else (`cout`, `%g`) as many digits as the longest has,
    since these leave out zeros at the end; `digits` where other numbers of the same program have more.
    """
    finite = [word.lower().lstrip("+-") for word in words if word[-1:].isdigit() or word.endswith(".")]
    decimals = {len(word.partition(".")[2]) for word in finite}
    powers = any("e" in word for word in finite)
    if decimals <= {0} and not powers:
        return WHOLE
    if len(decimals) == 1 and not powers and len(finite) > 1:
        places = decimals.pop()
        return Precision(f"{places} decimals", FLOAT32_UNIT, 0.5 * 10.0**-places)
    digits = max(digits, significant(finite), 1)
    return Precision(f"{digits} digits", max(FLOAT32_UNIT, 0.5 * 10.0 ** (1 - digits)))


def significant(words: Collection[str]) -> int:
    """The most digits that a printed number has; at least the six of `cout`, where there are few numbers."""
    mantissas = (word.lower().lstrip("+-").partition("e")[0] for word in words)
    most = max((len(mantissa.replace(".", "").lstrip("0")) for mantissa in mantissas), default=0)
    return most if len(words) > FEW else max(most, USUAL)


USUAL = 6
"""Digits that `cout` and `%g` print."""

FEW = 20
"""So few numbers may all be short by chance."""
