"""The line of panes: every one with its digit, however narrow the terminal is."""

from __future__ import annotations

import pytest
from driving import exploring


@pytest.mark.parametrize(
    ("width", "says"),
    [(80, "1 sentence   2 steps   3 heads  [4 matrix]  5 cell   6 chart"), (60, "1   2   3  [4 matrix]  5   6")],
)
async def test_every_pane_is_named_or_has_its_digit(width, says):
    async with exploring((width, 24), model="question") as explorer:
        await explorer.go("encoder.0.self_attention.weights")
        assert any(line.strip() == says for line in explorer.text.splitlines()), explorer.text
