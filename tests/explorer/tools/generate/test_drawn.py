"""What the screen says of the number that was drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tui_transformer.explorer.tools.generate.view import drawn
from tui_transformer.generation.sampling import Draw


def test_what_was_drawn_is_told_from_the_sums_that_it_fell_between() -> None:
    def said(number: float, low: float, high: float) -> str:
        draft: Any = SimpleNamespace(state=SimpleNamespace(draw=Draw(number, low, high, 7)))
        return drawn(draft, "x")

    assert said(0.5, 0.25, 0.75).startswith("r = 0.5000 falls between 0.2500 and 0.7500,")
    assert said(0.905213, 0.905211, 0.905215).startswith("r = 0.905213 falls between 0.905211 and 0.905215,")
    assert said(0.0, 0.0, 0.5).startswith("r = 0.0000 falls between 0.0000 and 0.5000,")
