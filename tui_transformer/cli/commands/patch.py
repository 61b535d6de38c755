"""Give a step the values that it has for another sentence, and show what changes; with --each, a table of all places.

Example: tui-transformer patch weights --ids 6,7,8 --from-ids 9,7,8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.options import Edited, LossTargets, Metric, Position, Tokens
from tui_transformer.cli.typer_layer import SEVERAL


@dataclass(frozen=True, kw_only=True)
class Request(Edited):
    """The step that is patched, and from where."""

    step: Annotated[
        str | None,
        typer.Argument(metavar="STEP", autocompletion=parsing.steps, help="A step; not with --each."),
    ] = None
    each: Annotated[
        Literal["position", "head", "layer"] | None,
        typer.Option(
            "--each", help="Every position behind every layer, every head, or every layer, each patched alone."
        ),
    ] = None
    of: Annotated[
        str | None,
        typer.Option(
            "--of", metavar="KIND", help="With --each: encoder, decoder or cross; by default the last that there is."
        ),
    ] = None
    metric: Metric = None
    tokens: Tokens = None
    targets: LossTargets = None
    from_text: Annotated[
        str | None, typer.Option("--from-text", metavar="SENTENCE", help="The sentence that the values come from.")
    ] = None
    from_ids: Annotated[
        str | None,
        typer.Option("--from-ids", metavar="4,5,6", help="Its token IDs instead; may be given again."),
        SEVERAL,
    ] = None
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="3,5", help="Only these rows; may be given again."), SEVERAL
    ] = None
    head: Annotated[
        str | None, typer.Option("--head", metavar="0,2", help="Only these heads; may be given again."), SEVERAL
    ] = None
    position: Position = None
    format: Annotated[
        Literal["text", "json", "csv", "svg"], typer.Option("--format", help="How to write it; svg with --each alone.")
    ] = "text"
