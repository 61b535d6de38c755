"""Take out heads, layers, positions or neurons: what each does to the answer, or what changes without some.

Without WHAT every head is ablated alone, and the table is sorted by the effect on the output, or on a metric.

Example: tui-transformer ablate --model story --tokens Mira,the
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, LossTargets, Metric, Position, TableFormat, Tokens


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Targets that are ablated, and how."""

    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]…",
            help="head:SUBLAYER:NUMBER, layer:LAYER, position:NUMBER, position:LAYER:NUMBER or neuron:SUBLAYER:NUMBER.",
        ),
    ] = None
    each: Annotated[
        str | None,
        typer.Option(
            "--each", metavar="KIND", help="Without WHAT: head (the default), layer, position, neuron:SUBLAYER."
        ),
    ] = None
    mean: Annotated[bool, typer.Option("--mean", help="Set to the mean over the positions instead of 0.")] = False
    mean_of: Annotated[
        Path | None,
        typer.Option("--mean-of", metavar="FILE", help="Set to the mean over the tokens of all lines of a text file."),
    ] = None
    metric: Metric = None
    tokens: Tokens = None
    targets: LossTargets = None
    position: Position = None
    format: TableFormat = "text"
