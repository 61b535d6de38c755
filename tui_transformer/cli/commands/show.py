"""Show the steps, one step, or how one cell was made.

Example: tui-transformer show weights --head 2 --explain 0,8
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.options import Edited, Metric, Position, Targets, Tokens


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The step that is shown, and how."""

    step: Annotated[
        str | None,
        typer.Argument(
            metavar="STEP",
            help="A name, the end of one, or a pattern with *; without it, all steps are listed.",
            autocompletion=parsing.steps,
        ),
    ] = None
    head: Annotated[
        str | None, typer.Option("--head", metavar="N|all", help="Which head, from 0; in text all, below each other.")
    ] = None
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="ROW,COLUMN", help="The terms that made one cell.")
    ] = None
    gradient: Annotated[
        bool,
        typer.Option("--gradient", help="The gradient instead of the values: of the mean cross-entropy, or a metric."),
    ] = False
    targets: Targets = None
    metric: Metric = None
    tokens: Tokens = None
    position: Position = None
    format: Annotated[
        Literal["text", "json", "csv", "dat", "svg"] | None,
        typer.Option("--format", help="Text by default; for a file, what its name ends in."),
    ] = None
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to .txt, .json, .csv, .dat, .svg or .npz.")
    ] = None
