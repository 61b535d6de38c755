"""Show positional encodings for any number of positions: the table, its waves, how alike positions are.

table: a row a position (sines in even dimensions, cosines in odd ones). similarity: PE · PE by distance. facts: what
the encoding promises, measured. --chart draws dimensions over positions; --files writes sines and cosines apart.

Example: tui-transformer positions --count 100 --d-model 64 --part sin --dimensions 0,8,16 --chart
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli.typer_layer import SEVERAL


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which encoding, and the views of it."""

    what: Annotated[
        Literal["table", "similarity", "facts"], typer.Argument(metavar="[table|similarity|facts]", show_default=False)
    ] = "table"
    count: Annotated[int, typer.Option("--count", min=1, help="How many positions.")] = 50
    d_model: Annotated[int, typer.Option("--d-model", min=1, help="How many dimensions.")] = 16
    part: Annotated[Literal["all", "sin", "cos"], typer.Option("--part", help="Sines, cosines, or both.")] = "all"
    dimensions: Annotated[
        str | None,
        typer.Option("--dimensions", metavar="0,2,4", help="Only these; may be given again."),
        SEVERAL,
    ] = None
    chart: Annotated[bool, typer.Option("--chart", help="Curves over the positions, or the distances.")] = False
    format: Annotated[
        Literal["text", "json", "csv", "dat", "svg"] | None,
        typer.Option(
            "--format",
            help="Text by default; for a file, what its name ends in. dat: a line `position dimension value` a number, "
            "and a blank line behind each position, as gnuplot's splot draws them.",
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to .txt, .json, .csv, .dat, .svg or .npz.")
    ] = None
    files: Annotated[
        Path | None,
        typer.Option("--files", metavar="FOLDER", help="Write sin and cos there, each as .txt, .dat and .svg."),
    ] = None
