"""Every tool is opened from the table and left by escape; what it says is of what is shown, also where it is late."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import numpy as np
import pytest
from driving import NARROW, TOOLS, WIDE, exploring
from textual.color import Color

from tui_transformer import Scale, Set
from tui_transformer.analysis.score import TokenScore
from tui_transformer.explorer import tools
from tui_transformer.explorer.guard.compositor import strips_of
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.themes import DARK, LIGHT
from tui_transformer.explorer.tools.opening import open_tool
from tui_transformer.explorer.tools.patching import PatchScreen
from tui_transformer.explorer.tools.score import _shade
from tui_transformer.explorer.tools.sentence import change_bar
from tui_transformer.model.options import ModelOptions

NEEDED = {
    "circuits": "there are no circuits",
    "compare-sentence": "reads no sentence",
    "features": "train --features",
    "graph": "no logits",
    "inputs": "nothing to differentiate",
    "lens": "no output head",
    "nearest": "no embedding of words",
    "patch": "reads no sentence",
    "patching": "no logits of words: tables of patches",
    "probes": "reads no texts",
    "score": "gives words no probability",
    "similar": "makes no vector of a sentence",
    "terms": "no logits of words: attribution",
}
"""What tools say that the model of attention alone does not have."""


def test_every_tool_has_an_action_and_every_folder_is_one_of_a_tool():
    folder = Path(tools.__path__[0])
    source = (folder / "opening.py").read_text(encoding="utf-8")
    assert {*re.findall(r'case "([\w-]+)":', source)} == {name for name in TOOLS if "-" not in name}
    screens = {path.parent.name for path in folder.glob("*/screen.py")}
    assert screens <= set(re.findall(r"explorer\.tools\.(\w+)", source))


@pytest.mark.parametrize(("model", "broken"), [("story", False), ("story", True), ("question", True)])
async def test_every_tool_is_opened_and_left_also_where_nothing_is_a_number(model, broken):
    session = open_session(ModelOptions(model=model), "the fox")
    if broken:
        session = session.with_edits(Set("embedding.output", 3e38, rows=1), Scale("embedding.output", 1e38))
        assert np.isnan(session.trace[session.trace.program.logits]).any()
    async with exploring(WIDE if broken else NARROW, session=session) as explorer:
        for name in TOOLS:
            await explorer.open(name)
            if explorer.app.screen is not explorer.main:
                await explorer.press("down")
            for _ in range(3):
                if explorer.app.screen is not explorer.main:
                    await explorer.press("escape")
            assert explorer.app.screen is explorer.main, name
            assert not explorer.app.failures.told, name


async def test_a_tool_says_what_it_needs_and_the_model_does_not_have():
    async with exploring(NARROW, model="attention") as explorer:
        for name, said in NEEDED.items():
            await explorer.open(name)
            assert explorer.app.screen is explorer.main, name
            assert said in explorer.messages[-1], name


def test_a_share_that_is_no_number_has_no_bar():
    assert change_bar(float("nan"), 0.5, 4).plain == change_bar(0.0, 0.5, 4).plain
    token = TokenScore(0, 1, 1, float("nan"), float("nan"))
    assert "$error 70%" in _shade(token)


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
            screen.requests.here = lambda: False
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


@pytest.mark.parametrize("tool", ["", "arcs", "breaks", "generate", "train", "lens"])
async def test_all_that_a_tool_draws_is_in_the_theme_that_is_chosen_over_it(tool: str) -> None:
    async with exploring(WIDE, model="story", text=TEXT, at="decoder.0.self_attention.weights") as explorer:
        await (explorer.open(tool) if tool else explorer.press("enter"))
        await explorer.settled()
        assert explorer.app.screen is not explorer.main
        assert explorer.app.theme == DARK.name
        explorer.app.theme = LIGHT.name
        await explorer.settled()
        seen = {segment.style.color for strip in strips_of(explorer.app) for segment in strip if segment.text.strip()}
        assert Color.parse(LIGHT.foreground).rich_color in seen
        assert Color.parse(DARK.foreground).rich_color not in seen


@pytest.mark.parametrize("tool", ["compare-precision", "patch", "inputs", "score", "targets"])
async def test_what_comes_late_takes_no_change_back_that_was_made_meanwhile(tool: str) -> None:
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.query") as explorer:
        port, gate = explorer.parts.port, threading.Event()
        explorer.parts.requests.here = lambda: False
        port.ask("held", lambda _: gate.wait(20), lambda _: None)
        try:
            open_tool(tool, port)
            if tool == "patch":
                await explorer.until(lambda: isinstance(explorer.app.screen, PatchScreen))
                await explorer.handled()
                await explorer.write("who found the old key ?")
                await explorer.keys("enter")
            port.change(explorer.session.with_text("the cat sleeps ."))
            changed = explorer.session
        finally:
            gate.set()
        await explorer.settled()
        assert explorer.session is changed
        assert explorer.app.screen is explorer.main
        assert "became another meanwhile" in explorer.messages[-1]
