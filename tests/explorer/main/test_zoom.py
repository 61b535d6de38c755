"""The line of panes, every one with its digit however narrow it is; and one pane in the whole terminal, and back."""

from __future__ import annotations

import re

from driving import MEDIUM, NARROW, SMALL, WIDE, exploring

WEIGHTS = "encoder.0.self_attention.weights"
PANES = {"sentence": "1", "steps": "2", "heads": "3", "matrix": "4", "cell": "5", "chart": "6"}


def inner(explorer) -> list[str]:
    """The screen without its first line, which says how long a step took, and its last: a digit is a count, too."""
    return explorer.text.split("\n")[1:-1]


async def test_every_pane_is_named_or_has_its_digit():
    async with exploring(NARROW, model="question", at=WEIGHTS) as explorer:
        for width, says in (
            (80, "1 sentence   2 steps   3 heads  [4 matrix]  5 cell   6 chart"),
            (60, "1   2   3  [4 matrix]  5   6"),
        ):
            await explorer.resize(width, 24)
            assert any(line.strip() == says for line in explorer.text.splitlines()), explorer.text


async def test_a_pane_has_the_whole_terminal_and_gives_it_back():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        async for size in explorer.sizes(WIDE, NARROW, SMALL):
            for name, digit in PANES.items():
                await explorer.press(digit)
                before, pane = inner(explorer), explorer.main.query_one(f"#{name}")
                await explorer.press("Z")
                assert pane.size.width >= size[0] - 4, name
                assert pane.size.height >= size[1] - 6, name
                await explorer.press("Z")
                assert inner(explorer) == before, name
            await explorer.press("Z", "escape")
            assert explorer.view.zoom is None
        await check_heads(explorer)


async def check_heads(explorer) -> None:
    """A zoomed matrix says which head it is."""
    for pane in ("matrix", "cell", "chart"):
        explorer.main.action_pane(pane)
        await explorer.press("Z")
        for head in (1, 2):
            await explorer.press("]")
            assert re.search(rf"head +{head}\b", explorer.text), pane
        await explorer.press("[", "[", "Z")


async def test_a_zoomed_matrix_says_which_head_it_is_instead_of_the_whole():
    async with exploring(WIDE, model="question", whole=True, at=WEIGHTS) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM):
            await check_heads(explorer)


async def test_the_whole_can_be_zoomed_and_another_pane_takes_its_place():
    async with exploring(WIDE, model="question", whole=None, at=WEIGHTS) as explorer:
        await explorer.press("Z")
        assert explorer.main.query_one("#whole").size.height > 25
        assert not explorer.main.query_one("#body").display
        await explorer.press("tab")
        assert explorer.view.zoom == "matrix"
        assert explorer.main.query_one("#matrix").size.width > 150
        await explorer.press("escape")
        assert explorer.main.query_one("#whole").display


async def test_the_zoomed_whole_has_all_lines_but_title_and_keys_on_a_smaller_terminal():
    async with exploring(MEDIUM, model="question") as explorer:
        await explorer.press("0", "Z")
        for size, lines in ((MEDIUM, 28), (NARROW, 23)):
            await explorer.resize(*size)
            assert explorer.text.splitlines()[-1].startswith(" enter look inside")
            assert explorer.main.query_one("#whole").size.height == lines


async def test_a_tour_ends_a_zoom_and_gives_it_back():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        await explorer.press("5", "Z", "t")
        assert explorer.view.zoom is None
        assert "Stop 1 of 17" in explorer.text
        await explorer.press("escape")
        assert explorer.view.zoom == "cell"
        assert explorer.main.query_one("#cell").size.width > 150
