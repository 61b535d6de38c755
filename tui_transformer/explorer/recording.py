"""Every stop of a tour or lecture as a picture: SVG, and PNG where the library for it is installed."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.app import ScreenStackError
from textual.pilot import Pilot

from tui_transformer.errors import InputError
from tui_transformer.explorer.app import ExplorerApp
from tui_transformer.explorer.main.screen import MainScreen
from tui_transformer.explorer.shell.keymap import with_keys
from tui_transformer.explorer.shell.preferences import Preferences
from tui_transformer.files import write_whole
from tui_transformer.guide.lecture import Lecture
from tui_transformer.session.session import Session

FONT = "DejaVu Sans Mono"
SETTLED = 0.15
"""Seconds after which nothing moves: heads and chart follow the cell after a moment."""

PATIENCE = 600.0
"""Seconds that a stop may take."""

Picture = Callable[[int, str, str], None]
"""Takes the number of a stop, from 1, its name and its picture as SVG."""


def record(session: Session, told: Lecture, size: tuple[int, int], theme: str | None, take: Picture) -> int:
    """Lead through a tour without a terminal, and take a picture of every stop.

    Returns:
        The exit code: not 0 where a signal ended it before the last stop.

    Raises:
        InputError: A stop could not be shown.
    """
    stops = (replace(stop, predict=None) for stop in told.stops)  # nobody is there to answer
    told = with_keys(replace(told, stops=tuple(stops)), {})
    app = ExplorerApp(session, Preferences(theme), told=told)

    async def lead(pilot: Pilot[Any]) -> None:
        main = next(screen for screen in app.screen_stack if isinstance(screen, MainScreen))
        tour = main.parts.tour
        for number, stop in enumerate(told.stops, start=1):
            await _until(app, pilot, lambda number=number: tour.stop is not None and tour.stop[0] == number)  # type: ignore[misc]
            if app.failure is not None or not app.is_running:
                return
            take(number, stop.name, self_contained(app.export_screenshot(title=stop.title)))
            tour.go(1)
        app.exit()

    problem: list[InputError] = []

    async def led(pilot: Pilot[Any]) -> None:
        # without a terminal ctrl+c is a signal, which would leave what is waited for here waiting
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, app.exit, None, 128 + signal.SIGINT)
        try:
            with suppress(ScreenStackError):  # a signal ends it while something is waited for
                await lead(pilot)
        except InputError as error:
            problem.append(error)
            app.exit()

    app.run(headless=True, size=size, auto_pilot=led)
    if problem:
        raise problem[0]
    if app.failure is not None:
        raise InputError(app.failure)
    return app.return_code or 0


async def _until(app: ExplorerApp, pilot: Pilot[Any], arrived: Callable[[], bool]) -> None:
    """Wait until a stop is there, and everything that it shows."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    await pilot.pause(SETTLED)
    while app.failure is None and app.is_running and not (arrived() and app.settled):
        if loop.time() > end:
            raise InputError(f"a stop was not there after {PATIENCE:.0f} seconds")
        await pilot.pause(SETTLED)
    await pilot.pause(SETTLED)


def self_contained(svg: str) -> str:
    """A picture without the web fonts and the addresses that the exporter writes into it."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace", f"font-family: '{FONT}', Menlo, monospace")


def file_name(number: int, name: str) -> str:
    """`03-softmax`: in order, of letters, digits and dashes."""
    return f"{number:02}-{re.sub(r'[^A-Za-z0-9_]+', '-', name).strip('-')[:60] or 'stop'}"


def write_picture(path: Path, svg: str, png: Callable[[str], bytes] | None) -> None:
    """Write PATH.svg, and PATH.png where it can be drawn."""
    write_whole(path.with_name(f"{path.name}.svg"), svg.encode("utf-8", errors="replace"))
    if png is not None:
        write_whole(path.with_name(f"{path.name}.png"), png(svg))


def png_drawing() -> Callable[[str], bytes] | None:
    """Function that makes a PNG of an SVG; None where it is not installed."""
    try:
        import resvg_py
    except ImportError:
        return None
    return lambda svg: bytes(resvg_py.svg_to_bytes(svg_string=svg, monospace_family=FONT))
