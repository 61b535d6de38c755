"""Numbers as they stand in a sentence or an equation, as `0.98859`, `−1.25` or `1.1e-5`, and the equation of a cell."""

from __future__ import annotations

import math
import re

from tui_transformer.engine.explanation import Sum, Value, Working

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


CLOSE = 1e-9
"""How far the items may miss the result, next to its size, to be taken for what gives it."""

_SIGNS = ("+", "−", "·", "÷")


def equation_of(working: Working) -> str:
    """`e^(6.943 − 6.943) ÷ 1.0115 = 0.98859`; "" where the items do not say how they give the result."""
    left = working.equation or _joined(working)
    return f"{left} = {spoken(working.result)}" if left else ""


def _joined(working: Working) -> str:
    """The items one after the other, each with the sign that its symbol begins with."""
    first, *others = working.items
    if isinstance(first, Sum) and not others:
        count = len(first)
        shown = list[str]()
        for k in range(count) if count <= 2 else (0, count - 1):
            factors, contribution = [float(factor.values[k]) for factor in first.factors], float(first.contributions[k])
            close = math.isclose(math.prod(factors), contribution, rel_tol=1e-6, abs_tol=1e-12)
            shown.append(" · ".join(map(bracketed, factors if close and len(factors) > 1 else [contribution])))
        return (" + … + " if count > 2 else " + ").join(shown)
    value = _number(first)
    text = spoken(value)
    for item in others:
        sign, number = ("" if isinstance(item, Sum) else item.symbol[:1]), _number(item)
        if sign not in _SIGNS or not sign:
            return ""
        text = f"({text})" if sign in "·÷" and any(f" {low} " in text for low in "+−") else text
        text += f" {sign} {bracketed(number)}"
        value = {"+": value + number, "−": value - number, "·": value * number, "÷": value / (number or math.nan)}[sign]
    return text if value == working.result or math.isclose(value, working.result, rel_tol=CLOSE, abs_tol=CLOSE) else ""


def _number(item: Sum | Value) -> float:
    return item.total if isinstance(item, Sum) else item.value
