"""The options of `vocab build`. As in `options`, nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tui_transformer.cli.typer_layer import SEVERAL


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """The texts that a vocabulary is built of, and how."""

    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Text files in UTF-8.")]
    kind: Annotated[Literal["word", "character", "bpe"], typer.Option("--kind", help="What the entries are.")] = "word"
    size: Annotated[int, typer.Option("--size", help="Entries at most, four special words among them.")] = 10_000
    min_frequency: Annotated[int, typer.Option("--min-frequency", help="How often an entry must come.")] = 1
    split: Annotated[
        Literal["words", "runs", "spaces"] | None,
        typer.Option(
            "--split",
            help="What a word is: a run of letters and digits, which an apostrophe may join (words, the default); "
            "runs alone; or whatever stands between spaces.",
        ),
    ] = None
    case: Annotated[
        Literal["lower", "kept"] | None,
        typer.Option("--case", help="Words in small letters (the default), or with the capitals that are written."),
    ] = None
    special: Annotated[
        str | None,
        typer.Option(
            "--special",
            metavar="NAMES",
            help="Names of padding, unknown, begin and end, by default [PAD],[UNK],[BOS],[EOS]; may be given again.",
        ),
        SEVERAL,
    ] = None
    counts: Annotated[bool, typer.Option("--counts", help="Show ID, count and entry instead of the file.")] = False
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file to write; .json for bpe.")
    ] = None
