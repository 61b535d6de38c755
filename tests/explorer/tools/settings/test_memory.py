"""The memory budget in the settings: shown, set, and estimated before anything is taken."""

from __future__ import annotations

import pytest
from driving import WIDE, Explorer, exploring

from tui_transformer.engine.parts import keep_plan
from tui_transformer.explorer.tools.settings import SettingsScreen
from tui_transformer.machine import parse_size, readable


async def open_settings(explorer: Explorer) -> SettingsScreen:
    await explorer.keys(",")
    await explorer.until(lambda: isinstance(explorer.app.screen, SettingsScreen))
    return explorer.app.screen


async def test_a_smaller_budget_is_estimated_before_it_is_applied_and_then_kept_to():
    async with exploring(WIDE, text="the waves " * 40, sizes={"heads": 8}) as explorer:
        await explorer.press("space", "space")
        session, trace = explorer.session, explorer.session.trace
        form = await open_settings(explorer)
        assert form.query_one("#budget").value == "512 MiB"
        total = readable(trace.plan.total)
        assert f"80 tokens: {total} of values, all kept · now held {readable(trace.held_bytes)}" in explorer.text
        # left as it was
        await explorer.press("ctrl+s")
        await explorer.until(lambda: explorer.app.screen is explorer.main)
        assert explorer.session is session
        # no amount of memory
        form = await open_settings(explorer)
        form.query_one("#budget").value = "3 XiB"
        await explorer.shown("memory “3 XiB” is not an amount of memory")
        await explorer.keys("ctrl+s")
        assert explorer.app.screen is form
        # a smaller budget
        plan = keep_plan(trace.program, 4, 400 * 1024)
        form.query_one("#budget").value = "400KiB"
        await explorer.shown(f"80 tokens: {readable(plan.total)} of values, {readable(plan.bytes)} kept")
        assert explorer.session.budget == 512 << 20
        await explorer.keys("ctrl+s")
        await explorer.until(lambda: explorer.session.budget == 400 * 1024)
        await explorer.settled()
        assert explorer.session.trace.plan.names == plan.names
        await explorer.go("encoder.0.self_attention.weights")
        assert explorer.session.trace.held_bytes <= 400 * 1024
        await explorer.press("u")
        assert explorer.session.budget == 512 << 20


AMOUNTS = {"512MiB": 512 << 20, "2 GiB": 2 << 30, "0": 0, "1.5kib": 1536}


@pytest.mark.parametrize(
    ("text", "size"), [*AMOUNTS.items(), *((text, None) for text in ("x", "much", "-1", "", "3 XiB", "9999 TiB"))]
)
def test_amounts_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size
