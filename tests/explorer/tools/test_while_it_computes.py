"""What a tool says stands beside what it is of, also while the next thing is being worked out."""

from __future__ import annotations

import threading

import pytest
from driving import WIDE, exploring

from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.session.store import AT_ONCE

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
            screen.requests.ask("held", AT_ONCE + 1, lambda _, gate=gate: gate.wait(20), lambda _: None)
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
