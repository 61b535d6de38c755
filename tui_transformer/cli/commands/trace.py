"""Write every step of a forward pass to an npz file, under its name; its gradient as gradient/<name>.

Example: tui-transformer trace --out run.npz --steps "*.weights,output.*"
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.lazy import single
from tui_transformer.cli.once import together
from tui_transformer.cli.options import Flags, takes_flags
from tui_transformer.cli.parameters import Targets

app = single()


@app.command(help=__doc__)
@takes_flags
def _trace(
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="The file to write.")],
    steps: Annotated[
        list[str] | None,
        typer.Option("--steps", metavar="GLOB,…", help="Only the steps that match one of these; may be given again."),
    ] = None,
    targets: Targets = None,
    gradients: Annotated[
        bool, typer.Option("--gradients", help="Gradients of the mean cross-entropy too, of every step and weight.")
    ] = False,
    flags: Flags,
) -> None:
    from tui_transformer.cli.trace import Request, run

    run(flags, Request(out, together(steps), together(targets), gradients))
