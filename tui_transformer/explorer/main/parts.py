"""The parts that the main screen is composed of, each made of those before it."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.explorer.main.bookmark import Bookmark
from tui_transformer.explorer.main.counting import Counting
from tui_transformer.explorer.main.editing import Editing
from tui_transformer.explorer.main.exploration import Exploration
from tui_transformer.explorer.main.export import Export
from tui_transformer.explorer.main.inside.opening import InsideOpening
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.predict.predicting import Predicting
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.main.tour import Tour
from tui_transformer.explorer.main.view_changes import ViewChanges
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.state.position import Position
from tui_transformer.explorer.state.session import Session
from tui_transformer.explorer.state.view_state import ViewState


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts that keys of the main screen and messages of its panes are passed on to."""

    explored: Exploration
    requests: Requests
    panes: Panes
    presenter: Presenter
    port: MainPort
    navigation: Navigation
    view_changes: ViewChanges
    editing: Editing
    export: Export
    tour: Tour
    bookmark: Bookmark
    predicting: Predicting
    inside: InsideOpening
    counting: Counting


def assemble(
    screen: ExplorerScreen[None],
    session: Session,
    worker: Worker,
    background: Background,
    view: ViewState,
    at: Position | None = None,
) -> Parts:
    """The parts of a screen that explores a session from a position, by default its first stop."""
    explored = Exploration.begun(session, at, view)
    requests = Requests(
        screen, worker, lambda: presenter.lines.show(), lambda: explored.session.model.backend.device == "cpu"
    )
    panes = Panes(screen, explored, lambda: presenter.show_active())
    presenter = Presenter(explored, panes, requests)
    port = MainPort(explored, presenter, requests, worker, background)
    navigation = Navigation(explored, panes, presenter, port)
    editing = Editing(explored, presenter, port)
    predicting = Predicting(explored, port)
    tour = Tour(explored, panes, presenter, port, predicting)
    port.tour_begins, port.tour_ends = tour.begin, tour.leave
    return Parts(
        explored,
        requests,
        panes,
        presenter,
        port,
        navigation,
        ViewChanges(explored, presenter, port),
        editing,
        Export(explored, port, lambda text: screen.app.copy_to_clipboard(text), presenter.details.chart),
        tour,
        Bookmark(explored, port, tour),
        predicting,
        InsideOpening(explored, panes, port),
        Counting(explored, panes, presenter.show_position, presenter.lines.count),
    )
