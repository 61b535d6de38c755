"""What comes late, when something else is explored by then."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from driving import WIDE, Explorer, exploring

from tui_transformer.explorer.tools.compare import compare_with
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.explorer.tools.patching import PatchScreen


async def patched(explorer: Explorer) -> None:
    open_tool("patch", explorer.parts.port)
    await explorer.until(lambda: isinstance(explorer.app.screen, PatchScreen))
    await explorer.handled()
    await explorer.write("who found the old key ?")
    await explorer.keys("enter")
    assert explorer.app.screen is explorer.main


async def compared(explorer: Explorer) -> None:
    compare_with(explorer.parts.port, "precision")


async def asked(explorer: Explorer, tool: str) -> None:
    open_tool(tool, explorer.parts.port)


LATE = {
    "a comparison": compared,
    "a patch": patched,
    **{tool: partial(asked, tool=tool) for tool in ("inputs", "score", "targets")},
}


@pytest.mark.parametrize("ask", LATE.values(), ids=LATE)
async def test_what_comes_late_takes_no_change_back_that_was_made_meanwhile(ask) -> None:
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.query") as explorer:
        port, gate = explorer.parts.port, threading.Event()
        explorer.parts.requests.here = lambda: False
        port.ask("held", lambda _: gate.wait(20), lambda _: None)
        try:
            await ask(explorer)
            port.change(explorer.session.with_text("the cat sleeps ."))
            changed = explorer.session
        finally:
            gate.set()
        await explorer.settled()
        assert explorer.session is changed
        assert explorer.app.screen is explorer.main
        assert "became another meanwhile" in explorer.messages[-1]
