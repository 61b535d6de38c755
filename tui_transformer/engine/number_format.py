"""A number as it stands in a sentence or an equation: `0.98859`, `−1.25`, `1.1e-5`, `−∞`."""

from __future__ import annotations

import math
import re

DIGITS = 5
_HYPHEN = re.compile(r"(?<![\w.)])-(?=[\d.∞])")


def spoken(value: float, digits: int = DIGITS) -> str:
    """A number of so many significant digits, with a minus sign, and an exponent without zeros in front."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    mantissa, _, exponent = f"{value + 0.0:.{digits}g}".partition("e")
    text = f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return f"−{text[1:]}" if text.startswith("-") else text


def minus(text: str) -> str:
    """A formatted number with a minus sign where it has a hyphen; that of an exponent stays, as in `1e-5`."""
    return _HYPHEN.sub("−", text)


def in_percent(share: float, form: str = ".1%") -> str:
    """A share from 0 to 1, written as `form` says: `96.4 %`, `+3.0 %`."""
    return minus(format(share, form).replace("%", " %"))


def bracketed(value: float) -> str:
    """A number inside an equation: a negative one in brackets."""
    return f"({spoken(value)})" if value < 0 else spoken(value)
