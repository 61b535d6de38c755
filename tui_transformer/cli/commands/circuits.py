"""List what the weights of every head do by themselves: OV and QK, their norms, singular values, copying score.

No sentence is needed: the matrices W_Q, W_K, W_V and W_O of a head are looked at, and with --matrix shown. With
--compose, how much of what a head reads is what an earlier head writes.

Example: tui-transformer circuits --model copy --sort copying
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Edited, Of, OneLayer


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
    matrix: Annotated[
        Literal["ov", "qk", "q", "k", "v", "o"] | None,
        typer.Option("--matrix", help="One matrix of a head, by default of layer 0 and head 0, in full."),
    ] = None
    head: Annotated[int | None, typer.Option("--head", min=0, help="With --matrix: which head, from 0.")] = None
    of: Of = None
    compose: Annotated[
        Literal["Q", "K", "V"] | None,
        typer.Option("--compose", help="Scores of every head with every earlier one: into its queries, keys, values."),
    ] = None
    top: Annotated[int | None, typer.Option("--top", min=1, help="So many of the largest scores alone.")] = None
    format: Annotated[
        Literal["text", "json", "csv", "svg"],
        typer.Option("--format", help="How to write it; svg with --compose or --matrix."),
    ] = "text"
