"""The poster on the screen: the way back from a cell, deeper and less deep, to a cell of it, and into a file."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, SMALL, WEIGHTS, WIDE, exploring
from reference import REFERENCES

from tui_transformer.report.poster import poster_text


async def opened(explorer) -> None:
    explorer.main.action_open("poster")
    await explorer.until(lambda: getattr(explorer.app.screen, "root", None) is not None)
    await explorer.settled()


async def test_the_way_back_is_that_of_the_command_and_leads_to_its_cells():
    async with exploring(SMALL, model="question") as explorer:
        async for _ in explorer.sizes(SMALL, NARROW, MEDIUM, WIDE):
            await explorer.go(WEIGHTS, 2, 0, 8)
            await opened(explorer)
            screen = explorer.app.screen
            assert (screen.root.name, screen.root.index) == (WEIGHTS, (2, 0, 8))
            *lines, _, _ = "".join(poster_text(screen.root, None)).split("\n")[:-1]
            assert [text for text, _ in screen.cells] == lines
            assert "0.98859" in explorer.text
            place = next(at for at, (_, cell) in enumerate(screen.cells) if cell and cell.name.endswith(".query"))
            cell = screen.cells[place][1]
            await explorer.press(*["down"] * place, "enter")
            assert explorer.app.screen is explorer.main
            assert explorer.stop == cell.name
            assert (explorer.position.place.row, explorer.position.place.column) == cell.index[-2:]


async def test_it_says_where_there_is_no_number_goes_further_back_and_into_files(here):
    async with exploring(WIDE, model="question") as explorer:
        explorer.main.action_open("poster")
        await explorer.settled()
        assert explorer.messages[-1].startswith("there is no number here")
        # further back, and less far
        await explorer.go("output.logits")
        await opened(explorer)
        screen = explorer.app.screen
        count = len(screen.cells)
        await explorer.press("plus")
        await explorer.until(lambda: len(screen.cells) > count)
        assert "6 levels back" in explorer.text
        await explorer.press(*["minus"] * 9)
        await explorer.until(lambda: "1 level back" in explorer.text)
        # into files
        for name in ("a.svg", "a.txt"):
            await explorer.prompt("x", name)
            await explorer.until(lambda: explorer.app.screen is screen)
        assert (here / "a.svg").read_text().startswith("<svg")
        assert "worked out again in float64" in (here / "a.txt").read_text()
        await explorer.prompt("x", "a.gif")
        assert "a poster ends in" in explorer.text


@pytest.mark.parametrize("model", ["dates", "attention", *(str(REFERENCES / name) for name in ("t5", "olmoe", "bert"))])
async def test_any_cell_of_any_model_has_one(model):
    async with exploring(NARROW, model=model) as explorer:
        stops = [stop for stop in explorer.session.stops if stop in explorer.session.trace.program.by_name]
        for stop in stops[:: max(len(stops) // 6, 1)]:
            await explorer.go(stop)
            await opened(explorer)
            assert explorer.app.screen.root.name == explorer.session.trace.program.named(stop)
            await explorer.press("escape")
