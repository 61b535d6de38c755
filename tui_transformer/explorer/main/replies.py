"""Replies to the messages of panes: a line for each kind of message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.message import Message

from tui_transformer.explorer.main.panes.cell import CellPane
from tui_transformer.explorer.main.panes.sentence import SentencePane
from tui_transformer.explorer.main.panes.steps import StepsPane
from tui_transformer.explorer.main.panes.text import TextPane
from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.main.panes.vocabulary import VocabularyPane
from tui_transformer.explorer.main.parts import Parts
from tui_transformer.explorer.main.whole.pane import WholePane
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.thumbnails import HeadThumbnails

REPLIES: Mapping[type[Message], Callable[[Parts, Any], None]] = {
    HeatMap.Moved: lambda parts, event: parts.presenter.move_cell(*event.control.at),  # it may show another step now
    HeatMap.Chosen: lambda parts, _: parts.inside.open(),
    HeatMap.TileNeeded: lambda parts, event: parts.presenter.supply_tile(event.rows, event.columns, event.heat_map),
    HeadThumbnails.Chosen: lambda parts, _: parts.inside.open(),
    HeadThumbnails.Moved: lambda parts, event: parts.navigation.go_to_head(event.index),
    StepsPane.Entered: lambda parts, _: parts.panes.focus("matrix"),
    StepsPane.Visited: lambda parts, event: parts.navigation.go_to_stop(event.chosen),
    WholePane.Moved: lambda parts, event: parts.navigation.go_to_box(event.across, event.down),
    WholePane.Visited: lambda parts, event: parts.navigation.go_into(event.step, event.head, event.row),
    WholePane.Chosen: lambda parts, _: parts.inside.open(),
    CellPane.Followed: lambda parts, event: parts.navigation.follow_operand(event.operand),
    VocabularyPane.EntryChosen: lambda parts, event: parts.navigation.follow_word(event.token_id),
    SentencePane.Chosen: lambda parts, event: parts.navigation.go_to_token(event.which, event.place),
    SentencePane.Turned: lambda parts, event: parts.navigation.turn_token(event.by),
    SentencePane.Opened: lambda parts, event: parts.editing.target() if event.which else parts.editing.sentence(),
    TextPane.Warmed: lambda parts, event: parts.view_changes.warm(event.steps),
    TourPanel.Next: lambda parts, _: parts.tour.go(1),
    TourPanel.Back: lambda parts, _: parts.tour.go(-1),
    TourPanel.Left: lambda parts, _: parts.tour.leave(),
}
"""Every message that the main screen hears."""
