"""Sentences about a position: step, row, column, value, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.errors import InputError
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import answer, answers, guesses
from tui_transformer.session.edit_format import active
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position
from tui_transformer.session.sentence_change import LEAST_MOVE, change_of, words_said
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.step_scene import cell_of, without_hidden
from tui_transformer.session.view_state import entry_of
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place, placed, view_of
from tui_transformer.views.view import Values, View

DIGITS = 6
SHOWN_OF_A_LINE = 12
"""Numbers of a row that are told, the largest first where there are more."""

LIKELY = 3
"""Words that are named where the model's answer is told."""


@dataclass(frozen=True)
class Description:
    """Description of a position, in parts: two of them differ where something has changed."""

    step: str
    head: str = ""
    row: str = ""
    column: str = ""
    value: str = ""

    def sentence(self) -> str:
        """Where one is, and the value."""
        where = ", ".join(filter(None, (self.step, self.head, self.row, self.column)))
        return f"{where}: {self.value}" if self.value else where

    def changes(self, before: Description) -> Iterator[str]:
        """The parts that were otherwise before."""
        if self.step != before.step:
            yield f"step from {before.step}"
            return
        for now, then in ((self.head, before.head), (self.row, before.row), (self.column, before.column)):
            if now != then and then:
                yield f"{then.partition(' ')[0]} from {then.partition(' ')[2]}"
        if self.value != before.value and before.value:
            yield f"value from {before.value}"


def describe(explored: Exploration, *, counted: bool = True) -> Description:
    """The position, how far it is where steps are counted, and what is there; the cell is moved inside the matrix."""
    session, stop, stops = explored.session, explored.position.stop, explored.session.stops
    label = stop if stop in session.trace.program.weights else step_text(stop).label
    where = f"step {stops.index(stop) + 1} of {len(stops)}" if stop in stops else "beside the steps"
    parts = (label, stop if label.casefold() != stop else "", where if counted else "")
    step = ", ".join(dict.fromkeys(filter(None, parts)))
    view = matrix_of(explored)
    place = explored.position.place
    if view is None:
        count_rows, tell = WORDS[stop]
        if not (rows := count_rows(session)):
            return Description(step, value="no words")
        explored.position = Position(stop, Place(place.head, min(place.row, rows - 1), 0))
        row, value = tell(session, explored.position.place.row)
        return Description(step, row=f"row {row}", value=value)
    head = f"head {place.head} of {view.heads}" if view.heads > 1 else ""
    value = spoken(float(view.window(range(place.row, place.row + 1), range(place.column, place.column + 1))[0, 0]))
    if session.backward and stop in session.gradients.values:
        gradient = cell_of(session, stop, place, "overlay").working.stored
        value = f"{value}, gradient {spoken(gradient, DIGITS)}"
    sides = (("row", view.rows, place.row), ("column", view.columns, place.column))
    row, column = (f"{side} {placed(axis.label(at), at)}" if axis.name else "" for side, axis, at in sides)
    return Description(step, head, row, column, value)


def heads_at(explored: Exploration) -> int:
    """Heads of the step."""
    stop = explored.position.stop
    axes = () if stop in WORDS else explored.session.trace.program.axes(stop)
    return axes[0].size if len(axes) == 3 else 1


def sizes_at(explored: Exploration) -> Mapping[str, int]:
    """Heads, rows and columns of the step; of words, which are one column, there may be no row."""
    view = matrix_of(explored)
    if view is not None:
        return {"head": heads_at(explored), "row": view.rows.size, "column": view.columns.size}
    count_rows, _ = WORDS[explored.position.stop]
    return {"head": 1, "row": count_rows(explored.session), "column": 1}


def matrix_of(explored: Exploration) -> View | None:
    """The matrix of the position, whose cell is moved inside it; None for words."""
    session, position = explored.session, explored.position
    if position.stop in WORDS:
        return None
    place = replace(position.place, head=min(position.place.head, heads_at(explored) - 1))
    view = view_of(session.trace, position.stop, session.labels, head=place.head)
    explored.position = Position(position.stop, place.within(view))
    return without_hidden(session, view, explored.view.hidden)


def row_of(explored: Exploration) -> tuple[View, Values]:
    """The matrix, and the numbers of its current row.

    Raises:
        InputError: There are words.
    """
    view = matrix_of(explored)
    if view is None:
        raise InputError("there is no row of numbers here")
    row = explored.position.place.row
    return view, view.window(range(row, row + 1), range(view.columns.size))[0]


def line_of(explored: Exploration) -> str:
    """`the row is where 0.01, ? 0.99; the row sums to 1`."""
    view, values = row_of(explored)
    order = np.arange(values.size)
    if values.size > SHOWN_OF_A_LINE:
        sizes = np.abs(np.where(np.isfinite(values), values, 0))
        order = np.sort(np.argsort(-sizes, kind="stable")[:SHOWN_OF_A_LINE])
    told = ", ".join(f"{view.columns.label(i) or i} {spoken(float(values[i]))}" for i in order.tolist())
    rest = f"; {values.size - order.size:,} smaller ones are left out" if order.size < values.size else ""
    sums = "; the row sums to " + spoken(float(values.sum())) if view.formula == Softmax().formula else ""
    return f"the row is {told}{rest}{sums}"


def describe_model(session: Session) -> str:
    """The model, its sentence and its answer."""
    written = "; ".join(f"{name}: {visible(encoding.text)}" for name, encoding in session.sequences.items())
    told = f"; it answers {answer(session)}" if answers(session) else ""
    edits = active(session.edits, session.base.program)
    edited = f"; edited: {visible(edits)}" if edits else ""
    return f"Model {visible(session.model.name)}, {written or 'Q, K and V are given'}{edited}{told}."


def _of_vocabulary(session: Session, row: int) -> tuple[str, str]:
    first = tuple(dict.fromkeys(session.encoding.ids))
    token, used = entry_of(first, row), ", in the sentence" * (row < len(first))
    count = WORDS[VOCABULARY][0](session)
    return f"{row} of {count:,}", f"word {session.model.word_label(token)}, ID {token}{used}"


def _of_text(session: Session, row: int) -> tuple[str, str]:
    token = (session.decoder_encoding or session.encoding).tokens[row]
    likely = ", ".join(map(str, guesses(session, row, LIKELY)))
    return f"{session.model.label(token.text)} @{row}", f"most likely {likely}"


def _of_loss(session: Session, row: int) -> tuple[str, str]:
    target = session.loss_targets[row]
    name = "none" if target < 0 else session.model.target_label(target)
    return str(row), f"mean loss {spoken(session.gradients.loss, DIGITS)}, target {name}"


WORDS: Mapping[str, tuple[Callable[[Session], int], Callable[[Session, int], tuple[str, str]]]] = {
    VOCABULARY: (lambda session: 0 if (words := session.model.vocabulary) is None else words.size, _of_vocabulary),
    TEXT: (lambda session: len((session.decoder_encoding or session.encoding).tokens), _of_text),
    LOSS: (lambda session: len(session.loss_targets), _of_loss),
}
"""Stops that are words, with the number of their rows, and what a row is called and has."""


def answer_changed(before: Session, after: Session) -> str:
    """`; answer from question 99.9 % to statement 99.8 %`."""
    if not (answers(before) and answers(after)):
        return ""
    was, now = str(answer(before)), str(answer(after))
    return f"; answer from {was} to {now}" if was != now else f"; the answer stays {now}"


def sentence_changed(before: Session, after: Session) -> str:
    """`; map became chest; heads that look elsewhere most: head 2 of encoder.0 … by 0.84`, and what a vector does."""
    change = change_of(before, after, lambda _: None)
    heads = [f"{head.described} by {head.size:.2f}" for head in change.heads[:LIKELY] if head.size >= LEAST_MOVE]
    parts = (
        words_said(before, after),
        "" if answers(after) else change.said,
        f"heads that look elsewhere most: {', '.join(heads)}" if heads else "",
    )
    return "".join(f"; {part}" for part in parts if part)
