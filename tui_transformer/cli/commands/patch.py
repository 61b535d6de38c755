"""Give a step the values that it has for another sentence, and show what changes."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli import completion
from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import Position

app = single()


@app.command(help=__doc__)
@takes_flags
def _patch(
    *,
    step: Annotated[str, typer.Argument(metavar="STEP", autocompletion=completion.steps, help="A step.")],
    from_text: Annotated[
        str | None, typer.Option("--from-text", metavar="SENTENCE", help="The sentence that the values come from.")
    ] = None,
    from_ids: Annotated[str | None, typer.Option("--from-ids", metavar="4,5,6", help="Its token IDs instead.")] = None,
    rows: Annotated[str | None, typer.Option("--rows", metavar="3,5", help="Only these rows.")] = None,
    head: Annotated[str | None, typer.Option("--head", metavar="0,2", help="Only these heads.")] = None,
    position: Position = None,
    format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")] = "text",
    flags: Flags,
) -> None:
    from tui_transformer.cli.patch import Request, run

    run(flags, Request(step, from_text, from_ids, rows, head, position, format))
