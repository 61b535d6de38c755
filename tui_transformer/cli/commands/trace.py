"""Write every step of a forward pass to an npz file, under its name; its gradient as gradient/<name>.

Example: tui-transformer trace --out run.npz --steps "*.weights,output.*"
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, Metric, Position, Targets, Tokens
from tui_transformer.cli.typer_layer import SEVERAL


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The steps that are written (those that match a pattern, else all), and gradients of a loss or a metric."""

    out: Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="The file to write; .safetensors too.")]
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="GLOB,…", help="Only the steps that match one of these; may be given again."),
        SEVERAL,
    ] = None
    targets: Targets = None
    metric: Metric = None
    tokens: Tokens = None
    position: Position = None
    gradients: Annotated[
        bool,
        typer.Option("--gradients", help="Gradients too, of every step and weight: of the cross-entropy, or a metric."),
    ] = False
