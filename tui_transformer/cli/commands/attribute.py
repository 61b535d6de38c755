"""Say what every head, layer and embedding writes toward a logit, or every token by gradients toward any metric.

By terms (the default): the norms are frozen as they are in the forward pass; the terms sum to the logit, or to the
difference of two. By gradient: gradient × input, or integrated gradients, whose sum is the metric less that of the
baseline; the remainder is said.

Example: tui-transformer attribute --model story --tokens Mira,the --by integrated
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Edited, LossTargets, Metric, Position, TableFormat
from tui_transformer.cli.typer_layer import SEVERAL


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
    by: Annotated[
        Literal["terms", "gradient", "integrated"],
        typer.Option("--by", help="Terms of the logit, gradient × input of every token, or integrated gradients."),
    ] = "terms"
    metric: Metric = None
    targets: LossTargets = None
    of: Annotated[
        str, typer.Option("--of", metavar="STEP", help="By gradient: the input, a step with a row for each token.")
    ] = "embedding.output"
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", metavar="0|mean|WORD", help="Integrated from 0, the mean of the rows, or those of a word."
        ),
    ] = "0"
    points: Annotated[int, typer.Option("--points", min=1, max=10_000, help="Of the integration.")] = 64
    position: Position = None
    neurons: Annotated[bool, typer.Option("--neurons", help="Every neuron apart.")] = False
    top: Annotated[int | None, typer.Option("--top", min=1, help="So many of the largest terms alone.")] = None
    format: TableFormat = "text"
