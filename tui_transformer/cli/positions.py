"""`positions`: the positional encoding by itself, as numbers, curves and facts."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import parse_ids
from tui_transformer.cli.output import Table, deliver, emit_view
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.engine.backend import Host
    from tui_transformer.views.charts import LineChart
    from tui_transformer.views.view import View

MOST_CURVES = 8
WIDTH, HEIGHT = 80, 22
"""Of a chart as text that goes to no terminal."""

LIKE = (
    "PE(p) · PE(p + k) = Σ cos(k ÷ 10000^(2i/d)): it depends on the distance k alone. At 0 every cosine is 1; near it "
    "most still are, since most waves are long, so nearby positions are alike; far away "
    "they are in every part of their turn, and add up to less."
)


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Show positional encodings for any number of positions: the table, its waves, how alike positions are.

    table: a row a position (sines in even dimensions, cosines in odd ones). similarity: PE · PE by distance. facts:
    what the encoding promises, measured. --chart draws dimensions over positions; --files writes sines and cosines
    apart.

    Example: tui-transformer positions --count 100 --d-model 64 --part sin --dimensions 0,8,16 --chart
    """

    what: Literal["table", "similarity", "facts"] = argument(
        None, default="table", metavar="[table|similarity|facts]", show_default=False
    )
    count: int = option(50, "How many positions.", min=1)
    d_model: int = option(16, "How many dimensions.", min=1)
    part: Literal["all", "sin", "cos"] = option("all", "Sines, cosines, or both.")
    dimensions: str | None = option(None, "Only these; may be given again.", several=True, metavar="0,2,4")
    chart: bool = flag("Curves over the positions, or the distances.")
    format: Literal["text", "json", "csv", "dat", "svg"] | None = option(
        None,
        "Text by default; for a file, what its name ends in. dat: a line `position dimension value` a number, "
        "and a blank line behind each position, as gnuplot's splot draws them.",
    )
    out: Path | None = option(None, "Write to .txt, .json, .csv, .dat, .svg or .npz.", metavar="FILE")
    files: Path | None = option(None, "Write sin and cos there, each as .txt, .dat and .svg.", metavar="FOLDER")

    def run(self) -> None:
        if self.files is not None:
            self._write_files(self.files)
        elif self.what == "table":
            self._table()
        elif self.part != "all" or self.dimensions is not None:
            raise UsageError(f"--part and --dimensions are of the table: {self.what} takes every dimension")
        elif self.what == "similarity":
            self._similarity()
        else:
            self._facts()

    def _form(self) -> str:
        """The format that was asked for, by the name of the file where there is one."""
        from tui_transformer.report.export import check_suffix

        if self.format is not None or self.out is None:
            return self.format or "text"
        return check_suffix(self.out)

    def _emit(self, table: Table) -> None:
        if self._form() not in ("text", "json", "csv"):
            raise UsageError(f"a table is text, CSV or JSON, not {self._form()}")
        table.emit(self._form(), self.out)

    def _columns(self, part: str) -> tuple[int, ...]:
        from tui_transformer.analysis.positions import columns_of

        chosen = None if self.dimensions is None else parse_ids(self.dimensions, "--dimensions")
        return columns_of(self.d_model, part, chosen)

    def _table(self) -> None:
        from tui_transformer.analysis.positions import encoding

        columns = self._columns(self.part)
        table = encoding(self.d_model, self.count)
        if self.chart:
            self._deliver_chart(_waves(table, columns))
            return
        emit_view(_view(table, columns, self.part), self.format, self.out, everything=True)

    def _write_files(self, folder: Path) -> None:
        """Sines and cosines apart: their numbers as text, and their curves as figures."""
        from tui_transformer.analysis.positions import encoding
        from tui_transformer.report import svg
        from tui_transformer.report.export import export

        if self.out is not None or self.format is not None or self.what != "table":
            raise UsageError("--files writes the table's sines and cosines: leave --out, --format and the rest out")
        folder.mkdir(parents=True, exist_ok=True)
        table = encoding(self.d_model, self.count)
        for part in ("sin", "cos") if self.part == "all" else (self.part,):
            columns = self._columns(part)
            for ending in ("txt", "dat"):
                export(_view(table, columns, part), folder / f"{part}.{ending}")
            deliver([svg.chart_svg(_waves(table, columns))], folder / f"{part}.svg")

    def _similarity(self) -> None:
        from tui_transformer.analysis.positions import by_distance
        from tui_transformer.views.charts import LineChart, Series

        similarities = by_distance(self.d_model, self.count)
        if self.chart or self._form() == "svg":
            distances = tuple(float(distance) for distance, *_ in similarities)
            series = Series("PE · PE", distances, tuple(dot for _, dot, _ in similarities))
            self._deliver_chart(LineChart("PE(p) · PE(p + k)", "distance k", "dot product", (series,), counted=True))
            return
        self._emit(Table(("distance", "dot", "cosine"), similarities, 4, LIKE))

    def _facts(self) -> None:
        from tui_transformer.analysis.positions import COMPARED, SUMMED, facts
        from tui_transformer.report.numbers import aligned

        if self._form() not in ("text", "csv", "json") or self.chart:
            raise UsageError("facts are text, CSV or JSON: leave --chart and other formats out")
        known = facts(self.d_model, self.count)
        (distance, first, second), (apart, one, other) = known.nearest, known.sums
        rows: list[tuple[str, str, str]] = [
            (
                "bounded",
                f"all values lie from {known.lowest:.4f} to {known.highest:.4f}",
                "no sine or cosine is beyond −1 or 1",
            ),
            (
                "unique",
                f"the nearest rows{self._among(COMPARED)}, {first} and {second}, are {distance:.4g} apart"
                if distance < math.inf
                else "one row",
                "no two positions have every wave in the same place",
            ),
            (
                "the same everywhere",
                f"rows differ by {known.longer:g} in a table of {2 * self.count:,}",
                "a row is computed from its position alone, not from the sentence",
            ),
            (
                "sums told apart",
                f"the nearest sums{self._among(SUMMED)}, {one[0]} + {one[1]} and {other[0]} + {other[1]}, "
                f"are {apart:.4g} apart"
                if apart < math.inf
                else "one sum",
                "in each pair of dimensions PE(p) + PE(q) points where (p + q) ÷ 2 does, "
                "and is 2 cos((p − q) ω ÷ 2) long",
            ),
        ]
        if self._form() == "text":
            deliver(aligned([(promise, f"{measured}: {why}") for promise, measured, why in rows]), self.out)
        else:
            self._emit(Table(("promise", "measured", "why"), rows))

    def _among(self, compared: int) -> str:
        """Which positions were compared with each other, where not all were."""
        return f" of the first {compared:,} positions" if self.count > compared else ""

    def _deliver_chart(self, chart: LineChart) -> None:
        from tui_transformer.explorer.run import chart_drawing
        from tui_transformer.report import svg

        form = self._form()
        if form not in ("text", "svg"):
            raise UsageError(f"a chart is text or SVG, not {form}: leave --chart out")
        if form == "svg":
            deliver([svg.chart_svg(chart)], self.out)
            return
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        signs = itertools.cycle(chart_drawing.SERIES_GLYPHS)
        legend = "   ".join(f"{sign} {each.label}" for sign, each in zip(signs, chart.series, strict=False))
        no_inks = chart_drawing.Inks((), None, None)
        drawn = re.sub(r"\x1b\[[0-9;]*m", "", chart_drawing.draw(chart, width, HEIGHT, no_inks))
        deliver([f"{chart.title}\n{legend}\n", *(f"{line.rstrip()}\n" for line in drawn.splitlines())], self.out)


def _view(table: Host, columns: tuple[int, ...], part: str) -> View:
    from tui_transformer.views.view import Axis, View, window_of

    return View(
        name="embedding.positions",
        title="Positional encoding",
        rows=Axis("position", len(table), str),
        columns=Axis("dimension", len(columns), lambda i: str(columns[i])),
        kind="diverging",
        window=window_of(table[:, columns]),
        formula=f"{'sin, cos' if part == 'all' else part} (pos ÷ 10000^(2i/d))",
    )


def _waves(table: Host, columns: tuple[int, ...]) -> LineChart:
    """The curves of some dimensions; of many, as many as can be told apart, evenly spaced."""
    import numpy as np

    from tui_transformer.views.charts import LineChart, Series

    spaced = columns
    if len(columns) > MOST_CURVES:
        spaced = tuple(columns[i] for i in np.linspace(0, len(columns) - 1, MOST_CURVES).round().astype(int))
    positions = tuple(map(float, range(len(table))))
    series = tuple(
        Series(f"{'cos' if column % 2 else 'sin'} {column}", positions, tuple(table[:, column].tolist()))
        for column in spaced
    )
    return LineChart("Positional encoding over position", "position", "value", series, counted=True)
