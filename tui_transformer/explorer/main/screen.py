"""The main screen: the stage, and every action that asks, changes or writes something."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from textual import on
from textual.widget import Widget

from tui_transformer.engine.edits import Edit
from tui_transformer.errors import InputError
from tui_transformer.explorer.main.panes.cell_lines import number
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.stage import Stage
from tui_transformer.explorer.main.tour import tour_of
from tui_transformer.explorer.shell.asking import AT_ONCE
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.state.comparison import GRADIENT, NOTHING
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.explorer.tools.opening import TOOLS
from tui_transformer.guide.texts import Stop, tour
from tui_transformer.report.comparison import TOLERANCE
from tui_transformer.text.vocabulary import built_in_vocabularies
from tui_transformer.views.step_view import Place, index_of, place_of

EXPORTED_AT_ONCE = 200_000
"""Cells of a view that are written before the next key; more are written in the background."""

ROW_LIMIT = 100_000
"""Cells of a row that are copied at most."""


class MainScreen(Stage):
    """Everything that a key can do."""

    tour_stops: tuple[Stop, ...] = ()
    tour_place = 0

    # Changes, each of which can be undone

    def change(self, session: Session, at: Position | None = None) -> None:
        """Explore something else, at a position if one is given; undo takes it back."""
        if at is not None:
            self.trail.append(self.position)
            self.position = at
        self.history.push(session)
        self.show_session()

    def action_undo(self) -> None:
        """Take the last change back."""
        self.show_session() if self.history.undo() else self.say("there is nothing to undo")

    def action_redo(self) -> None:
        """Make the change again."""
        self.show_session() if self.history.redo() else self.say("there is nothing to redo")

    def action_sentence(self) -> None:
        """Write another sentence."""
        session = self.session
        if not session.model.config.vocab_size:
            self.say("this model reads no sentence: edit Q, K and V with e")
            return
        value = session.text or session.encoding.text
        title = "Source sentence" if session.model.has_decoder else "Sentence"
        self._ask_sentence(title, value, session.with_text)

    def action_target(self) -> None:
        """Write another target for a decoder beside an encoder."""
        found = self.session.decoder_encoding
        if found is None:
            self.say("this model reads one sentence")
            return
        with_words = self.session.model.vocabulary is not None
        value = self.session.decoder_text if with_words else found.text
        self._ask_sentence(
            "Target, after the start token" if with_words else "Target", value, self.session.with_decoder_text
        )

    def _ask_sentence(self, title: str, value: str, changed_by: Callable[[str], Session]) -> None:
        """Ask for a text, and let every pane follow while it is typed."""
        session = self.session
        hint = "token IDs" if session.model.vocabulary is None else f"up to {session.model.config.max_length:,} tokens"
        position, trail = self.position, self.trail

        def check(text: str) -> None:
            self.history.current = session if text == value else changed_by(text)

        def show() -> None:
            self.position, self.trail = position, trail
            self.show_session()

        def preview(text: str) -> None:
            with suppress(InputError):
                check(text)
                show()

        def finish(text: str | None) -> None:
            changed, self.history.current = self.history.current, session
            if text is not None and changed is not session:
                self.history.push(changed)
            show()

        self.open(PromptScreen(title, value=value, hint=hint, check=check, preview=preview), finish)

    @on(SentencePane.Opened)
    def _sentence_clicked(self, event: SentencePane.Opened) -> None:
        self.action_target() if event.which else self.action_sentence()

    def action_vocabulary(self) -> None:
        """The vocabulary; from there, another one."""
        if self.session.model.vocabulary is None:
            self.say("this model has no vocabulary")
        elif self.position.stop != VOCABULARY:
            self.follow(self.position.at(VOCABULARY))
            self.focus_pane("matrix")
        else:
            self._choose_vocabulary()

    def _choose_vocabulary(self) -> None:
        session, chosen = self.session, list[Session]()

        def check(where: str) -> None:
            chosen[:] = [session.with_vocabulary(where.strip())]

        names = built_in_vocabularies()
        hint = f"a file, or {', '.join(names)}"
        path = session.model.vocabulary.path if session.model.vocabulary is not None else None
        self.open(
            PromptScreen("Vocabulary", value=str(path or ""), hint=hint, check=check, suggestions=names),
            lambda where: self.change(chosen[0]) if where is not None else None,
        )

    def action_edit_cell(self) -> None:
        """Set the cell under the cursor by hand."""
        scene, session = self.scene, self.session
        if scene is None or scene.view.integer or scene.view.name in session.trace.program.givens:
            self.say("there is no number to edit here")
            return
        name, place = scene.view.name, scene.place
        index = index_of(session.trace.program.axes(name), place)
        changed: list[Session] = []

        def check(text: str) -> None:
            value = _read_number(text, session.model.backend.dtype)
            changed[:] = [session.with_edits(Edit(name, index, value))]

        stored = repr(float(session.trace.window(name, tuple(range(i, i + 1) for i in index)).reshape(())))
        where = f"{name}[{', '.join(map(str, index))}]"
        self.open(
            PromptScreen(
                f"Set {where}", value=stored, hint="what depends on it is computed again; u takes it back", check=check
            ),
            lambda text: self.change(changed[0]) if text is not None else None,
        )

    # Gradients and comparisons

    def action_backward(self) -> None:
        """Walk backwards from the loss, or forwards again. Targets are asked for where none were set."""
        session = self.session
        if session.backward:
            self.change(session.with_beside(NOTHING))
        elif session.targets is None or not session.has_loss:
            self.action_open("targets")
        else:
            self.change(session.with_beside(GRADIENT))

    def show_session(self) -> None:
        """Show what is explored anew; where two traces are compared, compare all steps in the background."""
        super().show_session()
        session = self.session
        if session.beside.kind == "trace" and session.comparison is None:
            self.ask("compare", AT_ONCE + 1, lambda task: session.compare(task.report), lambda _: self._compared())

    def _compared(self) -> None:
        """Say how far the traces are apart."""
        self.show_position()

    def action_first_difference(self) -> None:
        """Go to the first step that differs, to the cell with the largest difference."""
        compared = self.session.comparison
        if self.session.beside.kind != "trace":
            self.say("nothing is compared: d compares")
        elif compared is None:
            self.say("the steps are being compared")
        elif compared.first is None:
            self.say(f"nothing differs: {len(compared.differences)} steps agree within {TOLERANCE:g}")
        else:
            found = compared.differences[compared.first]
            axes = self.session.trace.program.axes(compared.first)
            place = place_of(axes, found.index) if found.index else Place()
            self.follow(Position(compared.first, place))

    # Screens of their own

    def action_open(self, name: str) -> None:
        """Open the tool of this name."""
        TOOLS[name](self)

    def action_help(self) -> None:
        """The keys of the focused pane, and those of every pane."""
        from tui_transformer.explorer.shell.help import HelpScreen
        from tui_transformer.guide.texts import help_text

        topic = VOCABULARY if self.active == "matrix" and self.position.stop == VOCABULARY else self.active
        self.open(HelpScreen(f"{help_text(topic)}\n\n{help_text('general')}", "Help"))

    def visit(self, position: Position) -> None:
        """Show a cell in the matrix."""
        self.trail.clear()
        self.go(position)
        self.focus_pane("matrix")

    def banner(self, line: Widget) -> None:
        """Show a line above everything, unless one of its kind is there."""
        if not self.query(type(line)):
            self.mount(line)

    # Taking values out

    def action_export(self) -> None:
        """Write what is shown to a file."""
        if self.scene is None:
            self.say("this stop is words: go to a step to export its numbers")
            return
        from tui_transformer.report.export import SUFFIXES, export

        view = self.scene.drawn
        head = f".head{view.head}" if view.heads > 1 else ""
        hint = f"the name decides the format: {', '.join(SUFFIXES)}"
        large = view.rows.size * view.columns.size > EXPORTED_AT_ONCE
        check = check_name if large else lambda name: export(view, check_name(name))

        def finish(name: str | None) -> None:
            if name is not None and large:
                self.ask("export", AT_ONCE + 1, lambda _: export(view, check_name(name)), lambda _: written(name))
            elif name is not None:
                written(name)

        def written(name: str) -> None:
            self.say(f"written: {name}")

        prompt = PromptScreen("Export to", value=f"{self._what()}{view.name}{head}.csv", hint=hint, check=check)
        self.open(prompt, finish)

    def _what(self) -> str:
        """What is drawn alone in place of a step's values, as the name of a file says it."""
        alone = self.scene is not None and self.scene.alone is not None
        return {"gradient": "gradient.", "trace": f"{self.shown}."}.get(self.session.beside.kind, "") if alone else ""

    def action_copy_cell(self) -> None:
        """The value of the cell to the clipboard."""
        if self.scene is not None and self.scene.working is not None:
            self._copy(repr(self.scene.working.stored), f"copied {number(self.scene.working.stored)}")

    def action_copy_row(self) -> None:
        """The row to the clipboard, separated by tabs."""
        if self.scene is None:
            return
        view, row = self.scene.drawn, self.scene.place.row
        width = min(view.columns.size, ROW_LIMIT)
        values = view.window(range(row, row + 1), range(width))[0]
        self._copy("\t".join(map(repr, values.tolist())), f"copied {width:,} numbers")

    def _copy(self, text: str, message: str) -> None:
        self.app.copy_to_clipboard(text)
        self.say(message)

    # Tour

    def action_tour(self) -> None:
        """Begin the tour of this model, backward that of gradients, or leave it."""
        if self.tour_stops:
            self._leave_tour()
            return
        name = tour_of(self.session)
        if name is None:
            self.say(f"there is no tour of {self.session.model.name}: --model question has one")
            return
        self.tour_stops, self.tour_place = tour(name), 0
        self.mount(TourPanel(id="tour"))
        self.call_after_refresh(self._show_tour_stop)

    def _show_tour_stop(self) -> None:
        """Put the screen where the stop says, and show its text."""
        stop = self.tour_stops[self.tour_place]
        try:
            self._set_scene_for(stop)
        except InputError as error:
            self.say(str(error), severity="error")
        panel = self.query_one(TourPanel)
        panel.show(stop, self.tour_place + 1, len(self.tour_stops))
        panel.focus()

    def _set_scene_for(self, stop: Stop) -> None:
        session = self.session.for_tour(stop)
        if session is not self.session:
            self.change(session)
        names = [name for name in (*session.stops, *session.trace.program.weights) if fnmatchcase(name, stop.step)]
        place = Place(stop.head or 0, stop.row or 0, stop.column or 0)
        self.go(Position(names[0] if names else session.stops[0], place))
        if self.has_class("-wide"):
            return
        self.focus_pane({"explain": "cell", "chart": "chart"}.get(stop.action or "", "matrix"))

    @on(TourPanel.Next)
    def _tour_next(self) -> None:
        self._tour_by(1)

    @on(TourPanel.Back)
    def _tour_back(self) -> None:
        self._tour_by(-1)

    def _tour_by(self, direction: int) -> None:
        place = self.tour_place + direction
        if place >= len(self.tour_stops):
            self._leave_tour()
        elif place >= 0:
            self.tour_place = place
            self._show_tour_stop()

    @on(TourPanel.Left)
    def _leave_tour(self) -> None:
        self.tour_stops = ()
        for panel in self.query(TourPanel):
            panel.remove()
        self.focus_pane("matrix")


def check_name(name: str) -> Path:
    """The path that a person names for an export; InputError where it can be none."""
    from tui_transformer.report.export import check_suffix

    if not name.strip():
        raise InputError("give the file a name")
    with suppress(RuntimeError, ValueError):
        name = str(Path(name.strip()).expanduser())
    path = Path(name.strip())
    check_suffix(path)
    return path


def _read_number(text: str, dtype: np.dtype[Any]) -> float:
    """A number as a person writes it, finite in the model's precision."""
    try:
        value = float(text.strip().replace("−", "-").replace(",", "."))
    except ValueError as error:
        raise InputError(f"{text!r} is not a number") from error
    if not abs(value) <= float(np.finfo(dtype).max):
        raise InputError(f"{text!r} does not fit into {dtype}: the cell has to stay finite")
    return value
