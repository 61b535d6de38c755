"""List how many tokens each expert of a mixture got, layer by layer; or which experts every token chose.

Example: tui-transformer experts --model mixtral --who
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, OneLayer, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which layer, and whether tokens are listed."""

    layer: OneLayer = None
    who: Annotated[bool, typer.Option("--who", help="A line for every token and expert that it chose.")] = False
    format: TableFormat = "text"
