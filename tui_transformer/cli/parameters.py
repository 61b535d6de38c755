"""Parameters that several commands take."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tui_transformer.cli.requests import SEVERAL

Position = Annotated[
    str | None,
    typer.Option(
        "--position",
        metavar="N|last|all",
        help="Where the answer is read; by default where the model answers, mostly the last token.",
    ),
]
Targets = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="7,9,-1",
        help="The right token ID at every position; -1 = not counted. May be given again: the lists are put together.",
    ),
    SEVERAL,
]
LossTargets = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="WORD|ID,…",
        help="Of the loss: what is right at every position, -1 = not counted; by default the next token. "
        "May be given again.",
    ),
    SEVERAL,
]
Of = Annotated[
    str | None,
    typer.Option("--of", metavar="KIND", help="Which attention: encoder, decoder or cross; by default the first."),
]
OneLayer = Annotated[int | None, typer.Option("--layer", help="Only this layer, from 0.")]
HideSpecial = Annotated[
    bool, typer.Option("--hide-special", help="Leave special tokens out and make the rest of each row sum to 1.")
]
HideFirst = Annotated[bool, typer.Option("--hide-first", help="The same with the first token.")]
TableFormat = Annotated[Literal["text", "json", "csv"], typer.Option("--format", help="How to write it.")]
Metric = Annotated[
    Literal["divergence", "logit", "log-probability", "difference", "loss"] | None,
    typer.Option(
        "--metric",
        help="What is measured: KL divergence, a logit, ln p, the difference of two logits, or the loss. "
        "By default by how many tokens are named: none, one or two.",
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="WORD[,WORD]",
        help="The words or IDs that are measured; of two, the difference of their logits. May be given again.",
    ),
    SEVERAL,
]
