"""A scene: everything that the panes draw of a session, a position and a view in a terminal of some size."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import numpy as np

from tui_transformer.analysis.attentions import Report, renormalized
from tui_transformer.analysis.tokens import Hidden
from tui_transformer.engine.backend import Host
from tui_transformer.records import dataclass, replace
from tui_transformer.session import answer_summary
from tui_transformer.session.overlay import other_view
from tui_transformer.session.pane_fit import Arrangement, Told, arrange, shown_at
from tui_transformer.session.position import Position
from tui_transformer.session.session import VOCABULARY, Session, gradient_cost
from tui_transformer.session.step_scene import StepScene, hidden_keys, step_scene, without_hidden
from tui_transformer.session.store import AT_ONCE, Part, Reading
from tui_transformer.session.view_state import Size, ViewState
from tui_transformer.session.whole.scene import WholeScene, whole_scene
from tui_transformer.session.words import WORDS, Drawn, Keys
from tui_transformer.text.display import visible
from tui_transformer.views.chart_data import (
    GRADIENT_KINDS,
    OF_WEIGHTS,
    GradientKind,
    Kind,
    chart,
    charts_for,
    gradient_chart,
)
from tui_transformer.views.charts import Chart
from tui_transformer.views.step_view import difference_of, small, thumbnail, view_of
from tui_transformer.views.view import Scale

ChartKind = Kind | GradientKind

THUMB_ROWS, THUMB_COLUMNS = 12, 24
MOST_THUMBS = 64

MOST_FOR_ANSWER = 2_000_000_000
"""Operations that an answer may take that nobody asked for."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What is shown of a position. Never changed: another key, another size or another result make another one.

    Attributes:
        session: What is explored.
        position: Where; the cell is one that the step has.
        view: How one looks at it.
        size: Columns and lines of the screen.
        arrangement: The panes and the room that each has.
        step: The matrix and its cell; None for words, and until they are there.
        words: Of a stop that is words, these; None until they are there.
        heads: Every head of the step, small; None until they are there, and where there is no room for them.
        kind: The kind of chart that was chosen; None where the stop has none.
        chart: The chart, likewise.
        whole: Every step as a small picture, where there is room for it.
        answer: The model's answer in a few words, where it is asked for; None until it is there.
        missing: What is still to be worked out, the most wanted first, with what it costs.
        failed: Why parts could not be worked out just now.
        lost: Whether what the stop itself shows cannot be worked out.
    """

    session: Session
    position: Position
    view: ViewState
    size: Size
    arrangement: Arrangement
    step: StepScene | None
    words: Drawn | None
    heads: Heads | None
    kind: ChartKind | None
    chart: Chart | None
    whole: WholeScene | None
    answer: str | None
    missing: tuple[tuple[Part[Any], int], ...]
    failed: tuple[Exception, ...]
    lost: bool

    @property
    def waits(self) -> bool:
        """Whether what the stop itself shows is missing: the matrix, or the words."""
        stop = self.position.stop
        return stop != VOCABULARY and (self.words if stop in WORDS else self.step) is None


def scene(
    reading: Reading,
    session: Session,
    position: Position,
    view: ViewState,
    size: Size,
    *,
    keys: Keys,
    told: Told = (),
    asks_answer: bool = False,
) -> Scene:
    """The scene of a position: what the reading gives of it, and what is missing.

    Args:
        reading: Gives what is there, and works out what costs little.
        session: What is explored.
        position: Where; a cell outside the step is moved into it.
        view: How one looks at it.
        size: Columns and lines of the screen.
        keys: Writes the keys that are in use into texts.
        told: Of every stop of the tour that goes on its paragraphs; none without a tour.
        asks_answer: Whether the answer is shown in the line of keys.
    """
    stop, step, words = position.stop, None, None
    shown = shown_at(session, view, size)
    if stop in WORDS:
        spelled, temperature = WORDS[stop], view.temperature
        cost = partial(spelled.cost, session)
        words = reading.get(
            session, stop, ("words", temperature), cost, lambda report: spelled.made(session, report, keys, temperature)
        )
    elif stop != VOCABULARY:
        step = step_scene(reading, session, position, view, shown)
    lost = step is None and words is None and stop != VOCABULARY and not reading.missing
    if step is not None:
        head = step.place.head if step.view.heads else position.place.head
        position = replace(position, place=replace(step.place, head=head))
    arrangement = arrange(size, session, position, view, told, step)
    if session.backward and step is None:  # the title and the list of steps say it wherever one is
        reading.get(session, "", "gradients", partial(gradient_cost, session), session.go_back)
    if session.overlay.kind == "trace" and session.comparison is None:
        reading.get(session, "", "comparison", lambda: AT_ONCE + 1, session.compare)
    whole = whole_scene(reading, session, position, arrangement.whole, shown) if arrangement.whole else None
    heads = kind = drawn = None
    if step is not None and step.view.heads > 1 and "heads" in arrangement.drawn:
        heads = _heads(reading, session, step, view.hidden)
    if step is not None and "chart" in arrangement.drawn:
        kinds: tuple[ChartKind, ...] = charts_for(session.trace.program, step.drawn.name)
        if session.backward and session.has_loss:
            kinds = (*GRADIENT_KINDS, *kinds)
        kind = kinds[view.chart % len(kinds)] if kinds else None
        drawn = None if kind is None else _chart(reading, session, step, kind, view.hidden)
    answer = None
    if asks_answer and (operations := answer_summary.describe_cost(session)) <= MOST_FOR_ANSWER:
        describe = partial(answer_summary.describe, session)
        answer = reading.get(session, session.stops[-1], "answer", lambda: operations, describe)
    missing = tuple(reading.missing)
    reading.missing.clear()  # parts know it: without this circle a trace goes with its last scene
    return Scene(
        session,
        position,
        view,
        size,
        arrangement,
        step,
        words,
        heads,
        kind,
        drawn,
        whole,
        answer,
        missing,
        tuple(reading.failed),
        lost,
    )


def lacks(scene: Scene, pane: str) -> bool:
    """Whether something that a pane shows is still to come, where the matrix of the stop is there."""
    match pane:
        case "whole":
            return scene.whole is not None and any(each.missing for _, band in scene.whole.bands for each in band)
        case "heads":
            return scene.heads is None
        case "chart":
            return scene.kind is not None and scene.chart is None
        case _:
            return False


# The heads of a step


@dataclass(frozen=True, eq=False)
class Heads:
    """Every head of a step, small.

    Attributes:
        tiles: A small picture of each.
        scale: The range that their colours stand for.
        shape: Rows × columns of each.
        what: What they show where it is not the step's values.
        of: How many heads the step has.
    """

    tiles: tuple[Host, ...]
    scale: Scale
    shape: tuple[int, int]
    what: str
    of: int


def _heads(reading: Reading, session: Session, step: StepScene, choice: Hidden) -> Heads | None:
    scale = step.scale if step.alone is None else step.alone.scale
    what = ("heads", choice, step.shown, scale)
    work = partial(heads_of, session, step, choice)
    return reading.get(
        session, step.view.name, what, lambda: 4 * math.prod(session.trace.program.shape(step.view.name)), work
    )


def heads_of(session: Session, step: StepScene, choice: Hidden, report: Report) -> Heads:
    """Every head of a step, as what is drawn large of it is drawn; none where there is only one."""
    name, alone, of_gradient = step.view.name, step.alone, session.overlay.kind == "gradient"
    hidden = hidden_keys(session, name, choice) if alone is None else None

    def left(rows: Host) -> Host:
        """Rows without the keys that are hidden."""
        return rows if hidden is None else np.where(hidden, -np.inf, renormalized(rows, hidden)).astype(rows.dtype)

    def tile(head: int) -> Host:
        if alone is not None and of_gradient:
            return small(session.gradients.values[name][head], THUMB_ROWS, THUMB_COLUMNS)
        before = partial(report, f"head {head}")
        if alone is None:
            before()
        view = view_of(session.trace, name, session.labels, head=head)
        if alone is None:
            return thumbnail(view, THUMB_ROWS, THUMB_COLUMNS, left, before)
        if (other := other_view(session, view)) is None:  # it has fewer heads
            return np.full((1, 1), -np.inf)
        view, other = without_hidden(session, view, choice), without_hidden(session.other, other, choice)
        shown = difference_of(view, other) if step.shown == "difference" else other
        return thumbnail(shown, THUMB_ROWS, THUMB_COLUMNS, before=before)

    if alone is None:
        what = "renormalised" if step.hidden else ""
    elif of_gradient:
        what = "∂loss/∂x"
    else:
        what = "difference" if step.shown == "difference" else visible(session.overlay.label)
    heads = step.view.heads if step.view.heads > 1 else 0
    tiles = tuple(tile(head) for head in range(min(heads, MOST_THUMBS)))
    return Heads(tiles, step.scale if alone is None else alone.scale, step.view.shape, what, heads)


# Its charts: of its values, and of the gradients where they are beside


def _chart(reading: Reading, session: Session, step: StepScene, kind: ChartKind, choice: Hidden) -> Chart | None:
    drawn, place, of_drawn = step.drawn, step.place, step.alone is None or kind in OF_WEIGHTS
    reads_one_row = kind in ("row", "waves", "sines", "cosines", "all waves")
    cost = 0 if reads_one_row else 10 * drawn.rows.size * drawn.columns.size * (drawn.heads or 1)

    def work(_: Report) -> Chart:
        if kind in GRADIENT_KINDS:
            gradient_kind: GradientKind = kind
            return gradient_chart(gradient_kind, session.trace.program, session.gradients.values, drawn.name)
        word, among = session.labels.word, session.model.has_vector
        view = drawn if of_drawn else step.view
        made = chart(cast("Kind", kind), session.trace, view, place, word=word, among=among)
        of = "values" if session.overlay.kind == "gradient" else "this"  # and not what is drawn in its place
        return made if of_drawn else replace(made, title=f"{of} · {made.title}")

    return reading.get(session, drawn.name, ("chart", kind, place, step.shown, choice), lambda: cost, work)
