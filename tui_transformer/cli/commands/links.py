"""List the largest attention weights: which token looks at which, in which head.

Example: tui-transformer links --model copy --head 1 --top 5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, HideFirst, HideSpecial, Of, OneLayer, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which links, and without which tokens."""

    of: Of = None
    layer: OneLayer = None
    head: Annotated[int | None, typer.Option("--head", help="Only this head, from 0.")] = None
    top: Annotated[int, typer.Option("--top", min=1, help="How many.")] = 20
    itself: Annotated[
        bool, typer.Option("--itself/--no-itself", help="With links from a token to itself, or without.")
    ] = True
    hide_special: HideSpecial = False
    hide_first: HideFirst = False
    format: TableFormat = "text"
