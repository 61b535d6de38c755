"""Precision of the numbers in a dump: how far each may lie from the number that was computed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Digits:
    """The digits of printed numbers.

    Attributes:
        decimals: How many there are behind the point, of every number.
        powers: Some number has an exponent.
        count: How many numbers were looked at.
        most: The most digits that a number has.
        fractions: How many numbers have a point.
        most_of_fractions: The most digits that one of those has.
        scale: What the numbers were multiplied by after they were read.
    """

    decimals: set[int] = field(default_factory=set)
    powers: bool = False
    count: int = 0
    most: int = 0
    fractions: int = 0
    most_of_fractions: int = 0
    scale: float = 1.0

    def add(self, words: Iterable[str]) -> None:
        """Look at more numbers; what is infinite or none has no digits."""
        for word in words:
            if not (word[-1:].isdigit() or word.endswith(".")):
                continue
            mantissa, power, _ = word.lower().lstrip("+-").partition("e")
            whole, point, decimals = mantissa.partition(".")
            self.count += 1
            self.powers |= bool(power)
            self.decimals.add(len(decimals))
            digits = len((whole + decimals).lstrip("0"))
            self.most = max(self.most, digits)
            if point:
                self.fractions += 1
                self.most_of_fractions = max(self.most_of_fractions, digits)

    @property
    def significant(self) -> int:
        """The most digits; at least the six of `cout`, where there are few numbers."""
        return self.most if self.count > FEW else max(self.most, USUAL)


def significant_of_fractions(every: Iterable[Digits]) -> int:
    """The digits that one program prints, from its numbers with a point."""
    looked = list(every)
    most = max((each.most_of_fractions for each in looked), default=0)
    return most if sum(each.fractions for each in looked) > FEW else max(most, USUAL)


def precision_of(digits: Digits, most: int = 0) -> Precision:
    """The precision of printed numbers, from the digits that they have.

    As many decimals in all (`%.4f`): half a unit of the last. Else (`cout`, `%g`) as many digits as the longest has,
    since these leave out zeros at the end; `most` where other numbers of the same program have more.
    """
    if digits.decimals <= {0} and not digits.powers and digits.scale == 1:
        return WHOLE
    if len(digits.decimals) == 1 and not digits.powers and digits.count > 1:
        (places,) = digits.decimals
        return Precision(f"{places} decimals", FLOAT32_UNIT, 0.5 * 10.0**-places * digits.scale)
    most = max(most, digits.significant, 1)
    return Precision(f"{most} digits", max(FLOAT32_UNIT, 0.5 * 10.0 ** (1 - most)))


def printed_precision(words: Collection[str]) -> Precision:
    """The precision of numbers that are printed as these words."""
    digits = Digits()
    digits.add(words)
    return precision_of(digits)


USUAL = 6
"""Digits that `cout` and `%g` print."""

FEW = 20
"""So few numbers may all be short by chance."""
