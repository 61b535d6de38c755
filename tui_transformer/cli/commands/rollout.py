"""Show attention rollout: how much of each input token has reached each token after a layer.

Example: tui-transformer rollout --model copy --layer 1
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import Of

app = single()


@app.command(help=__doc__)
@takes_flags
def _rollout(
    *,
    of: Of = None,
    layer: Annotated[int | None, typer.Option("--layer", help="Up to this layer; by default the last.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False,
    format: Annotated[
        Literal["text", "json", "csv", "svg"], typer.Option("--format", help="How to write it.")
    ] = "text",
    flags: Flags,
) -> None:
    from tui_transformer.cli.rollout import run

    run(flags, of, layer, format, everything=everything)
