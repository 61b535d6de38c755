"""The screens: every tool and the main screen's own views, at three sizes: characters, and a digest of the colours."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from unittest import mock

from textual.app import App

from tests.explorer.cheaper import cheaper
from tests.explorer.driving import Explorer
from tests.golden.program import alone, masked
from tests.golden.store import Cases
from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.run import open_session
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.model.options import ModelOptions
from tui_transformer.session import step_scene
from tui_transformer.session.session import Session

SIZES = ((160, 45), (100, 30), (80, 24))
MOST_BACK = 5
"""Times that esc is pressed to leave what was opened."""

GOING_ON = "esc ends"
"""What a line says as long as something is computed."""

PATIENCE = 50
"""Tenths of a second until what says so is taken for what there is."""

PALETTE = "palette:"
TYPED = "type:"


def _open(model: str, text: str | None = None, ids: tuple[int, ...] | None = None) -> Session:
    return open_session(ModelOptions(model, device="cpu", dtype="float64"), text, ids)


MASKS = ((re.compile(r"\b\d\d:\d\d:\d\d\b"), "00:00:00"), (re.compile(r"(│ +its path  +)[^│\n]*"), r"\1{path} "))
"""Moments, and a path that is cut where its field ends."""

MODELS: Mapping[str, Callable[[], Session]] = {
    "question": partial(_open, "question"),
    "story": partial(_open, "story", "The fox found a shell"),
    "bart": partial(_open, "references/bart", None, (5, 9, 12, 7, 2)),
}

MAIN: Mapping[str, str] = {
    "first": "",
    "the whole": "0",
    "steps": "0 space space space",
    "weights": ": type:weights enter",
    "inside": "enter",
    "out again": "escape",
    "head, cell": "] right down",
    "pane sentence": "1",
    "pane steps": "2",
    "pane heads": "3",
    "pane cell": "5",
    "pane chart": "6 c",
    "zoom": "4 Z",
    "no zoom": "Z",
    "wider": "+",
    "scale": "- m",
    "hidden": "i",
    "shown": "i",
    "the weight": ": type:query enter w",
    "the weight left": "w",
    "backward": ": type:weights enter b",
    "gradients beside": "z",
    "forward": "z z b",
    "the edit": "e",
    "edited": "type:0.5 enter",
    "undone": "u",
    "sentence is written": "/",
    "sentence is left": "escape",
    "predict": "p",
    "predicted": "escape",
    "vocabulary": "v",
    "vocabulary left": "escape",
    "go": ":",
    "go left": "escape",
    "export": "x",
    "export left": "escape",
    "help": "?",
    "help left": "escape",
    "palette": "ctrl+p",
    "palette left": "escape",
    "tour": "t",
    "tour, the next stop": "enter",
    "tour left": "escape",
    "light": "ctrl+t",
    "dark": "ctrl+t",
    "go back": ": type:weights enter",
}
"""The main screen's own views, one after another: keys, and texts that are typed."""

TOOLS: Mapping[str, str] = {
    "vocabularies": "V",
    "targets": "B",
    "compare": "d",
    "ablate": "A",
    "ablate, the next order": "A r",
    "ablate this head": "a",
    "undo": "u",
    "ablate this head by mean": f"{PALETTE}Ablate this head (mean)",
    "undo it": "u",
    "ablate this position": f"{PALETTE}Ablate this position (zero)",
    "undo this": "u",
    "patch": "P",
    "patching": "$",
    "paths": "$ f f f",
    "probes": f"{PALETTE}Probes",
    "circuits": "O",
    "circuits, the next head": "O ]",
    "inputs": "&",
    "terms": "@",
    "measure": "#",
    "settings": ",",
    "breaks": "!",
    "broken": "! down enter",
    "undo the break": "u",
    "heads": "H",
    "heads by a measure": "H r",
    "links": "K",
    "links hidden": "K i",
    "rollout": "R",
    "rollout, the layer before": "R {",
    "arcs": "Q",
    "lens": "L",
    "lens, further": "L down right",
    "similar": "J",
    "nearest": "~",
    "score": "%",
    "softmax": "^",
    "softmax broken": "^ !",
    "another sentence": ".",
    "generate": "W",
    "generate, a token": "W space",
    "train": "ctrl+l",
    "checkpoints": "F",
    "exercises": "C",
    "open": "o",
    "survey": f"{PALETTE}Survey: heads by a measure over many texts, and the strongest examples",
    "graph": f"{PALETTE}Attribution graph: what leads to the answer, and by what",
    "messages": f"{PALETTE}Messages: what was said",
    "draw again": f"{PALETTE}Draw again: other random weights, from the next seed",
}
"""Every tool, opened from the attention weights: its keys, or its line of the palette."""

HELPED = {
    "ablate",
    "patching",
    "heads",
    "links",
    "rollout",
    "lens",
    "arcs",
    "circuits",
    "terms",
    "generate",
    "train",
    "open",
}
"""Tools whose help is frozen as well, on the largest screen."""


def screens(model: str, size: tuple[int, int], part: str = "") -> Cases:
    """The screens of a model at a size."""
    if part and not any(part in name for name in (*MAIN, *TOOLS)):
        return {}
    with alone() as here:
        every = asyncio.run(_screens(model, size))
        return {name: masked(_without_masked(said), here) for name, said in every.items() if part in name}


def _without_masked(text: str) -> str:
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


async def _screens(model: str, size: tuple[int, int]) -> dict[str, str]:
    told: dict[str, str] = {}
    async with _exploring(model, size) as explorer:
        for name, keys in MAIN.items():
            explorer.app.clear_notifications()
            await _press(explorer, keys)
            told[f"main, {name}"] = await _shown(explorer)
        stop = explorer.stop
        for name, keys in TOOLS.items():
            if explorer.stop != stop:
                await explorer.go(stop)
            explorer.app.clear_notifications()
            await _press(explorer, keys)
            told[f"tool, {name}"] = await _shown(explorer)
            if size == SIZES[0] and name in HELPED:
                await explorer.press("f1")
                told[f"help, {name}"] = await _shown(explorer)
            await _leave(explorer)
        told["palette"] = "\n".join(
            f"{each.title} · {each.help}" for each in explorer.app.get_system_commands(explorer.app.screen)
        )
    return told


@asynccontextmanager
async def _exploring(model: str, size: tuple[int, int]) -> AsyncIterator[Explorer]:
    app = ExplorerApp(MODELS[model](), Preferences(classic=True))
    with ExitStack() as stack:
        stack.enter_context(cheaper())
        stack.enter_context(mock.patch.object(step_scene, "clock", return_value=0.0))
        stack.enter_context(mock.patch("time.perf_counter", return_value=0.0))
        stack.enter_context(mock.patch.object(App, "NOTIFICATION_TIMEOUT", 1000.0))
        async with app.run_test(size=size, notifications=True) as pilot:
            explorer = Explorer(pilot, app)
            await explorer.until(lambda: len(app.screen_stack) > 1)
            await explorer.settled()
            yield explorer
            assert not app.failures.told, list(app.failures.told.values())


async def _press(explorer: Explorer, keys: str) -> None:
    """Press keys, type texts, or take a line of the palette."""
    if keys.startswith(PALETTE):
        title = keys.removeprefix(PALETTE)
        commands = {each.title: each.callback for each in explorer.app.get_system_commands(explorer.app.screen)}
        if title in commands:
            explorer.app.call_later(commands[title])
        await explorer.settled()
        return
    for key in keys.split():
        if key.startswith(TYPED):
            await explorer.write(key.removeprefix(TYPED))
        else:
            await explorer.press(key)
            explorer.parts.counting.end()  # as after a moment: a digit is a pane, and no count


async def _leave(explorer: Explorer) -> None:
    for _ in range(MOST_BACK):
        if isinstance(explorer.app.screen, MainScreen):
            return
        await explorer.press("escape")
    assert isinstance(explorer.app.screen, MainScreen), explorer.text


async def _shown(explorer: Explorer) -> str:
    """The lines of the screen, each behind a digest of its colours; cursors that blink are shown."""
    for node in explorer.app.screen.walk_children():
        if hasattr(node, "_cursor_visible"):
            node._cursor_visible = True
    for _ in range(PATIENCE):
        await explorer.settled()
        if GOING_ON not in explorer.text:
            break
        await asyncio.sleep(0.1)
    strips = explorer.app.screen._compositor.render_strips()
    return "\n".join(f"{_digest(strip)}│{strip.text.rstrip()}" for strip in strips)


def _digest(strip: object) -> str:
    """Four letters of the styles of a line, and where each begins."""
    styles, column = [], 0
    for text, style, _ in strip:  # type: ignore[attr-defined]
        said = str(style) if style else ""
        if not styles or styles[-1][1] != said:
            styles.append((column, said))
        column += len(text)
    number = zlib.crc32(repr(styles).encode())
    return "".join(chr(ord("a") + (number >> shift & 15)) for shift in (0, 8, 16, 24))


PARTS = {f"screens-{model}-{size[0]}": partial(screens, model, size) for model in MODELS for size in SIZES}
