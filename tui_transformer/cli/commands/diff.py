"""Compare two traces step by step and name the first that differs.

Exit code 0: every step that both have is the same; 1: one differs. Where no input is given, a model is traced on
the token IDs that the file holds.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.options import Flags, takes_flags

app = single()


@app.command(help=__doc__)
@takes_flags
def _diff(
    *,
    first: Annotated[str, typer.Argument(metavar="A", help="An npz trace, or a model's name or folder.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The same; without it, the model that the options name.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Cells differ by |a − b| > tolerance · max(1, |a|, |b|).")
    ] = 1e-5,
    flags: Flags,
) -> None:
    from tui_transformer.cli.diff import run

    run(flags, first, second, tolerance)
