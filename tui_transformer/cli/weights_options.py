"""What `weights list` and `weights export` take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Flags, TableFormat


@dataclass(frozen=True, kw_only=True)
class ListRequest(Flags):
    """Whose weights are listed, and how."""

    format: TableFormat = "text"


@dataclass(frozen=True, kw_only=True)
class ExportRequest(Flags):
    """Whose weights are written, where to, and how."""

    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FOLDER|FILE",
            help="A new folder with config.json and the vocabulary, which --model opens; or a file that ends in "
            ".safetensors or .npz, for the weights alone.",
        ),
    ]
    format: Annotated[
        Literal["safetensors", "npz", "raw", "csv"] | None,
        typer.Option(
            "--format",
            help="raw: a file of bare numbers a weight and shapes.json; csv: a table a weight.  [default: what the "
            "file's name says, else safetensors]",
        ),
    ] = None
