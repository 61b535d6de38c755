"""Take out heads, layers, positions or neurons: what each does to the answer, or what changes without some.

Without WHAT every head is ablated alone, and the table is sorted by the effect on the output.

Example: tui-transformer ablate head:encoder.0.self_attention:2
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import Position

app = single()


@app.command(help=__doc__)
@takes_flags
def _ablate(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]…",
            help="head:SUBLAYER:NUMBER, layer:LAYER, position:NUMBER, position:LAYER:NUMBER or neuron:SUBLAYER:NUMBER.",
        ),
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(
            "--each", metavar="KIND", help="Without WHAT: head (the default), layer, position, neuron:SUBLAYER."
        ),
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Set to the mean over the positions instead of 0.")] = False,
    position: Position = None,
    format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")] = "text",
    flags: Flags,
) -> None:
    from tui_transformer.cli.ablate import Request, run

    run(flags, Request(what or (), each, mean, position, format))
