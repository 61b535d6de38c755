"""Taking out what is shown: values to a file or the clipboard, the place to a lecture, every screen to a recording."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from textual.screen import Screen

from tui_transformer.engine.gradient_explanation import GRADIENT, gradient_formula
from tui_transformer.engine.names import DIFFERENCE
from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.compositor import strips_of
from tui_transformer.explorer.guard.event_queue import later
from tui_transformer.explorer.main.panes.lines import DIGITS, step_words, stop_title
from tui_transformer.explorer.main.tour import Tour
from tui_transformer.explorer.recorded import Packed, Shot, form_of, packed, unpacked
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.prompt import PromptScreen, asking
from tui_transformer.explorer.shell.user_files import path_of
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.features.steps import PlacedFeatures
from tui_transformer.files import is_there
from tui_transformer.guide.lecture import check_name as check_lecture_name
from tui_transformer.guide.lecture import read_lecture, with_stop
from tui_transformer.guide.texts import Stop
from tui_transformer.records import replace
from tui_transformer.session.edit_format import kept
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS, Session
from tui_transformer.session.step_scene import StepScene
from tui_transformer.session.tour_stop import check_stop
from tui_transformer.session.view_state import NOTHING
from tui_transformer.text.display import visible
from tui_transformer.views.charts import Chart
from tui_transformer.views.view import View


class Export:
    """Writes and copies what is shown."""

    def __init__(self, explored: Exploration, port: Port, tour: Tour, screen: Screen[Any]) -> None:
        self._explored, self._port, self._tour, self._screen = explored, port, tour, screen
        self._lecture = "lecture.toml"

    def to_file(self) -> None:
        """Ask for a name, and write what is drawn: the chart, where that has the keys."""
        drawn = self._explored.scene
        if drawn is not None and drawn.arrangement.active == "chart" and drawn.chart is not None:
            self._chart_to_file(drawn.chart)
            return
        scene = self._explored.step
        if scene is None:
            self._port.say("this stop is words: go to a step to export its numbers")
            return
        from tui_transformer.report.export import SUFFIXES, export

        view, what = _named(self._explored.session, scene)
        head = f".head{view.head}" if view.heads > 1 else ""
        large = view.rows.size * view.columns.size > 200_000  # is not written before the next key

        def finish(name: str | None) -> None:
            port = self._port
            if name is not None and large:
                port.ask("export", lambda _: export(view, check_name(name)), lambda _: port.written(name))
            elif name is not None:
                port.written(name)

        prompt = PromptScreen(
            "Export to",
            value=f"{what}{scene.view.name}{head}.csv",
            hint=f"the name decides the format: {', '.join(SUFFIXES)}",
            check=check_name if large else lambda name: export(view, check_name(name)),
            replaces=True,
        )
        self._port.open(prompt, finish)

    def _chart_to_file(self, chart: Chart) -> None:
        from tui_transformer.explorer.widgets.chart_drawing import CHART_SUFFIXES, export_chart

        def write(name: str) -> str:
            export_chart(chart, path_of(name))
            return name

        value = f"{self._explored.position.stop}.chart.svg"
        hint = f"the name decides the format: {', '.join(CHART_SUFFIXES)}"
        prompt = asking("Export the chart to", write, self._port.written, value=value, hint=hint, replaces=True)
        self._port.open(*prompt)

    def copy(self, what: Literal["cell", "row"]) -> None:
        """Copy the value of the cell, or the row, separated by tabs, to the clipboard."""
        scene = self._explored.step
        if scene is None:
            return
        if what == "row":
            width = min(scene.drawn.columns.size, 100_000)  # cells of a row that are copied
            values = scene.drawn.window(range(scene.place.row, scene.place.row + 1), range(width))[0]
            text, message = "\t".join(map(repr, values.tolist())), f"copied {width:,} numbers"
        elif scene.working is not None:
            text, message = repr(scene.working.stored), f"copied {spoken(scene.working.stored, DIGITS)}"
        else:
            return
        self._screen.app.copy_to_clipboard(text)
        self._port.say(message)

    def bookmark(self) -> None:
        """Ask for a lecture and a line of notes, and append the place; the lecture that goes on is suggested."""
        if self._explored.position.stop == LOSS:
            self._port.say("a lecture leads forward, where no loss is: go to a step to bookmark it")
            return

        def checked(name: str) -> str:
            path = path_of(name)
            check_lecture_name(path)
            if is_there(path):
                read_lecture(path)
            return name

        value = str(self._tour.file or self._lecture)
        hint = "a lecture, to which it is appended: --tour FILE opens with it"
        prompt = asking("Bookmark this place in", checked, self._ask_notes, value=value, hint=hint, replaces=True)
        self._port.open(*prompt)

    def _ask_notes(self, name: str) -> None:
        session, position = self._explored.session, self._explored.position

        def write(notes: str) -> None:
            stop = stop_at(session, position, notes.strip())
            alone = (session.with_breaks() if session.breaks else session).unedited.with_overlay(NOTHING)
            try:
                check_stop(alone, stop, "the")
            except InputError as error:  # its place, or its edits, are of padding or of a second sentence
                raise InputError(f"not bookmarked, as a lecture reads the sentence alone: {error}") from error
            count = with_stop(path_of(name), stop)
            self._lecture = name
            said = (f"stop {count} of {name}: {stop_title(session, position.stop)}", *_left_out(session, stop))
            self._port.written(name, "; ".join(said))

        self._port.open(*asking("Notes for who gives the lecture", str, write, hint="a line, or nothing"))


def _named(session: Session, scene: StepScene) -> tuple[View, str]:
    """What is drawn, and the begin of its file: by both no gradient or difference is taken for the step."""
    view = scene.drawn
    if scene.alone is None:
        return view, ""
    if session.backward:
        formula = gradient_formula(session.trace, session.gradients, view.name)
        return replace(view, name=f"{GRADIENT}{view.name}", formula=formula), "gradient."
    if scene.shown == "difference":
        formula = f"this less {visible(session.overlay.label)}"
        return replace(view, name=f"{DIFFERENCE}{view.name}", formula=formula), "difference."
    return view, "beside."


def check_name(name: str) -> Path:
    """The path that a person names for an export; InputError where it can be none."""
    from tui_transformer.report.export import check_suffix

    path = path_of(name)
    check_suffix(path)
    return path


def stop_at(session: Session, position: Position, notes: str = "") -> Stop:
    """The stop of a lecture that leads to a position."""
    title, place = stop_title(session, position.stop), position.place
    return Stop(
        name=title,
        title=title,
        text=step_words(session, position.stop).what or title,
        step=position.stop,
        head=place.head,
        row=place.row,
        column=place.column,
        sentence=_sentence(session),
        target=session.decoder_text or None,
        edits=tuple(text for text in kept(session) if text is not None),
        breaks=session.breaks,
        features=_has_own_features(session),
        notes=notes,
    )


def _sentence(session: Session) -> str | None:
    """The sentence as a lecture has it: of token IDs the text that is read as them, None where there is none."""
    if session.ids is None:
        return session.text or None
    text = session.encoding.text
    try:
        return text if session.model.encode(text).ids == session.ids else None
    except InputError:
        return None


def _has_own_features(session: Session) -> bool:
    if not session.model.added:
        return False
    from tui_transformer.features.dictionary import own_dictionary

    placed = [each.features.path for each in session.model.added if isinstance(each, PlacedFeatures)]
    return own_dictionary(session.model.folder) in placed


def _left_out(session: Session, stop: Stop) -> Iterator[str]:
    """What of a session its stop does not have."""
    if lost := kept(session).count(None):
        yield f"{lost} edit{'s' * (lost > 1)} of arrays or sentences left out"
    if session.ids is not None and stop.sentence is None:
        yield "the token IDs left out: no text is read as them"
    if session.decoder_ids is not None:
        yield "the decoder's token IDs left out: open the lecture with --decoder-ids"
    if session.backward:
        yield "the gradients left out: a lecture leads forward"
    if session.framing.bracket:
        yield "the begin and end words left out: rows of the sentence alone are counted"
    if session.pair is not None and stop.sentence is not None:
        yield "the second sentence left out: rows of the sentence alone are counted"
    if session.mask_read is not None and stop.sentence is not None:
        yield "the mask left out: rows of the sentence alone are counted"


class LiveRecording:
    """Keeps what the screen shows between two presses of a key, and writes it."""

    def __init__(self, port: Port, screen: Screen[Any]) -> None:
        self._port, self._screen = port, screen
        self._lines: dict[Packed, int] = {}
        self._screens: list[tuple[float, tuple[int, ...]]] = []
        self._goes_on = False

    def begin_or_end(self) -> None:
        """Begin; or ask for the file, and go on where none is given: nothing is lost by a slip."""
        if self._goes_on:
            self._ask()
            return
        self._lines, self._screens, self._goes_on = {}, [], True
        self._port.say(self._port.hint("everything that is shown is recorded: {record} ends it and asks for a file"))
        self._look()

    def _look(self) -> None:
        """Keep the screen where it is another than before, as often as that may be."""
        if not self._goes_on or not self._screen.app.screen_stack:  # the program ends
            return
        lines = (packed(strip) for strip in strips_of(self._screen.app))
        numbers = tuple(self._lines.setdefault(line, len(self._lines)) for line in lines)
        if numbers and (not self._screens or numbers != self._screens[-1][1]):
            self._screens.append((time.monotonic(), numbers))
        if len(self._screens) < 1_000 and len(self._lines) < 20_000:  # of lines that differ, about 30 MB
            later(self._screen.app, 0.1, self._look)
        else:
            many = f"{len(self._screens):,} screens are recorded, and no more"
            self._port.say(self._port.hint(f"{many}: {{record}} asks for a file"))

    def _ask(self) -> None:
        shown, lines = list(self._screens), list(self._lines)
        if not shown:  # the terminal had no room for a line
            self._port.say("nothing was shown yet that could be written")
            return
        ends = [*(begun for begun, _ in shown[1:]), time.monotonic()]

        def shots() -> Iterator[Shot]:
            for number, ((begun, numbers), until) in enumerate(zip(shown, ends, strict=True), 1):
                strips = [unpacked(lines[each]) for each in numbers]
                yield Shot(number, "screen", f"screen {number} of {len(shown)}", until - begun, strips, len(shown))

        def finish(name: str | None) -> None:
            if name is None:
                self._port.say(self._port.hint("the recording goes on: {record} asks for a file"))
                return
            self._write(path_of(name), shots())

        names = [f"walk-{number:02}.html" for number in range(1, 1_000)]
        prompt = PromptScreen(
            "Write the recording to",
            value=next((name for name in names if not is_there(path_of(name))), names[-1]),
            hint=f"{len(shown)} screens, as .cast, .gif, .png or .html, or into a folder",
            check=lambda name: form_of(path_of(name), "", lambda _: None),
            replaces=True,
        )
        self._port.open(prompt, finish)

    def _write(self, path: Path, shots: Iterator[Shot]) -> None:
        """Write the file on the worker: a moving picture takes a while to draw."""
        title = f"{self._port.session.model.name}: {visible(self._port.session.text)}"

        def work(task: Task) -> str:
            try:
                form = form_of(path, title, lambda _: None)
                for shot in shots:
                    task.report(shot.title)
                    form.add(shot)
                form.finish()
            except (InputError, OSError) as error:
                return f"not written, and the recording goes on: {error}"
            return ""

        def done(problem: str) -> None:
            if problem:
                self._port.say(problem)
                return
            self._goes_on = False
            self._port.written(str(path))

        self._port.ask("record", work, done)
