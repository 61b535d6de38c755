"""`positions`: the positional encoding by itself, as numbers, curves and facts."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast, get_args

import numpy as np

from tui_transformer.analysis.positions import by_distance, columns_of, encoding, facts
from tui_transformer.cli.commands.positions import Request
from tui_transformer.cli.output import Format, Table, deliver, note, written
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.report import svg
from tui_transformer.report.export import FORMATS, check_suffix, export
from tui_transformer.report.numbers import aligned
from tui_transformer.views.charts import LineChart, Series
from tui_transformer.views.view import Axis, View, window_of

MOST_CURVES = 8
WIDTH, HEIGHT = 80, 22
"""Of a chart as text that goes to no terminal."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

LIKE = (
    "PE(p) · PE(p + k) = Σ cos(k ÷ 10000^(2i/d)): it depends on the distance k alone. At 0 every cosine is 1; near it "
    "most still are, since most waves are long, so nearby positions are alike; far away "
    "they are in every part of their turn, and add up to less."
)


def run(request: Request) -> None:
    """Show or write what is asked for.

    Raises:
        InputError: A dimension that is not there, or a file that cannot be written.
    """
    if request.files is not None:
        _write_files(request, request.files)
        return
    _SHOWN[request.what](request)


def _format(request: Request) -> str:
    """The format that was asked for, by the name of the file where there is one."""
    if request.format is not None or request.out is None:
        return request.format or "text"
    return check_suffix(request.out)


def _table_format(request: Request) -> Format:
    form = _format(request)
    if form not in get_args(Format):
        raise UsageError(f"a table is text, CSV or JSON, not {form}")
    return cast("Format", form)


# The table


def _table(request: Request) -> None:
    chosen = None if request.dimensions is None else parse_ids(request.dimensions, "--dimensions")
    columns = columns_of(request.d_model, request.part, chosen)
    table = encoding(request.d_model, request.count)
    if request.chart:
        _deliver_chart(_waves(table, columns), request)
        return
    view, form = _view(table, columns, request.part), _format(request)
    if form == "npz" and request.out is not None:
        export(view, request.out)
        note(f"wrote {request.out}")
    else:
        deliver(FORMATS[form](view), request.out)


def _view(table: Host, columns: tuple[int, ...], part: str) -> View:
    name = {"all": "sin, cos", "sin": "sin", "cos": "cos"}[part]
    return View(
        name="embedding.positions",
        title="Positional encoding",
        rows=Axis("position", len(table), str),
        columns=Axis("dimension", len(columns), lambda i: str(columns[i])),
        kind="diverging",
        window=window_of(table[:, columns]),
        formula=f"{name} (pos ÷ 10000^(2i/d))",
    )


def _waves(table: Host, columns: tuple[int, ...]) -> LineChart:
    """The curves of some dimensions; of many, as many as can be told apart, evenly spaced."""
    spaced = columns
    if len(columns) > MOST_CURVES:
        spaced = tuple(columns[i] for i in np.linspace(0, len(columns) - 1, MOST_CURVES).round().astype(int))
    positions = tuple(map(float, range(len(table))))
    series = tuple(
        Series(f"{'cos' if column % 2 else 'sin'} {column}", positions, tuple(table[:, column].tolist()))
        for column in spaced
    )
    return LineChart("Positional encoding over position", "position", "value", series, counted=True)


def _write_files(request: Request, folder: Path) -> None:
    """Sines and cosines apart: their numbers as text, and their curves as figures."""
    if request.out is not None or request.format is not None or request.what != "table":
        raise UsageError("--files writes the table's sines and cosines: leave --out, --format and the rest out")
    folder.mkdir(parents=True, exist_ok=True)
    table = encoding(request.d_model, request.count)
    chosen = None if request.dimensions is None else parse_ids(request.dimensions, "--dimensions")
    for part in ("sin", "cos") if request.part == "all" else (request.part,):
        columns = columns_of(request.d_model, part, chosen)
        for ending in ("txt", "dat"):
            export(_view(table, columns, part), folder / f"{part}.{ending}")
        deliver([svg.chart_svg(_waves(table, columns))], folder / f"{part}.svg")


# Likeness


def _similarity(request: Request) -> None:
    similarities = by_distance(request.d_model, request.count)
    if request.chart or _format(request) == "svg":
        distances = tuple(float(distance) for distance, *_ in similarities)
        series = Series("PE · PE", distances, tuple(dot for _, dot, _ in similarities))
        _deliver_chart(LineChart("PE(p) · PE(p + k)", "distance k", "dot product", (series,), counted=True), request)
        return
    deliver(written(Table(("distance", "dot", "cosine"), similarities, 4, LIKE), _table_format(request)), request.out)


# Facts


def _facts(request: Request) -> None:
    if _format(request) not in ("text", "csv", "json") or request.chart:
        raise UsageError("facts are text, CSV or JSON: leave --chart and other formats out")
    known = facts(request.d_model, request.count)
    distance, first, second = known.nearest
    apart, one, other = known.sums
    rows: list[tuple[str, str, str]] = [
        (
            "bounded",
            f"all values lie from {known.lowest:.4f} to {known.highest:.4f}",
            "no sine or cosine is beyond −1 or 1",
        ),
        (
            "unique",
            f"the nearest rows, {first} and {second}, are {distance:.4g} apart" if distance < np.inf else "one row",
            "no two positions have every wave in the same place",
        ),
        (
            "the same everywhere",
            f"rows differ by {known.longer:g} in a table of {2 * request.count:,}",
            "a row is computed from its position alone, not from the sentence",
        ),
        (
            "sums told apart",
            f"the nearest sums, {one[0]} + {one[1]} and {other[0]} + {other[1]}, are {apart:.4g} apart",
            "in each pair of dimensions PE(p) + PE(q) points where (p + q) ÷ 2 does, and is 2 cos((p − q) ω ÷ 2) long",
        ),
    ]
    form = _table_format(request)
    table = Table(("promise", "measured", "why"), rows)
    deliver(_lines(rows) if form == "text" else written(table, form), request.out)


def _lines(rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    yield from aligned([(promise, f"{measured}: {why}") for promise, measured, why in rows])


# Charts


def _deliver_chart(chart: LineChart, request: Request) -> None:
    form = _format(request)
    if form not in ("text", "svg"):
        raise UsageError(f"a chart is text or SVG, not {form}: leave --chart out")
    if form == "svg":
        deliver([svg.chart_svg(chart)], request.out)
        return
    from tui_transformer.explorer.widgets.chart_drawing import SERIES_GLYPHS, Inks, draw

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    legend = "   ".join(f"{SERIES_GLYPHS[i % len(SERIES_GLYPHS)]} {each.label}" for i, each in enumerate(chart.series))
    drawn = _ESCAPES.sub("", draw(chart, width, HEIGHT, Inks((), None, None)))
    deliver([f"{chart.title}\n{legend}\n", *(f"{line.rstrip()}\n" for line in drawn.splitlines())], request.out)


_SHOWN: Mapping[str, Callable[[Request], None]] = {"table": _table, "similarity": _similarity, "facts": _facts}
