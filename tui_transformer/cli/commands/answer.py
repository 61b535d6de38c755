"""Show the most likely tokens at every position: words, logits, and probabilities at a temperature.

Example: tui-transformer answer --text "who hid the map ?"
"""

from __future__ import annotations

from typing import Annotated

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import TableFormat

app = single()


@app.command(help=__doc__)
@takes_flags
def _answer(
    *,
    top: Annotated[int, typer.Option("--top", min=1, help="How many tokens of each position.")] = 5,
    temperature: Annotated[float, typer.Option("--temperature", help="Logits are divided by it.")] = 1.0,
    position: Annotated[
        str | None,
        typer.Option(
            "--position", metavar="N|last|all", help="Only there; by default wherever the model was trained to answer."
        ),
    ] = None,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    from tui_transformer.cli.answer import Request, run

    run(flags, Request(top, temperature, position, format))
