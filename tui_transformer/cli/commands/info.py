"""Show versions, the device in use and why, and what machine and terminal offer.

Example: tui-transformer info --json
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli.typer_layer import single

app = single()


@app.command(help=__doc__)
def _info(
    *,
    device: Annotated[Literal["auto", "cpu", "gpu"], typer.Option("--device", help="Where to compute.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    from tui_transformer.cli.info import run

    run(device, as_json=json)
