"""Give a step the values that it has for another sentence, and show what changes.

Example: tui-transformer patch weights --ids 6,7,8 --from-ids 9,7,8
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli import completion
from tui_transformer.cli.lazy import single
from tui_transformer.cli.once import together
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
    from_ids: Annotated[
        list[str] | None,
        typer.Option("--from-ids", metavar="4,5,6", help="Its token IDs instead; may be given again."),
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option("--rows", metavar="3,5", help="Only these rows; may be given again.")
    ] = None,
    head: Annotated[
        list[str] | None, typer.Option("--head", metavar="0,2", help="Only these heads; may be given again.")
    ] = None,
    position: Position = None,
    format: Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")] = "text",
    flags: Flags,
) -> None:
    from tui_transformer.cli.patch import Request, run

    run(flags, Request(step, from_text, together(from_ids), together(rows), together(head), position, format))
