"""A walk: keys at the pace of a hand and faster, resizes, tools and edits; and the screen that it should end on."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from unittest import mock

from rich.color import Color
from textual.css.query import NoMatches
from textual.scroll_view import ScrollView
from textual.widget import Widget
from textual.widgets import Input

from tests.explorer import driving
from tests.explorer.cheaper import cheaper
from tests.explorer.driving import Explorer
from tests.explorer.walks.models import MODELS
from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.shell.actions.main import ACTIONS
from tui_transformer.explorer.shell.keys import IN_MENUS, UNBOUND, in_menu
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.widgets.cursor import GridWidget
from tui_transformer.session import step_scene
from tui_transformer.session.sentences import Cache
from tui_transformer.session.session import Session

SIZES = ((40, 12), (80, 24), (100, 30), (120, 36), (160, 45), (200, 60))
MOVES, STOPS = 60, 10
"""Moves of a walk, and how often its screen is compared."""

PATIENCE = 120.0
"""Seconds in which everything rests, a tool that works with slow weights too."""

MOST_TOLD = 16
"""Lines of a difference that are told."""

SETTLED, HANDLED, AT_ONCE = "settled", "handled", "at once"
"""How long a hand waits after a key: until everything rests, until the key was handled, or not at all."""

NEVER = {"quit", "suspend", "serve", "train", "record", "messages.open", "open", "checkpoints", "exercises", "export"}
"""Actions that leave the program or its models, or that write files."""

STEPS = ("space", "backspace", "{", "}", "[", "]")
CURSOR = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "plus", "minus")
VIEW = (
    *("0", "z", "tab", "shift+tab", "1", "2", "3", "4", "5", "6", "g d", "g v", "g w", "g }"),
    *("b b", "c b", "c c", "c n", "c s", "m c", "m h", "m k"),
)
ENTERED = ("the cat", "2 5 6 3", "where is it ?", "1.5", "a,b", "0.weights", "12")
"""Texts that are typed into what asks for one."""


@dataclass(frozen=True)
class Move:
    """A key, a text that is typed, or another size; and how long the hand waits then."""

    key: str = ""
    text: str = ""
    size: tuple[int, int] | None = None
    wait: str = SETTLED

    def __str__(self) -> str:
        """As a person reads it."""
        what = f"{self.size[0]}×{self.size[1]}" if self.size else repr(self.text) if self.text else self.key
        return what if self.wait == SETTLED else f"{what}({self.wait})"


@dataclass
class Outcome:
    """What a walk led to: the moves, and what did not hold."""

    model: str
    seed: int
    moves: list[Move]
    faults: list[str] = field(default_factory=list)
    compared: int = 0

    def __str__(self) -> str:
        """A line, and what did not hold below it."""
        line = f"seed {self.seed} {self.model}: {'FAILS' if self.faults else 'holds'} · {self.compared} screens"
        return "\n".join([line, *self.faults, *(["  " + " ".join(map(str, self.moves))] if self.faults else [])])


def moves_of(seed: int, count: int = MOVES) -> list[Move]:
    """The moves of a walk; a seed gives the same ones again."""
    chance = random.Random(seed)  # noqa: S311
    return [Move(size=chance.choice(SIZES)), *(_move(chance) for _ in range(count))]


def _move(chance: random.Random) -> Move:
    wait = chance.choices((SETTLED, HANDLED, AT_ONCE), (4, 3, 3))[0]
    kind = chance.random()
    if kind < 0.06:
        return Move(size=chance.choice(SIZES), wait=wait)
    if kind < 0.10:
        return Move(text=chance.choice(ENTERED), wait=HANDLED)
    if kind < 0.16:
        return Move("escape", wait=wait)
    among = STEPS if kind < 0.45 else CURSOR if kind < 0.65 else VIEW if kind < 0.80 else _keymap()
    return Move(chance.choice(among), wait=wait)


def _keymap() -> tuple[str, ...]:
    """Every key of the main screen that stays in the program, alone or behind that of its menu."""
    stays = [action for action in ACTIONS if not any(action.id.startswith(name) for name in NEVER)]
    keys = [key for action in stays for key in action.keys.split(",") if not key.startswith(UNBOUND)]
    keys += [in_menu(action.id) for action in stays if action.id in IN_MENUS]
    return tuple(key for key in keys if key not in ("q", "ctrl+z", "ctrl+q", "ctrl+c"))


def walk(model: str, seed: int, moves: list[Move] | None = None, stops: int = STOPS) -> Outcome:
    """Walk, and compare the screen with that of a new explorer so many times."""
    given = moves_of(seed) if moves is None else moves
    outcome = Outcome(model, seed, given)
    patience = mock.patch.object(driving, "PATIENCE", PATIENCE)
    clock = mock.patch.object(step_scene, "clock", return_value=0.0)  # what a step took is of the past
    with patience, clock, cheaper():
        asyncio.run(_walk(outcome, stops))
    return outcome


async def _walk(outcome: Outcome, stops: int) -> None:
    app = ExplorerApp(MODELS[outcome.model](), Preferences())
    every = max(len(outcome.moves) // stops, 1)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        explorer = Explorer(pilot, app)
        await explorer.until(lambda: len(app.screen_stack) > 1)
        try:
            for number, move in enumerate(outcome.moves, 1):
                await _make(explorer, move)
                if number % every == 0 or number == len(outcome.moves):
                    outcome.compared += 1
                    if faults := await _compare(explorer):
                        outcome.faults = faults
                        outcome.moves = outcome.moves[:number]
                        break
        except (AssertionError, NoMatches) as error:
            outcome.faults.append(f"{type(error).__name__}: {error}")
        outcome.faults += [f"reported: {said}" for said in app.failures.told.values()]
        if app._exception is not None:
            outcome.faults.append(f"ended: {app._exception!r}")


async def _make(explorer: Explorer, move: Move) -> None:
    if move.size is not None:
        await explorer.resize(*move.size)
    elif move.text:
        if isinstance(explorer.app.focused, Input):
            explorer.app.focused.value = move.text
            explorer.send("enter")
    else:
        explorer.send(*move.key.split())
    if move.wait == SETTLED:
        await explorer.settled()
    elif move.wait == HANDLED:
        await explorer.handled()
    else:
        await asyncio.sleep(0)


async def _compare(explorer: Explorer) -> list[str]:
    """Differences between the screen, once it rests, and that of a new explorer in the same state."""
    await _rest(explorer)
    explored = explorer.parts.explored
    given = Cache()
    session: Session = replace(explored.session, given=given)
    shown = _screen(explorer.app)
    fresh = await asyncio.create_task(_fresh(explorer, session))
    return _differences(shown, fresh)


async def _rest(explorer: Explorer) -> None:
    """Leave what lies over the main screen, end what is about to be said, and wait until everything rests."""
    await explorer.settled()
    for _ in range(20):
        if isinstance(explorer.app.screen, MainScreen):
            break
        explorer.app.screen.dismiss()
        await explorer.settled()
    main, parts = explorer.main, explorer.parts
    assert explorer.app.screen is main, f"{explorer.app.screen} cannot be left"
    for banner in [node for node in main.children if node.id is None and type(node).__name__ == "Banner"]:
        await banner.remove()
    explorer.app.clear_notifications()
    if parts.tour.stop is not None:
        parts.tour.leave()
    parts.counting.end()
    parts.presenter.lines.opening = False
    parts.presenter.focus(parts.explored.view.active)
    await explorer.settled()
    explorer.app.clear_notifications()
    parts.presenter.show_now()
    await explorer.settled()


async def _fresh(old: Explorer, session: Session) -> list[list[tuple[str, str]]]:
    """The screen of a new explorer of the same session, position, view and size, scrolled as the old one."""
    explored, size = old.parts.explored, old.app.size
    app = ExplorerApp(session, Preferences(theme=old.app.theme), at=explored.position, view=explored.view)
    async with app.run_test(size=(size.width, size.height), notifications=True) as pilot:
        new = Explorer(pilot, app)
        await new.until(lambda: len(app.screen_stack) > 1)
        await new.settled()
        new.parts.explored.view = explored.view
        new.parts.presenter.lines.opening = False
        new.parts.presenter.focus(explored.view.active)
        await new.settled()
        for before, after in _pairs(old, new):
            _stand_alike(before, after)
        await new.settled()
        for before, after in _pairs(old, new):
            after.scroll_to(*before.scroll_offset, animate=False, force=True)
        app.clear_notifications()
        new.parts.presenter.show_now()
        await new.settled()
        return _screen(app)


def _pairs(old: Explorer, new: Explorer) -> Iterator[tuple[Widget, Widget]]:
    """Widgets that scroll, of the one and of the other."""
    for before in old.main.walk_children(Widget):
        if before.id is not None and (isinstance(before, ScrollView | Input) or before.is_scrollable):
            parent = before.parent
            of = f"#{parent.id} > " if parent is not None and parent.id is not None else ""
            with suppress(NoMatches):
                yield before, new.main.query_one(f"{of}#{before.id}", Widget)


def _stand_alike(before: Widget, after: Widget) -> None:
    """Where a pane itself stands is not of the state: its scrolling, its cursor, and what is typed into its search."""
    if isinstance(before, Input) and isinstance(after, Input):
        after.value = before.value
    if isinstance(before, GridWidget) and isinstance(after, GridWidget) and before.at != after.at:
        after.put(before.at)


def _screen(app: ExplorerApp) -> list[list[tuple[str, str]]]:
    """Characters and styles of every line, joined as far as the style is the same."""
    lines = []
    for strip in app.screen._compositor.render_strips():
        line: list[tuple[str, str]] = []
        for text, style, _ in strip:
            said = f"{style.without_color} {_name(style.color)} on {_name(style.bgcolor)}" if style else ""
            if line and line[-1][1] == said:
                line[-1] = line[-1][0] + text, said
            else:
                line.append((text, said))
        lines.append(line)
    return lines


def _name(color: Color | None) -> str:
    return "none" if color is None else color.name


def _differences(shown: list[list[tuple[str, str]]], right: list[list[tuple[str, str]]]) -> list[str]:
    """The lines that differ, the one above the other."""
    told = []
    for number, (one, other) in enumerate(zip(shown, right, strict=True)):
        if one != other:
            texts = ["".join(text for text, _ in line) for line in (one, other)]
            if texts[0] != texts[1]:
                told += [f"  line {number} shows  {texts[0]}", f"  line {number} should  {texts[1]}"]
            else:
                told.append(f"  line {number} has other colours: {texts[0]}")
                told += [f"    {a!r} / {b!r}" for a, b in zip(one, other, strict=False) if a != b][:2]
    return ["the screen is not that of a new explorer:", *told[:MOST_TOLD]] if told else []


def shortest(outcome: Outcome, tries: int = 60) -> Outcome:
    """A shorter walk that fails too: halves, quarters … of the moves are left out as long as it fails."""
    best, size = outcome, max(len(outcome.moves) // 2, 1)
    while tries > 0:
        start = 1
        while start < len(best.moves) and tries > 0:
            fewer = best.moves[:start] + best.moves[start + size :]
            tries -= 1
            again = walk(outcome.model, outcome.seed, fewer, 1)
            if again.faults:
                best = again
            else:
                start += size
        if size == 1:
            break
        size = max(size // 2, 1)
    return best


# One of many, in a process of its own


def one(seed: int, model: str | None, moves: int, *, cut: bool) -> Outcome:
    """The walk of a seed; each model in turn, unless one is named."""
    name = model or [*MODELS][seed % len(MODELS)]
    outcome = walk(name, seed, moves_of(seed, moves))
    return shortest(outcome) if cut and outcome.faults else outcome


def plain() -> None:
    """A terminal with all colours, folders of the user that are empty, and few collections of garbage."""
    folder = tempfile.mkdtemp(prefix="walk")
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL_")]:
        del os.environ[name]
    homes = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    gc.set_threshold(50_000)  # every explorer leaves cycles: looking for them as often as usual takes a third
    os.environ.update(homes | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "HOME": folder})
