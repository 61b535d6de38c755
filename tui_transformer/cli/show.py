"""`show`: the list of steps, one step, or one cell, as text for people or programs."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tui_transformer.cli.commands.show import Request
from tui_transformer.cli.metrics import gradients_of_chosen
from tui_transformer.cli.output import deliver, note, page
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.cli.session import open_session
from tui_transformer.cli.trace import backward
from tui_transformer.engine.axis import Axes, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Explanation
from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient, gradient_formula
from tui_transformer.engine.names import find
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.report import text
from tui_transformer.report.export import FORMATS, csv_text, export
from tui_transformer.session.session import Session
from tui_transformer.views.step_view import Place, gradient_of, index_of, view_of
from tui_transformer.views.view import Axis, View


def run(request: Request) -> None:
    """Show what is asked for.

    Raises:
        InputError: There is no such step or cell, or the file cannot be written.
    """
    _check_gradient(request)
    session = open_session(request)
    if request.step is None:
        deliver(_list(session.trace.program, request), request.out)
        return
    shown = OfScalar(session, request) if request.gradient else Shown(session)
    program = session.trace.program
    views = shown.views(find((*program.names, *program.weights), request.step), _head(request))
    if request.explain is not None:
        deliver(_explained(shown, _single(views, "--explain"), request), request.out)
    elif request.out is not None and request.format is None:
        export(_single(views, f"--out {request.out}"), request.out)
        note(f"wrote {request.out}")
    else:
        deliver(_shown(views, request), request.out)


def _head(request: Request) -> int | None:
    """The head that is shown; None for all."""
    if request.head == "all":
        return None
    if not re.fullmatch(r"-?[0-9]{1,9}", request.head or "0"):
        raise UsageError(f"--head: {(request.head or '')[:40]!r} is no head: write a number from 0, or all")
    return int(request.head or 0)


def _check_gradient(request: Request) -> None:
    """Refuse half of what a gradient needs."""
    scalar = request.metric is not None or request.tokens is not None
    if not request.gradient and request.targets is None and not scalar:
        return
    if request.step is None:
        raise UsageError("--gradient and --targets need a STEP: `tui-transformer show` lists the steps")
    if request.gradient and request.targets is None and not scalar:
        raise UsageError(
            "--gradient needs --targets: one token ID a position, as 7,9,-1 (-1 = not counted), or --tokens or --metric"
        )
    if not request.gradient:
        raise UsageError("--targets is what a gradient is computed from: give --gradient too")


class Shown:
    """The values of steps and weights."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def views(self, names: Sequence[str], head: int | None) -> list[View]:
        """A view of each name and head; None: of all heads that it has."""
        return [
            view_of(self.session.trace, name, self.session.labels, head=number)
            for name in names
            for number in (self._heads(name) if head is None else (head,))
        ]

    def _heads(self, name: str) -> range:
        axes = self.session.trace.program.axes(name)
        return range(axes[0].size if len(axes) == 3 else 1)

    def axes(self, view: View) -> Axes:
        """The axes of the array that a view shows."""
        return self.session.trace.program.axes(view.name.removeprefix(GRADIENT))

    def explain(self, view: View, place: Place) -> Explanation:
        """How the cell at a place was made."""
        return self.session.trace.explain_cell(view.name, index_of(self.axes(view), place))


class OfScalar(Shown):
    """Gradients in place of values, under `gradient/` and the name."""

    def __init__(self, session: Session, request: Request) -> None:
        """Go back from the loss or the metric; its value is said.

        Raises:
            InputError: The model has no logits, or the targets or words do not fit them.
        """
        super().__init__(session)
        self._targets: tuple[int, ...] = ()
        if request.metric is None and request.tokens is None:
            self._targets = parse_ids((request.targets or "").replace("−", "-"), "--targets")
            self._gradients = backward(session.trace, self._targets)
        else:
            self._gradients = gradients_of_chosen(session, request)

    def views(self, names: Sequence[str], head: int | None) -> list[View]:
        """A view of each name that has a gradient.

        Raises:
            InputError: None of them has.
        """
        aliases, values = self.session.trace.program.aliases, self._gradients.values
        known = [name for name in names if aliases.get(name, name) in values]
        if not known:
            raise InputError(f"{names[0]} has no gradient: the loss does not depend on it, or it depends on no weight")
        return [self._gradient(view, values[aliases.get(view.name, view.name)]) for view in super().views(known, head)]

    def _gradient(self, view: View, values: Host) -> View:
        formula = gradient_formula(self.session.trace, self._gradients, view.name)
        made = gradient_of(view, self.axes(view), values)
        return dataclasses.replace(made, name=f"{GRADIENT}{view.name}", formula=formula)

    def explain(self, view: View, place: Place) -> Explanation:
        """The chain rule at a place."""
        name, index = view.name.removeprefix(GRADIENT), index_of(self.axes(view), place)
        return explain_gradient(self.session.trace, self._gradients, self._targets, name, index)


def _single(views: list[View], option: str) -> View:
    if len(views) > 1:
        several = len({view.name for view in views}) > 1
        advice = "write the whole name of one" if several else "name one head, or leave --head out"
        raise UsageError(f"{option} takes one {'step' if several else 'matrix'}, and {len(views)} match: {advice}")
    return views[0]


def _shown(views: list[View], request: Request) -> Iterable[str]:
    if request.format not in (None, "text"):
        return FORMATS[request.format](_single(views, f"--format {request.format}"))
    return ("\n" * (number > 0) + text.render(view, _page(request)) for number, view in enumerate(views))


def _page(request: Request) -> text.Page:
    return page(everything=request.everything or request.out is not None)


# One cell


def _explained(shown: Shown, view: View, request: Request) -> Iterator[str]:
    """The terms of the cell at ROW,COLUMN of the matrix."""
    place = place_of_cell(view, request.explain or "", "--explain")
    explanation = shown.explain(view, place)
    if request.format in ("csv", "svg"):
        raise UsageError(f"--explain has no {request.format} format: use text or json")
    if request.format == "json":
        yield json.dumps(text.cell_data(explanation), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    else:
        labels = [f"{axis.name} {axis.label(i)}" for axis, i in _sides(view, place) if axis.label(i) != str(i)]
        yield text.cell_text(explanation, labels, _page(request))


def _sides(view: View, place: Place) -> tuple[tuple[Axis, int], tuple[Axis, int]]:
    return (view.rows, place.row), (view.columns, place.column)


def place_of_cell(view: View, cell: str, option: str) -> Place:
    """The place that an option names as ROW,COLUMN.

    Raises:
        InputError: It is not a cell of the view.
    """
    match = re.fullmatch(r"\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*", cell)
    if match is None:
        raise UsageError(f"{option}: {cell[:40]!r} is not a cell: write ROW,COLUMN, as 4,1")
    place = Place(view.head or 0, int(match[1]), int(match[2]))
    if place.row >= view.rows.size or place.column >= view.columns.size:
        last = f"{view.rows.size - 1},{view.columns.size - 1}"
        raise InputError(f"{view.name} has no cell {place.row},{place.column}: its cells are 0,0 to {last}")
    return place


# The list


@dataclass(frozen=True)
class Entry:
    """A line of the list."""

    name: str
    kind: str
    shape: tuple[int, ...]
    formula: str = ""


def _entries(program: Program) -> Iterator[Entry]:
    for name in program.names:
        alias = program.aliases.get(name)
        formula = program.step(name).op.formula if alias is None else f"= {alias}"
        yield Entry(name, "step" if alias is None else "alias", program.shape(name), formula)
    for name in program.weights:
        yield Entry(name, "weight", program.shape(name))


def _list(program: Program, request: Request) -> Iterator[str]:
    if request.head is not None or request.explain is not None:
        raise UsageError("--head and --explain need a STEP: `tui-transformer show` lists the steps")
    if request.format == "svg":
        raise UsageError("the list of steps has no svg format: name a STEP, or use text, json or csv")
    yield from _LISTS[request.format or "text"](list(_entries(program)))


def _list_text(entries: list[Entry]) -> Iterator[str]:
    names, shapes = (
        max(map(len, texts)) for texts in zip(*((e.name, shape_text(e.shape)) for e in entries), strict=True)
    )
    for entry in entries:
        yield f"{entry.name:<{names}}  {shape_text(entry.shape):<{shapes}}  {entry.formula}".rstrip() + "\n"


def _list_json(entries: list[Entry]) -> Iterator[str]:
    yield json.dumps([vars(entry) for entry in entries], ensure_ascii=False, indent=1) + "\n"


def _list_csv(entries: list[Entry]) -> Iterator[str]:
    rows = ((e.name, e.kind, "x".join(map(str, e.shape)), e.formula) for e in entries)
    yield csv_text([("name", "kind", "shape", "formula"), *rows])


_LISTS = {"text": _list_text, "json": _list_json, "csv": _list_csv}
