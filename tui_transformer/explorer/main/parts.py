"""The parts that the main screen is composed of, and which of them replies to what a pane posts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.message import Message

from tui_transformer.explorer.main.counting import Counting
from tui_transformer.explorer.main.editing import Editing
from tui_transformer.explorer.main.export import Export
from tui_transformer.explorer.main.inside.opening import InsideOpening
from tui_transformer.explorer.main.layout import Panes
from tui_transformer.explorer.main.navigation import Navigation
from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.matrix import HeadsPane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.panes.whole import WholePane
from tui_transformer.explorer.main.panes.words import TextPane, VocabularyPane
from tui_transformer.explorer.main.port import MainPort
from tui_transformer.explorer.main.predict import Predicting
from tui_transformer.explorer.main.presenter import Presenter
from tui_transformer.explorer.main.tour import Tour
from tui_transformer.explorer.shell.base import ExplorerScreen
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.worker import Background, Worker
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import ViewState


class Parts:
    """The parts that keys of the main screen and messages of its panes are passed on to, each made of those before."""

    def __init__(
        self,
        screen: ExplorerScreen[None],
        session: Session,
        worker: Worker,
        background: Background,
        view: ViewState,
        at: Position | None,
    ) -> None:
        self.explored = explored = Exploration.begun(session, at, view)
        self.requests = requests = Requests(
            screen, worker, lambda: presenter.lines.show_again(), lambda: explored.session.model.backend.device == "cpu"
        )
        self.panes = panes = Panes(screen, explored)
        self.presenter = presenter = Presenter(explored, panes, requests)
        self.port = port = MainPort(explored, presenter, requests, worker, background)
        self.navigation = Navigation(explored, presenter, port)
        self.editing = Editing(explored, presenter, port)
        self.predicting = Predicting(explored, port)
        self.tour = Tour(explored, panes, presenter, port, self.predicting)
        self.export = Export(explored, port, self.tour, screen)
        self.inside = InsideOpening(explored, presenter, port)
        self.counting = Counting(explored, panes, presenter.focus, presenter.lines.count)


REPLIES: Mapping[type[Message], Callable[[Parts, Any], None]] = {
    HeatMap.Moved: lambda parts, event: parts.presenter.move_cell(*event.control.at),  # it may show another step now
    HeatMap.Chosen: lambda parts, _: parts.inside.open(),
    HeatMap.Sized: lambda parts, event: parts.navigation.look(cell_width=event.width),
    HeatMap.TileNeeded: lambda parts, event: parts.presenter.supply_tile(event.rows, event.columns, event.heat_map),
    HeadsPane.Chosen: lambda parts, _: parts.inside.open(),
    HeadsPane.Moved: lambda parts, event: parts.navigation.go_to_cell(head=event.index),
    StepsPane.Entered: lambda parts, _: parts.presenter.focus("matrix"),
    StepsPane.Visited: lambda parts, event: parts.navigation.go_to_stop(event.chosen),
    WholePane.Moved: lambda parts, event: parts.navigation.go_to_box(event.across, event.down),
    WholePane.Visited: lambda parts, event: parts.navigation.go_into(event.step, event.head, event.row),
    WholePane.Chosen: lambda parts, _: parts.inside.open(),
    CellPane.Ordered: lambda parts, _: parts.navigation.look(by_size=not parts.explored.view.by_size),
    CellPane.Followed: lambda parts, event: parts.navigation.follow_operand(event.operand),
    VocabularyPane.EntryChosen: lambda parts, event: parts.navigation.follow_word(event.token_id),
    SentencePane.Chosen: lambda parts, event: parts.navigation.go_to_token(event.which, event.place),
    SentencePane.Turned: lambda parts, event: parts.navigation.turn_token(event.by),
    SentencePane.Opened: lambda parts, event: parts.editing.ask("target" if event.which else "sentence"),
    TextPane.Warmed: lambda parts, event: parts.navigation.warm(event.steps),
    TourPanel.Next: lambda parts, _: parts.tour.go(1),
    TourPanel.Back: lambda parts, _: parts.tour.go(-1),
    TourPanel.Left: lambda parts, _: parts.tour.leave(),
}
"""Every message that the main screen hears."""
