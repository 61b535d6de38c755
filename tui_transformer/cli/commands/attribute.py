"""Say what every head, layer and embedding writes toward a logit, or toward the difference of two.

The norms are frozen as they are in the forward pass; the terms sum to the logit.

Example: tui-transformer attribute --model story --tokens Mira,the --top 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import SEVERAL, Edited
from tui_transformer.cli.parameters import Position, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Of which logit, and how finely."""

    tokens: Annotated[
        str | None,
        typer.Option(
            "--tokens",
            metavar="WORD[,WORD]",
            help="A word or ID, by default the likeliest; of two, the difference of their logits. May be given again.",
        ),
        SEVERAL,
    ] = None
    position: Position = None
    neurons: Annotated[bool, typer.Option("--neurons", help="Every neuron apart.")] = False
    top: Annotated[int | None, typer.Option("--top", min=1, help="So many of the largest terms alone.")] = None
    format: TableFormat = "text"
