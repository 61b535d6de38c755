"""List what the weights of every head do by themselves: OV and QK, their norms, singular values, copying score.

No sentence is needed: the matrices W_Q, W_K, W_V and W_O of a head are looked at.

Example: tui-transformer circuits --model copy --sort copying
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Edited
from tui_transformer.cli.parameters import OneLayer, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which heads, in which order, and which numbers."""

    layer: OneLayer = None
    sort: Annotated[
        Literal["copying", "ov", "qk"] | None, typer.Option("--sort", help="By the copying score or a norm.")
    ] = None
    values: Annotated[
        Literal["ov", "qk"] | None, typer.Option("--values", help="Singular values and eigenvalues of it, a row each.")
    ] = None
    format: TableFormat = "text"
