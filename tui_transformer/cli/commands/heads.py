"""Measure every head: entropy, and attention to the previous token, the first, itself and separators.

A measure is the mean over the real tokens; – where a head has none.

Example: tui-transformer heads --model copy --sort induction
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, HideFirst, HideSpecial, Of, OneLayer, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which heads, in which order, without which tokens."""

    of: Of = None
    layer: OneLayer = None
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="MEASURE", help="entropy, previous, first, itself, separators or induction."),
    ] = None
    reverse: Annotated[bool, typer.Option("--reverse", help="The lowest first, or the last layer first.")] = False
    hide_special: HideSpecial = False
    hide_first: HideFirst = False
    format: TableFormat = "text"
