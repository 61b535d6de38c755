"""Draw a chart of a step: a row as bars, a histogram, waves of positions, entropy of heads.

Example: tui-transformer chart embedding.positions --kind sines --out sines.svg
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.options import Edited


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The chart that is drawn, and where."""

    step: Annotated[
        str,
        typer.Argument(metavar="STEP", help="A name, or the end of one.", autocompletion=parsing.steps),
    ]
    kind: Annotated[
        str | None, typer.Option("--kind", help="Which chart, of those that suit the step; by default the first.")
    ] = None
    head: Annotated[int | None, typer.Option("--head", help="Which head, from 0.")] = None
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="ROW,COLUMN", help="The row that is drawn, the column marked.")
    ] = None
    format: Annotated[
        Literal["text", "svg"] | None,
        typer.Option("--format", help="Text by default; for a file, what its name ends in."),
    ] = None
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to .svg or .txt.")] = None
