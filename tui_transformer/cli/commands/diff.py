"""Compare a dump with a model: name the first wrong step, and the mistake that explains it.

A dump is what another program computed: npz, safetensors, a folder of npy, raw or text files, a log of printed
matrices, the JSON of transformers' debugger, the log of llama.cpp's callback. Two traces are compared step by step; two
models (names, folders or GGUF files of one model, quantized otherwise) by layer, by head and by their answers, too.
Exit code 0: all numbers of the dump were compared, and are the same; 1: a step differs; 3: what was compared is the
same, but something with numbers was not compared: it is named, with the reason. Token IDs are those of the dump, unless
a sentence or IDs are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli.options import Flags


@dataclass(frozen=True, kw_only=True)
class Request(Flags):
    """Two sides of a comparison, and how it is said."""

    first: Annotated[
        str | None, typer.Argument(metavar="DUMP", help="A dump, a trace, or a model's name or folder.")
    ] = None
    second: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="The same; without it, the model that the options name.")
    ] = None
    names: Annotated[
        Literal["auto", "transformers", "transformerlens", "ggml"],
        typer.Option("--names", help="Whose names of steps the dump has."),
    ] = "auto"
    map: Annotated[
        Path | None,
        typer.Option("--map", metavar="FILE", help="Lines `name = step` (or JSON): what names of the dump stand for."),
    ] = None
    matched: Annotated[
        bool,
        typer.Option("--matched", help="List what each array was taken for, how, and why others were not compared."),
    ] = False
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Cells differ by |a − b| > tolerance · max(1, |a|, |b|); by default, by more than rounding explains, "
            "1e-5 between two traces.",
        ),
    ] = None
    format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to write it.")] = "text"
    how: Annotated[
        Literal["pytorch", "transformers", "jax", "numpy", "cpp", "llama.cpp"] | None,
        typer.Option("--how", help="Print lines that write a dump, with the names that are looked for."),
    ] = None
    open: Annotated[
        bool, typer.Option("--open", help="Open the explorer at the first cell that is wrong, both values beside.")
    ] = False
