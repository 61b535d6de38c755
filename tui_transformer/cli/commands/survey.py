"""Measure heads, neurons and the logit lens over many texts, with confidence intervals and the strongest examples.

FILES hold a text a line, or JSONL with a `text` in every object; - is standard input. A row of the result is the mean
over texts of a measure of one head, with its 95 % confidence interval and how many texts have it. What is done is kept
when esc or ctrl+c stops it; the same command goes on. Whatever the workers are, the result is the same to the last bit.

Example: tui-transformer survey text.txt --model story --measure induction,previous --workers 2 --out heads.csv
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli import parsing
from tui_transformer.cli.options import Metric, Tokens
from tui_transformer.cli.typer_layer import SEVERAL


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which texts, what of them, with which model, and where to."""

    files: Annotated[list[str], typer.Argument(metavar="FILES…", help="Text files, JSONL files, or -.")]
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The results: FILE.csv, FILE.json or FILE.parquet.")
    ]
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="FOLDER|NAME",
            help="A trained model, a built-in one of random weights, or a checkpoint's folder.",
            autocompletion=parsing.models,
        ),
    ] = parsing.USUAL
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="NAME,…",
            help="entropy, previous, first, itself, separators, induction (all six by default), distance, kind, "
            "ablation, ablation-mean, lens, neurons, context. May be given again.",
        ),
        SEVERAL,
    ] = None
    metric: Metric = None
    tokens: Tokens = None
    layers: Annotated[
        str | None,
        typer.Option("--layers", metavar="0,3-5", help="Only these layers. May be given again."),
        SEVERAL,
    ] = None
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes, each with the model and on one core.  [default: 1]"),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray", metavar="[ADDRESS]", help="On Ray: here, or on a cluster: HOST:PORT, ray://HOST:PORT, auto."
        ),
    ] = None
    top: Annotated[
        int, typer.Option("--top", min=0, max=100, help="Strongest examples of every head that are kept.")
    ] = 5
    length: Annotated[int, typer.Option("--length", min=1, help="Longer texts are cut to so many tokens.")] = 512
    vocab: Annotated[
        str | None,
        typer.Option("--vocab", metavar="FILE|NAME", help="A vocabulary.", autocompletion=parsing.vocabularies),
    ] = None
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the random weights of a built-in model.")] = None
    device: Annotated[Literal["auto", "cpu", "gpu"], typer.Option("--device", help="Where to compute.")] = "auto"
    dtype: Annotated[Literal["float32", "float64"], typer.Option("--dtype", help="Precision.")] = "float32"
