"""List the largest attention weights: which token looks at which, in which head.

Example: tui-transformer links --model copy --head 1 --top 5
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
def _links(
    *,
    of: Of = None,
    layer: OneLayer = None,
    head: Annotated[int | None, typer.Option("--head", help="Only this head, from 0.")] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many.")] = 20,
    itself: Annotated[
        bool, typer.Option("--itself/--no-itself", help="With links from a token to itself, or without.")
    ] = True,
    hide_special: HideSpecial = False,
    hide_first: HideFirst = False,
    format: TableFormat = "text",
    flags: Flags,
) -> None:
    from tui_transformer.analysis.links import Wanted
    from tui_transformer.analysis.token_kinds import Hidden
    from tui_transformer.cli.links import Request, run

    run(flags, Request(of, layer, Wanted(top, head, itself), Hidden(hide_special, hide_first), format))
