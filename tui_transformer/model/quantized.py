"""Which code a cell of a quantized weight was rounded to: the block that it is in, as an explanation shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tui_transformer.engine.explanation import Item, Value, Working
from tui_transformer.engine.spoken import bracketed, spoken


@dataclass(frozen=True)
class Rounded:
    """A cell of a quantized tensor, and the numbers that share its scale.

    Attributes:
        kind: What the type is called, and how its blocks are.
        codes: Of the group, in the order of the file.
        place: Of the cell among them.
        scale: What codes are multiplied by.
        minimum: What is added; None where nothing is.
        ends: The smallest and the largest code.
        steps: All codes there are, in order, where they are not the whole numbers between these.
    """

    kind: str
    codes: tuple[float, ...]
    place: int
    scale: float
    minimum: float | None
    ends: tuple[float, float]
    steps: tuple[float, ...] = ()

    @property
    def formula(self) -> str:
        """How a number is made."""
        return "scale · code" if self.minimum is None else "scale · code + minimum"

    def number(self, code: float) -> float:
        """The number that a code stands for, in float64."""
        return code * self.scale + (self.minimum or 0.0)

    def working(self) -> Working:
        """Code, scale and minimum, what was rounded to them, and the codes that share the scale."""
        code = self.codes[self.place]
        among = ", ".join(f"{each:g}" for each in self.steps) or f"{self.ends[0]:g} to {self.ends[1]:g}"
        items: list[Item] = [Value("code", code, note=f"{self.kind}, codes {among}")]
        items.append(Value("scale", self.scale, note=f"of the {len(self.codes)} numbers of its group"))
        if self.minimum is not None:
            items.append(Value("minimum", self.minimum, note="of the group"))
        items += self._rounded_from(code)
        items += [self._one(i, each) for i, each in enumerate(self.codes)]
        return Working(tuple(items), self.number(code), self._equation(code))

    def _equation(self, code: float) -> str:
        added = "" if self.minimum is None else f" + {bracketed(self.minimum)}"
        return f"{spoken(self.scale)} · {bracketed(code)}{added}"

    def _one(self, place: int, code: float) -> Value:
        this = "  (this cell)" if place == self.place else ""
        return Value(f"code of {place}", code, note=f"= {self.number(code):.6g}{this}")

    def _rounded_from(self, code: float) -> Iterator[Item]:
        """The numbers that are nearest to a code: half a step to either side, and all that lie beyond an end."""
        below = max((each for each in self.steps if each < code), default=code - 1.0)
        above = min((each for each in self.steps if each > code), default=code + 1.0)
        low, high = sorted(self.number((code + each) / 2) for each in (below, above))
        lowest, highest = self.ends if self.scale >= 0 else self.ends[::-1]
        yield Value("rounded from", -math.inf if code == lowest else low, note="the least number of this code")
        yield Value("up to", math.inf if code == highest else high, note="the largest, if the nearest code was taken")
