"""Show the steps, one step, or how one cell was made.

Example: tui-transformer show weights --head 2 --explain 0,8
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli import completion
from tui_transformer.cli.lazy import single
from tui_transformer.cli.once import together
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import Targets

app = single()


@app.command(help=__doc__)
@takes_flags
def _show(
    *,
    step: Annotated[
        str | None,
        typer.Argument(
            metavar="STEP",
            help="A name, the end of one, or a pattern with *; without it, all steps are listed.",
            autocompletion=completion.steps,
        ),
    ] = None,
    head: Annotated[int | None, typer.Option("--head", help="Which head, from 0.")] = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="ROW,COLUMN", help="The terms that made one cell.")
    ] = None,
    gradient: Annotated[
        bool, typer.Option("--gradient", help="The gradient of the mean cross-entropy instead of the values.")
    ] = False,
    targets: Targets = None,
    format: Annotated[
        Literal["text", "json", "csv", "svg"] | None,
        typer.Option("--format", help="Text by default; for a file, what its name ends in."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to .txt, .json, .csv, .svg or .npz.")
    ] = None,
    flags: Flags,
) -> None:
    from tui_transformer.cli.show import Request, run

    run(flags, Request(step, head, explain, format, everything, out, together(targets), gradient))
