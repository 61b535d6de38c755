"""An explorer that is led without a terminal, through the stops of a tour or by keys, and what it shows at each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

from textual.app import ScreenStackError
from textual.pilot import Pilot
from textual.strip import Strip

from tui_transformer.errors import InputError, UsageError
from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.guard.compositor import strips_of
from tui_transformer.explorer.main.motion import SECONDS, leads_on, moment, way_to
from tui_transformer.explorer.main.panes.matrix import MatrixPair
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.plain.keys import key_name
from tui_transformer.explorer.recorded import Shot
from tui_transformer.explorer.shell.keymap import with_keys
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.explorer.shell.themes import DARK, LIGHT
from tui_transformer.guide.lecture import Lecture
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import telling
from tui_transformer.session.scene import Scene
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState

SETTLED = 0.02
"""Seconds between two looks at whether all is there that was asked for."""

PATIENCE = 600.0
"""Seconds that a stop may take."""

BEFORE_KEYS = 1.5
AFTER_KEY, AFTER_LETTER = 1.0, 0.12
"""Seconds for which a screen is shown: the first, one after a key, and one in the middle of a text."""

MOMENTS = 6
"""Screens of a step on its way to its values."""

READING, PER_WORD = 2.0, 0.25
"""Seconds for a stop, and for every word of its text."""

NAMED = {
    **{each: each for each in ("space", "enter", "escape", "tab", "backspace", "up", "down", "left", "right")},
    **{each: each for each in ("home", "end", "pageup", "pagedown", "delete", "shift+tab")},
    "esc": "escape",
    "return": "enter",
}
"""Keys by name, as hands and Textual call them; besides, any character is a key."""


Take = Callable[[Shot], None]


@dataclass(frozen=True)
class Press:
    """A key that is pressed, or a text that is typed."""

    key: str = ""
    text: str = ""


def parse_keys(keys: str) -> tuple[Press, ...]:
    """Keys as they are written in one text, with blanks between: `space space ] enter "a text" ctrl+p`.

    Raises:
        UsageError: A word is no key, or there is none.
    """
    presses = []
    for match in re.finditer(r'"([^"]*)"|(\S+)', keys):
        if match[1] is not None:
            presses.append(Press(text=match[1]))
            continue
        key = NAMED.get(match[2].lower(), match[2])
        if len(key) > 1 and key not in NAMED and not re.fullmatch(r"(ctrl|shift|alt)\+\S|f([1-9]|1[0-2])", key):
            raise UsageError(
                f"--keys: {key[:40]!r} is no key: write characters, names such as {', '.join(list(NAMED)[:5])}, "
                'ctrl+p, or a text in quotes, as "the cat"'
            )
        presses.append(Press(key=key))
    if not presses:
        raise UsageError('--keys: name at least one key, as "space space enter"')
    return tuple(presses)


def record_tour(
    session: Session,
    told: Lecture,
    size: tuple[int, int],
    theme: str | None,
    take: Take,
    *,
    moves: bool = False,
    both: bool = False,
) -> int:
    """Lead through a tour, and take every stop; where it `moves`, a step that leads on also on its way to its values.

    With `both`, each is taken in the dark theme and in the light one.

    Returns:
        The exit code: not 0 where a signal ended it before the last stop.

    Raises:
        InputError: A stop could not be shown.
    """
    stops = tuple(replace(stop, predict=None) for stop in told.stops)  # nobody is there to answer
    told = with_keys(replace(told, stops=stops), {})
    app = ExplorerApp(session, Preferences(theme), told=told, view=ViewState(motion=moves))

    async def stops_of(pilot: Pilot[Any]) -> AsyncIterator[tuple[str, str, float]]:
        tour, before = _main(app).parts.tour, None
        for number, stop in enumerate(told.stops, start=1):
            await _until(app, pilot, lambda number=number: tour.stop is not None and tour.stop[0] == number)  # type: ignore[misc]
            async for shown in _moments(app, pilot, before):
                yield shown
            before = _main(app).parts.explored.scene
            yield stop.name, stop.title, READING + PER_WORD * len(stop.text.split())
            tour.go(1)

    return _record(app, size, stops_of, take, len(stops), both=both)


def record_keys(
    session: Session,
    keys: Sequence[Press],
    size: tuple[int, int],
    theme: str | None,
    take: Take,
    *,
    moves: bool = False,
    both: bool = False,
) -> int:
    """Press keys, and take the screen at first and after each; what is returned and raised is as of a tour."""
    app = ExplorerApp(session, Preferences(theme), telling(session), view=ViewState(motion=moves))

    async def screens(pilot: Pilot[Any]) -> AsyncIterator[tuple[str, str, float]]:
        await _until(app, pilot)
        yield "start", session.model.name, BEFORE_KEYS
        for press in keys:
            for letter in press.text:
                await pilot.press("space" if letter == " " else letter)
                await _until(app, pilot)
                yield key_name(letter), f"types {press.text}", AFTER_LETTER
            if press.key:
                before = _main(app).parts.explored.scene
                await pilot.press(press.key)
                await _until(app, pilot)
                async for shown in _moments(app, pilot, before):
                    yield shown
                yield key_name(press.key), f"after {press.key}", AFTER_KEY

    return _record(app, size, screens, take, 1 + sum(len(press.text) or 1 for press in keys), both=both)


async def _moments(app: ExplorerApp, pilot: Pilot[Any], before: Scene | None) -> AsyncIterator[tuple[str, str, float]]:
    """The way to a step that leads on from the scene before, where it is shown; in the end it is as it was."""
    screen = app.screen
    made = screen.parts.explored.scene if isinstance(screen, MainScreen) else None
    if before is None or made is None or not made.view.motion or not leads_on(before, made):
        return
    pair = screen.query_one(MatrixPair)
    flow = way_to(pair, made)
    if flow is None:
        return
    for number in range(MOMENTS):
        pair.show_scene(moment(made, flow, number / MOMENTS))
        await pilot.pause()
        yield "moment", made.position.stop, SECONDS / MOMENTS
    pair.show_scene(made)
    await pilot.pause()


Screens = Callable[[Pilot[Any]], AsyncIterator[tuple[str, str, float]]]
"""Leads from screen to screen: name, title and seconds of each."""


def _record(
    app: ExplorerApp, size: tuple[int, int], screens: Screens, take: Take, total: int, *, both: bool = False
) -> int:
    problem: list[InputError] = []

    async def lead(pilot: Pilot[Any]) -> None:
        number = 0
        try:
            with suppress(ScreenStackError):  # a signal ends it while something is waited for
                async for name, title, seconds in screens(pilot):
                    if app.failure is not None or not app.is_running:
                        return
                    number += 1
                    strips = strips_of(app)
                    take(Shot(number, name, title, seconds, strips, total, await _in_light(app, pilot) if both else ()))
                app.exit()
        except InputError as error:
            problem.append(error)
            app.exit()

    app.run(headless=True, size=size, auto_pilot=lead)
    if problem:
        raise problem[0]
    if app.failure is not None:
        raise InputError(app.failure)
    return app.return_code or 0


async def _in_light(app: ExplorerApp, pilot: Pilot[Any]) -> list[Strip]:
    """What is shown, in the light theme; in the dark one where keys made it light."""
    own = app.theme
    app.theme = DARK.name if own == LIGHT.name else LIGHT.name
    await _until(app, pilot)
    strips = strips_of(app)
    app.theme = own
    await _until(app, pilot)
    return strips


def _main(app: ExplorerApp) -> MainScreen:
    return next(screen for screen in app.screen_stack if isinstance(screen, MainScreen))


async def _until(app: ExplorerApp, pilot: Pilot[Any], arrived: Callable[[], bool] = lambda: True) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    await pilot.pause(SETTLED)
    while app.failure is None and app.is_running and not (arrived() and app.settled):
        if loop.time() > end:
            raise InputError(f"a screen was not there after {PATIENCE:.0f} seconds")
        await pilot.pause(SETTLED)
    await pilot.pause()
