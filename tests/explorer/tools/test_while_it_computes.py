"""What a tool says stands beside what it is of, also while the next thing is being worked out."""

from __future__ import annotations

import threading

import pytest
from driving import WIDE, exploring

from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.session.store import AT_ONCE

TEXT = "Once there was a small girl called Mira, who lived by the sea"
CASES = {
    "arcs of a head": ("copy", "decoder.1.self_attention.weights", "arcs", "]"),
    "arcs of a layer": ("copy", "decoder.1.self_attention.weights", "arcs", "{"),
    "arcs across": ("dates", "decoder.0.self_attention.weights", "arcs", "}"),
    "rollout": ("copy", "decoder.1.self_attention.weights", "rollout", "{"),
    "a matrix of a head": ("copy", "decoder.1.self_attention.weights", "circuits", "f"),
    "circuits of a head": ("copy", "decoder.1.self_attention.weights", "circuits", "]"),
    "features": ("story", "decoder.1.feed_forward.residual", "features", "right"),
    "poster": ("copy", "decoder.1.self_attention.weights", "poster", "minus"),
}


@pytest.mark.parametrize("case", CASES)
async def test_titles_follow_with_what_they_are_of(case: str) -> None:
    model, stop, tool, key = CASES[case]
    gate = threading.Event()
    async with exploring(WIDE, model=model, **({"text": TEXT} if model == "story" else {})) as explorer:
        await explorer.go(stop)
        explorer.main.action_open(tool)
        await explorer.until(lambda: isinstance(explorer.app.screen, Overview))
        await explorer.settled()
        screen = explorer.app.screen
        assert isinstance(screen, Overview)
        before = screen.texts()
        screen.requests._here = lambda: False
        screen.requests.ask("held", AT_ONCE + 1, lambda _: gate.wait(20), lambda _: None)
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
