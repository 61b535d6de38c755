"""A model of a run in the explorer: on the run's sample, at the head that was looked at."""

from __future__ import annotations

from dataclasses import replace

from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.tools.runs.sample import Heads, Sample
from tui_transformer.explorer.tools.runs.selection import HeadSelection
from tui_transformer.model import Model
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.views.step_view import Place


def session_of(session: Session, model: Model, sample: Sample) -> Session:
    """The session to explore, with this model on the sample.

    Raises:
        InputError: The model cannot read it.
    """
    changed = replace(
        session, model=model, text="", ids=sample.ids, mask=None, decoder_text="", decoder_ids=sample.decoder_ids
    )
    changed = replace(changed, edits=(), targets=None, overlay=NOTHING)
    _ = changed.trace
    return changed


def show_in(port: Port, session: Session, heads: Heads | None, selection: HeadSelection) -> None:
    """Explore a session at a head; undo comes back to what was explored before."""
    at = None
    if heads is not None and heads.attentions:
        attention, head = selection.of(heads.attentions)
        at = Position(attention.name, Place(head))
    port.change(session, at)
