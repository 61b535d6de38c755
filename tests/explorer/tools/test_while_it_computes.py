"""What a tool says stands beside what it is of, also while the next thing is being worked out."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from driving import WIDE, Explorer, exploring

from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.tools.compare import compare_with
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.explorer.tools.patching import PatchScreen

TEXT = "Once there was a small girl called Mira, who lived by the sea"
COPY = [("arcs", "]"), ("arcs", "{"), ("rollout", "{"), ("circuits", "f"), ("circuits", "]"), ("poster", "minus")]
CASES = {
    "a head, a layer, a matrix, a cell": ("copy", "decoder.1.self_attention.weights", COPY),
    "arcs across": ("dates", "decoder.0.self_attention.weights", [("arcs", "}")]),
    "features": ("story", "decoder.1.feed_forward.residual", [("features", "right")]),
}


@pytest.mark.parametrize(("model", "stop", "tools"), CASES.values(), ids=CASES)
async def test_titles_follow_with_what_they_are_of(model: str, stop: str, tools: list[tuple[str, str]]) -> None:
    async with exploring(WIDE, model=model, **({"text": TEXT} if model == "story" else {})) as explorer:
        for tool, key in tools:
            await explorer.go(stop)
            explorer.main.action_open(tool)
            screen = await explorer.front(Overview)
            before, gate = screen.texts(), threading.Event()
            screen.requests._here = lambda: False
            screen.requests.ask("held", lambda _, gate=gate: gate.wait(20), lambda _: None)
            try:
                await explorer.keys(key)
                meanwhile = screen.texts()
            finally:
                gate.set()
            await explorer.settled()
            after = screen.texts()
            said = (meanwhile.heading, meanwhile.note, meanwhile.detail)
            assert said == (before.heading, before.note, before.detail)
            assert (after.heading, after.note) != (before.heading, before.note)
            await explorer.press("escape")


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
    async with exploring(WIDE, model="question") as explorer:
        await explorer.go("encoder.0.self_attention.query")
        port, gate = explorer.parts.port, threading.Event()
        explorer.parts.requests._here = lambda: False
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
