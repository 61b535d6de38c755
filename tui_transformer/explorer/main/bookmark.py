"""Bookmarks: the current place as a stop of a lecture, appended to its file."""

from __future__ import annotations

from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.export import path_of
from tui_transformer.explorer.main.panes.texts import step_words, stop_title
from tui_transformer.explorer.main.tour import Tour
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.state.kept_edits import as_written
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session
from tui_transformer.files import is_there
from tui_transformer.guide.lecture import check_name, read_lecture, with_stop
from tui_transformer.guide.texts import Stop

FILE = "lecture.toml"
"""Where the first bookmark goes, unless another name is given."""


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
        sentence=session.text or None,
        target=session.decoder_text or None,
        edits=tuple(text for text in kept(session) if text is not None),
        breaks=session.breaks,
        notes=notes,
    )


def kept(session: Session) -> list[str | None]:
    """The edits of a session as they are written; None for those that cannot be."""
    return [as_written(change, session.base.program) for change in session.edits]


class Bookmark:
    """Asks for a file and a line of notes, and appends the place."""

    def __init__(self, explored: Exploration, port: Port, tour: Tour) -> None:
        """Keep places of what is explored; in a lecture from a file, that file is suggested."""
        self._explored, self._port, self._tour = explored, port, tour
        self._file = FILE

    def keep(self) -> None:
        """Ask for the file."""
        self._port.open(
            PromptScreen(
                "Bookmark this place in",
                value=str(self._tour.file or self._file),
                hint="a lecture, to which it is appended: --tour FILE opens with it",
                check=_check,
                replaces=True,
            ),
            self._ask_notes,
        )

    def _ask_notes(self, name: str | None) -> None:
        if name is None:
            return
        session, position = self._explored.session, self._explored.position

        def write(notes: str | None) -> None:
            if notes is not None:
                count = with_stop(path_of(name), stop_at(session, position, notes.strip()))
                self._file = name
                lost = kept(session).count(None)
                left_out = f"; {lost} edit{'s' * (lost > 1)} of arrays or sentences left out" if lost else ""
                self._port.say(f"stop {count} of {name}: {stop_title(session, position.stop)}{left_out}")

        self._port.open(PromptScreen("Notes for who gives the lecture", hint="a line, or nothing"), write)


def _check(name: str) -> None:
    """Raise InputError where a file is no lecture."""
    path = path_of(name)
    check_name(path)
    if is_there(path):
        read_lecture(path)
