"""Start the explorer from the command line's options."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tui_transformer.engine.pool import share_one_heap
from tui_transformer.engine.program import Program
from tui_transformer.errors import UsageError
from tui_transformer.explorer.first_frame import FirstFrame
from tui_transformer.explorer.widgets import chart_drawing
from tui_transformer.files import home_of, is_file
from tui_transformer.gate import confine
from tui_transformer.guide.lecture import Lecture, with_notes
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.records import replace
from tui_transformer.session.answer_summary import telling
from tui_transformer.session.open_session import open_session
from tui_transformer.session.overlay import of_dump
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.tour_stop import suitable
from tui_transformer.session.view_state import ViewState
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.explorer.app import ExplorerApp
    from tui_transformer.explorer.shell.base import Port
    from tui_transformer.survey.results import Results

os.environ.setdefault("TEXTUAL_FPS", "250")  # a key waits for the next frame: at 60 a second up to 17 ms

__all__ = ["chart_drawing", "check_theme", "open_session", "run"]

_NAMES = re.compile(r"[^\s'\"()*=:]+")
"""What may be the name of a file in an edit."""


class Start(NamedTuple):
    """The session at first, the position, a word on both, and the tour that begins."""

    session: Session
    at: Position | None
    says: str
    tour: Lecture | None


def run(
    options: ModelOptions,
    reading: Reading | None = None,
    theme: str | None = None,
    *,
    dump: str | None = None,
    plain: bool = False,
    tour: str | None = None,
    notes: Path | None = None,
    says: str = "",
    stop: Callable[[Program], str | None] = lambda _: None,
    survey: Results | None = None,
    edits: Sequence[str] = (),
    features: Path | None = None,
    at: str | None = None,
) -> int:
    """Explore a model until the user leaves; with a dump beside it, from the first cell of that which is wrong.

    Without a screen (`plain`), what is typed is answered in sentences.

    Args:
        options: The model.
        reading: What it reads; a sample where neither a sentence nor token IDs are given.
        theme: Of the colours, in place of the user's.
        dump: The path of a dump.
        plain: Without a screen.
        tour: The tour to begin with: a name, or the path of a lecture.
        notes: Where the notes of its stops are written, for who gives it.
        says: A word that is said first.
        stop: The step to begin at; None for the first, or that of the dump.
        survey: The results of a survey, which are shown first.
        edits: Steps and weights that are changed at once, as they are written; undo takes them back.
        features: The path of a dictionary whose features are shown first.
        at: The step that it reads; by default that of its hook.

    Returns:
        The exit code.

    Raises:
        InputError: The model or the sentence cannot be used; nothing was shown.
    """
    reading = reading or Reading()

    def begin() -> Start:
        session = open_session(options, **vars(reading))
        if features is not None:
            from tui_transformer.features.dictionary import Features

            with_features = session.model.with_features(Features.load(features), at)
            session = session.with_model(with_features, is_the_same=True)
        session = _edited(session, edits)
        first = stop(session.trace.program)
        said = visible("; ".join(filter(None, (says, *session.model.remarks))))
        start = None if first is None else Position(first)
        if dump is not None:
            dumped = of_dump(session, dump)
            session, start, said = session.with_overlay(dumped.overlay), dumped.at, visible(dumped.says)
        told = None if tour is None else suitable(session, tour)
        if told is not None:
            from tui_transformer.explorer.shell.keymap import with_keys

            with_keys(told, {})  # a key that it cannot name is said before anything is shown
            told = told if notes is None else with_notes(told, notes)
        return Start(session, start, said, told)

    if plain:
        from tui_transformer.explorer.plain.run import run_plain

        start = begin()
        if start.says:
            print(f"{start.says}.")  # noqa: T201 - the first sentence of what is told
        return run_plain(start.session, start.at, start.tour)
    in_browser = "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")
    with nullcontext() if in_browser else FirstFrame(options.model, reading.text, theme):
        app = _explorer(begin(), theme, survey, in_browser=in_browser, tool="features" * (features is not None))
    app.run()
    if app.failure is not None:
        print(f"tui-transformer: {app.failure}", file=sys.stderr)  # noqa: T201 - the terminal is restored by now
        return 1
    return app.return_code or 0


def check_theme(theme: str) -> None:
    """Raise UsageError where no theme is called so."""
    from textual.theme import BUILTIN_THEMES

    from tui_transformer.explorer.shell.themes import SHORT, theme_names

    names = theme_names(BUILTIN_THEMES)
    if theme not in (*names, *SHORT.values()):
        raise UsageError(f"no theme is called {theme[:40]!r}: use {', '.join(names)}")


def _edited(session: Session, edits: Sequence[str]) -> Session:
    if not edits:
        return session
    from tui_transformer.session.edit_format import changes

    try:
        return session.with_edits(*changes(session.model, session.trace.program, edits))
    except UsageError as error:
        raise UsageError(f"--edit: {error}") from error


def _given(start: Start) -> Iterator[Path]:
    """What is served, which its visitors may read: the model, its words, the tour and its arrays."""
    model, words = start.session.model, start.session.model.vocabulary
    yield from filter(None, (model.folder, words and words.path, start.tour and start.tour.path))
    for text in (text for stop in (start.tour.stops if start.tour else ()) for text in stop.edits):
        yield from filter(is_file, map(Path, _NAMES.findall(text)))


def _explorer(
    start: Start, theme: str | None, survey: Results | None, *, in_browser: bool, tool: str = ""
) -> ExplorerApp:
    """The explorer, ready to run; with a survey or a tool in front."""
    for name in () if in_browser else ("COLUMNS", "LINES"):  # a browser says its size so
        os.environ.pop(name, None)  # where a shell exports them, Textual would not follow a resize
    from tui_transformer.explorer.app import ExplorerApp
    from tui_transformer.explorer.shell.preferences import preferences_path, read_preferences
    from tui_transformer.explorer.tools.opening import open_tool

    if in_browser:
        confine(_given(start), [home_of(os.environ.get("CUPY_CACHE_DIR") or "~/.cupy/kernel_cache")])
    preferences = read_preferences(preferences_path())
    opens: Callable[[Port], None] | None = partial(open_tool, tool) if tool else None
    if survey is not None:
        from tui_transformer.explorer.tools.survey import open_results

        opens = partial(open_results, results=survey)
    chosen = replace(preferences, theme=theme or preferences.theme)
    share_one_heap()
    begun = start.at or (telling(start.session) if start.tour is None else None)
    moves = chosen.motion and os.environ.get("TEXTUAL_ANIMATIONS") != "none"
    view = ViewState(whole=None if chosen.whole and start.at is None else False, motion=moves)
    return ExplorerApp(start.session, chosen, begun, start.says, start.tour, opens, view=view)
