"""Keys at random, in every screen and in terminals of any size: nothing raises, and the explorer still ends with q."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from driving import Explorer, exploring
from hostile_words import ESCAPES, MARKUP, STRANGE, check_screen
from reference import REFERENCES

from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.prompt import PickScreen

pytestmark = pytest.mark.slow

ENDING = ("q", "ctrl+z")
OPENING = (*"HKRLWAPVFdBbv?,t/xTw", "ctrl+l", "ctrl+p")
IN_SCREENS = (
    *("enter", "escape", "tab", "shift+tab", "up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
    *("space", "backspace", "delete", "ctrl+u", "ctrl+a", *"gGjkhlr[]0-.:", "ctrl+s", *"+*é漢\\'"),
)
SIZES = ((160, 45), (100, 30), (80, 24), (40, 12), (12, 5), (5, 3), (1, 1), (300, 100))
MODELS: Mapping[str, Mapping[str, Any]] = {
    "trained": {"model": "question"},
    "decoder": {"model": "decoder", "sizes": {"layers": 2}},
    "encoder-decoder": {"model": "encoder-decoder"},
    "attention": {"model": "attention"},
    "one token": {"model": "encoder", "text": "waves"},
    "gpt2": {"model": str(REFERENCES / "gpt2")},
    "t5": {"model": str(REFERENCES / "t5")},
    "bert": {"model": str(REFERENCES / "bert")},
}


def keys(seed: int, count: int) -> Iterator[str]:
    """Keys that open screens, and keys that do something in them."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    usual = [key for action in ACTIONS for key in action.keys.split(",") if key not in ENDING]
    for _ in range(count):
        yield chance.choice(chance.choice((OPENING, usual, IN_SCREENS, IN_SCREENS)))


async def press_at_random(explorer: Explorer, seed: int, count: int) -> None:
    """Press keys, some of them before the last one is done, and change the size now and then."""
    chance = random.Random(seed)  # noqa: S311
    pressed: list[str] = []
    for key in keys(seed, count):
        pressed.append(key)
        try:
            explorer.send(key)
            if chance.random() < 0.7:
                await explorer.handled()
            if chance.random() < 0.04:
                size = chance.choice(SIZES)
                pressed.append(str(size))
                await explorer.resize(*size)
            if chance.random() < 0.1:
                await explorer.handled()
                check_screen(explorer)
        except BaseException:
            print("pressed:", *pressed[-40:])  # noqa: T201 - what led there
            raise


async def ends_with_q(explorer: Explorer) -> None:
    """Leave whatever is open, and the explorer."""
    for _ in range(12):
        if explorer.app.screen is not explorer.main:
            leaves = isinstance(explorer.app.screen, PickScreen)  # how training is to be left
            await explorer.keys("enter" if leaves else "escape")
    await explorer.keys("escape")
    assert explorer.app.screen is explorer.main, explorer.text
    explorer.send("q")
    await explorer.until(lambda: explorer.app._exit)
    assert explorer.app._exception is None
    assert explorer.app.failure is None
    assert (explorer.app.return_code or 0) == 0


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())
async def test_keys_at_random_break_nothing(options, seed: int, here: Path):
    async with exploring((100, 30), **options) as explorer:
        await press_at_random(explorer, seed, 120)
        await ends_with_q(explorer)


@pytest.mark.parametrize("model", ["encoder", "decoder", "encoder-decoder"])
async def test_keys_at_random_with_a_hostile_vocabulary(model, here: Path):
    words = [word.replace("\x00", "") for word in (*MARKUP, *ESCAPES, *STRANGE)]
    (here / "[red]odd.txt").write_text(" ".join(words), encoding="utf-8")
    options = {"model": model, "vocab": str(here / "[red]odd.txt"), "text": " ".join(words[:12])}
    async with exploring((100, 30), **options) as explorer:
        await press_at_random(explorer, 3, 120)
        await ends_with_q(explorer)
