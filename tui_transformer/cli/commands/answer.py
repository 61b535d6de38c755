"""Show the most likely tokens at every position: words, logits, and probabilities at a temperature.

Example: tui-transformer answer --text "who hid the map ?"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tui_transformer.cli.options import Edited, TableFormat


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """How many tokens of which positions, and at which temperature."""

    top: Annotated[int, typer.Option("--top", min=1, help="How many tokens of each position.")] = 5
    temperature: Annotated[float, typer.Option("--temperature", help="Logits are divided by it.")] = 1.0
    position: Annotated[
        str | None,
        typer.Option(
            "--position", metavar="N|last|all", help="Only there; by default wherever the model was trained to answer."
        ),
    ] = None
    format: TableFormat = "text"
