"""Show attention rollout: how much of each input token has reached each token after a layer.

Example: tui-transformer rollout --model copy --layer 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Edited, Of


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which attention is rolled out, and how far."""

    of: Of = None
    layer: Annotated[int | None, typer.Option("--layer", help="Up to this layer; by default the last.")] = None
    everything: Annotated[bool, typer.Option("--all", help="Everything, however wide.")] = False
    format: Annotated[Literal["text", "json", "csv", "svg"], typer.Option("--format", help="How to write it.")] = "text"
