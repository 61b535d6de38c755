"""Every prompt and form of the explorer as a visitor has it, given names of files that are not the visitor's.

A program of its own, as a gate that is closed stays so; its arguments are the visitors' folder and the one of
others. It prints as JSON what was said, what was reached nevertheless, and which lines of the explorer it passed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import driving
from driving import NARROW, TOOLS, Explorer, exploring
from textual.screen import Screen
from textual.widgets import Input, Static

from tui_transformer import explorer as package
from tui_transformer import gate
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.form import Choice, Form
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.tools.compare import offers
from tui_transformer.explorer.tools.open import OpenScreen

Ask = Callable[[Explorer], Awaitable[Screen[Any]]]

ROOT = f"{Path(package.__file__).parent}/"
ASKING = (PromptScreen, OpenScreen, Form)
OPENS = re.compile(r"(\w+(Screen|Settings|Form)|asking)\(")
"""What a key does that opens something else."""

STEP = "decoder.0.self_attention.context"
FILES = ("file", "a file")
"""Choices that make a form ask for a path."""


class Walk:
    """What is seen on the way.

    Attributes:
        gates: The one of visitors who have a folder, and the one of those who have none.
        said: By what asks, the answers to the names that the gate refused.
        reached: Places of others that were opened, listed, written or removed.
        places: Lines of the explorer on the way to what asks, and to the gate.
    """

    def __init__(self, outside: Path, closed: gate.Gate) -> None:
        self._outside = str(outside)
        self.gates = closed, replace(closed, folder=None)
        self.said: dict[str, dict[str, str]] = {}
        self.reached: list[str] = []
        self.places: set[tuple[str, int]] = set()
        self.refused = False

    def watch(self) -> None:
        """Look at what the gate lets through, which is asked first, and at everything that asks."""
        sys.addaudithook(self._see)
        for name in ("opens", "reads", "writes"):
            setattr(gate.Gate, name, self._noting(getattr(gate.Gate, name)))
        for kind in ASKING:
            kind.__init__ = self._noting(kind.__init__)

    def _see(self, event: str, given: tuple[Any, ...]) -> None:
        for each in given[:2] if event.startswith("os.") else given[: event == "open"]:
            path = os.fsdecode(each) if isinstance(each, str | bytes | os.PathLike) else ""
            if path and os.path.realpath(path).startswith(self._outside):
                self.reached.append(f"{event} {path}")

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **named: Any) -> Any:
            frame = sys._getframe(1)
            while frame is not None:
                if frame.f_code.co_filename.startswith(ROOT):
                    self.places.add((frame.f_code.co_filename.removeprefix(ROOT), frame.f_lineno))
                frame = frame.f_back
            answer = function(*arguments, **named)
            self.refused = self.refused or answer is False
            return answer

        return noted

    async def give(self, explorer: Explorer, title: str, ask: Ask, names: list[str]) -> None:
        """Give names to what asks, with a folder for visitors and without; what takes it for no file is left."""
        asked = None
        for closed, name in [*((self.gates[0], each) for each in names), (self.gates[1], names[0])]:
            if asked is None or explorer.app.screen is not asked:
                await leave(explorer, explorer.main)
                asked = await ask(explorer)
            gate._closed[:], self.refused = [closed], False
            for field in fields(asked):
                good = field.id == "folder" and name == names[-1]  # for the path that is looked at behind it
                put(field, "runs/mine" if good else name)
            await explorer.press("enter")
            lines = [str(each.content) for each in explorer.app.screen.query("#problem, #status").results(Static)]
            if self.refused:
                last = explorer.app.messages.text.partition("\n")[0].partition("  ")[2]  # behind the time
                key = f"{name} without" if closed is self.gates[1] else name
                self.said.setdefault(title, {})[key] = " ".join(filter(None, lines)) or last
            else:
                break
        gate._closed[:] = self.gates[:1]
        await leave(explorer, explorer.main)


def fields(screen: Any) -> list[Input]:
    """What can be typed into; a form that has a path to ask for is made to ask."""
    for choice in screen.query(Choice):
        if wanted := [each for each in choice.values if each in FILES]:
            screen.query_one(Form).put(choice.id, wanted[0])
            screen.query_one(Form)._changed(choice.id)
    return [each for each in screen.query(Input) if not each.disabled]


def put(field: Input, name: str) -> None:
    """Write a name where no number is wanted; in an edit, as a file of numbers and as one of texts."""
    number = field.value.replace(".", "").replace(",", "").isdigit()
    if isinstance(field.screen, PromptScreen) or not number:
        field.focus()
        field.value = name


def doing(*steps: str | tuple[str, ...]) -> Ask:
    """Actions of what is in front by then, and keys."""

    async def do(explorer: Explorer) -> Screen[Any]:
        for step in steps:
            if isinstance(step, str):
                await explorer.app.screen.run_action(step)
                await explorer.settled()
            else:
                await explorer.press(*step)
        return explorer.app.screen

    return do


def with_probes(labels: Path) -> Ask:
    """The name of the file that a direction is written to, of a probe that was fitted to texts of the visitor."""

    async def do(explorer: Explorer) -> Screen[Any]:
        texts = (" ".join(["waves crashed"] * count) for count in range(1, 9))
        labels.write_text("".join(f"{'ab'[i % 2]}\t{text}\n" for i, text in enumerate(texts)), encoding="utf-8")
        await doing("open('probes')")(explorer)
        await explorer.answer(str(labels))
        return await doing("write")(explorer)

    return do


async def leave(explorer: Explorer, until: Screen[Any]) -> None:
    for _ in range(6):
        if explorer.app.screen is not until and until in explorer.app.screen_stack:
            await explorer.press("escape")


async def walk_tool(walk: Walk, explorer: Explorer, name: str, names: list[str]) -> None:
    """What a tool asks for, or what its keys open that asks."""
    tool = f"open('{name}')"
    screen = await doing(tool)(explorer)
    asking = [()] if asks(screen) else []
    for action in () if asks(screen) else opening(screen):
        asking += [(action,)] if asks(await doing(action)(explorer)) else []
        await leave(explorer, screen)
    for each in asking:
        await walk.give(explorer, " ".join((name, *each)), doing(tool, *each), names)
    await leave(explorer, explorer.main)


async def walk_offers(walk: Walk, explorer: Explorer, names: list[str]) -> None:
    """What can be compared with."""
    for place, offer in reversed([*enumerate(offers(explorer.session))]):  # what is compared is ended before others
        if offer.ask:
            await walk.give(explorer, offer.title, doing("open('compare')", (*["down"] * place, "enter")), names)


def asks(screen: Any) -> bool:
    return isinstance(screen, PromptScreen | OpenScreen) or bool(screen.query(Form))


def opening(screen: Any) -> Iterator[str]:
    """The actions of a tool that open something to type into, one of those that differ by what they are given."""
    if isinstance(screen, ExplorerScreen) and not isinstance(screen, MainScreen):
        for name, action in {each.action.partition("(")[0]: each.action for each in screen.ACTIONS}.items():
            method = getattr(screen, f"action_{name}", None)
            if method is not None and OPENS.search(inspect.getsource(method)):
                yield action


async def main(folder: Path, outside: Path) -> Walk:
    driving.PATIENCE = 120.0  # it is one test, and may wait as long as one
    names = [f"{outside}/secret.txt", f"{outside}/nothing.txt", "link.txt"]
    os.environ[gate.VARIABLE] = gate.described(folder, Path(tempfile.mkdtemp()))
    sizes = {"d_model": 8, "heads": 2, "layers": 1}
    async with exploring(NARROW, model="decoder", text="waves crashed", sizes=sizes) as explorer:
        gate.confine([])
        walk = Walk(outside, gate._closed[0])
        walk.watch()
        await explorer.go(STEP)
        await walk_offers(walk, explorer, names)
        for name in TOOLS:
            await walk_tool(walk, explorer, name, names)
        await explorer.go(STEP)
        await walk.give(explorer, "record", doing("record", "record"), names)
        await walk.give(explorer, "probes write", with_probes(folder / "labels.tsv"), names)
        for action in ("go", "find", "bookmark", "export"):
            await walk.give(explorer, action, doing(action), names)
        for edit in ("+= {}", "= mean({})"):
            edits = [f"{STEP} {edit.format(name)}" for name in names]
            await walk.give(explorer, f"edit {edit}", doing("edit('cell')"), edits)
        steered = [f"{STEP} += 4*{name}" for name in names]
        await walk.give(explorer, "generate steer", doing("open('generate')", "direction"), steered)
        await walk.give(explorer, "sentence", doing("edit('sentence')"), names)
        await explorer.go("embedding.positions")
        await walk.give(explorer, "export of a chart", doing(("6", "c", "x")), names)
    return walk


if __name__ == "__main__":
    walked = asyncio.run(main(*map(Path, sys.argv[1:])))
    sys.stdout.write(json.dumps({"said": walked.said, "reached": walked.reached, "places": sorted(walked.places)}))
