"""Show the logit lens: which words the residual stream spells after each layer, or every head raises.

With --tuned FILE an affine map of each layer is fitted on the lines of a text file (tuned lens), and both are shown.

Example: tui-transformer lens --model story --token 3 --top 3
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """Which layer and token, and how many words of each."""

    layer: Annotated[
        int | None, typer.Option("--layer", min=-1, help="Only this layer; -1 is what enters the first one.")
    ] = None
    token: Annotated[int | None, typer.Option("--token", min=0, help="Only this token, from 0.")] = None
    by_head: Annotated[
        bool, typer.Option("--by-head", help="What every head alone raises at the token, the norms frozen.")
    ] = False
    less_mean: Annotated[
        bool, typer.Option("--less-mean", help="By head: less what it writes on average over the tokens.")
    ] = False
    tuned: Annotated[
        Path | None,
        typer.Option("--tuned", metavar="FILE", help="Beside it the tuned lens, fitted on the lines of a text file."),
    ] = None
    top: Annotated[int, typer.Option("--top", min=1, help="How many words of each.")] = 1
    format: TableFormat = "text"
