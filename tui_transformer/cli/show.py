"""`show`: the list of steps, one step, or one cell, as text for people or programs."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.cli.names import find
from tui_transformer.cli.options import Flags
from tui_transformer.cli.output import deliver, note
from tui_transformer.cli.session import Session, open_session
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.report import explained, text
from tui_transformer.report.export import FORMATS, export
from tui_transformer.views.step_view import Place, index_of, view_of
from tui_transformer.views.view import Axis, View


@dataclass(frozen=True)
class Request:
    """What is to be shown, and how; None where it was not said."""

    step: str | None = None
    head: int | None = None
    cell: str | None = None
    format: str | None = None
    everything: bool = False
    out: Path | None = None


def run(flags: Flags, request: Request) -> None:
    """Show what is asked for.

    Raises:
        InputError: There is no such step or cell, or the file cannot be written.
    """
    session = open_session(flags)
    if request.step is None:
        deliver(_list(session.trace.program, request), request.out)
        return
    names = find(session.trace.program, request.step)
    views = [view_of(session.trace, name, session.labels, head=request.head or 0) for name in names]
    if request.cell is not None:
        deliver(_explained(session, _single(views, "--explain"), request), request.out)
    elif request.out is not None and request.format is None:
        export(_single(views, f"--out {request.out}"), request.out)
        note(f"wrote {request.out}")
    else:
        deliver(_shown(views, request), request.out)


def _single(views: list[View], option: str) -> View:
    if len(views) > 1:
        raise UsageError(f"{option} takes one step, and {len(views)} match: write the whole name of one")
    return views[0]


def _page(request: Request) -> text.Page:
    """As wide as the terminal; a file gets everything."""
    if request.everything or request.out is not None:
        return text.EVERYTHING
    return text.Page(width=shutil.get_terminal_size().columns) if sys.stdout.isatty() else text.DEFAULT_PAGE


def _shown(views: list[View], request: Request) -> Iterable[str]:
    if request.format not in (None, "text"):
        return FORMATS[request.format](_single(views, f"--format {request.format}"))
    return ("\n" * (number > 0) + text.render(view, _page(request)) for number, view in enumerate(views))


# One cell


def _explained(session: Session, view: View, request: Request) -> Iterator[str]:
    """The terms of the cell at ROW,COLUMN of the matrix."""
    place = _place(view, request.cell or "")
    explanation = session.trace.explain_cell(view.name, index_of(session.trace.program.axes(view.name), place))
    if request.format in ("csv", "svg"):
        raise UsageError(f"--explain has no {request.format} format: use text or json")
    if request.format == "json":
        yield json.dumps(explained.data(explanation), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    else:
        labels = [f"{axis.name} {axis.label(i)}" for axis, i in _sides(view, place) if axis.label(i) != str(i)]
        yield explained.render(explanation, labels, _page(request))


def _sides(view: View, place: Place) -> tuple[tuple[Axis, int], tuple[Axis, int]]:
    return (view.rows, place.row), (view.columns, place.column)


def _place(view: View, cell: str) -> Place:
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*", cell)
    if found is None:
        raise UsageError(f"--explain: {cell[:40]!r} is not a cell: write ROW,COLUMN, as 4,1")
    place = Place(view.head or 0, int(found[1]), int(found[2]))
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
    if request.head is not None or request.cell is not None:
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
    buffer = io.StringIO()
    table = csv.writer(buffer)
    table.writerow(("name", "kind", "shape", "formula"))
    table.writerows((e.name, e.kind, "x".join(map(str, e.shape)), e.formula) for e in entries)
    yield buffer.getvalue()


_LISTS = {"text": _list_text, "json": _list_json, "csv": _list_csv}
