"""Measure every head: entropy, and attention to the previous token, the first, itself and separators.

A measure is the mean over the real tokens; – where a head has none.

Example: tui-transformer heads --model copy --sort induction
"""

from __future__ import annotations

from typing import Annotated

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import HideFirst, HideSpecial, Of, OneLayer, TableFormat

app = single()


@app.command(help=__doc__)
@takes_flags
def _heads(
    *,
    of: Of = None,
    layer: OneLayer = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="MEASURE", help="entropy, previous, first, itself, separators or induction."),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The lowest first, or the last layer first.")] = False,
    hide_special: HideSpecial = False,
    hide_first: HideFirst = False,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    from tui_transformer.analysis.token_kinds import Hidden
    from tui_transformer.cli.heads import Request, run

    run(flags, Request(of, layer, sort, reverse, Hidden(hide_special, hide_first), format))
