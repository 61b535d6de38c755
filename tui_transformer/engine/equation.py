"""The equation that the working of a cell closes with: its numbers, put into the formula."""

from __future__ import annotations

import math

from tui_transformer.engine.explanation import Sum, Value, Working
from tui_transformer.engine.spoken import bracketed, spoken

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
        return _written_out(first)
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


def _written_out(total: Sum) -> str:
    """The first terms of a sum and the last."""
    terms = range(len(total))
    shown = [_term(total, k) for k in (terms if len(terms) <= 2 else (0, len(terms) - 1))]
    return " + … + ".join(shown) if len(terms) > 2 else " + ".join(shown)


def _term(total: Sum, k: int) -> str:
    """A term as the product of its factors, where it is that."""
    factors = [float(factor.values[k]) for factor in total.factors]
    contribution = float(total.contributions[k])
    if len(factors) > 1 and math.isclose(math.prod(factors), contribution, rel_tol=1e-6, abs_tol=1e-12):
        return " · ".join(map(bracketed, factors))
    return bracketed(contribution)
