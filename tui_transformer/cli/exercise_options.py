"""The options of the commands of `exercise`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which course, in which language."""

    course: Annotated[
        Path | None, typer.Option("--course", metavar="FOLDER", help="A teacher's own exercises, a folder each.")
    ] = None
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", help="Of the texts, where they are translated.")
    ] = "en"


@dataclass(frozen=True, kw_only=True)
class Named(Place):
    """Which exercise."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="An exercise: its name or its number.")]


@dataclass(frozen=True, kw_only=True)
class Begun(Named):
    """The file that a learner begins with, and where it is written."""

    files: Annotated[bool, typer.Option("--files", help="The task and the inputs as text files, for any language.")] = (
        False
    )
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file, or with --files the folder, to write.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Checked(Place):
    """An answer, or all of a folder, and its limits."""

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An exercise; with --all, a folder of answers.")
    ] = None
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The answer, by default the file that start writes.")
    ] = None
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="A program instead, run where you are: it is given a folder of text files.",
        ),
    ] = None
    every: Annotated[bool, typer.Option("--all", help="Every answer of a folder; nothing is recorded.")] = False
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long an answer may take.")] = 10.0
    memory: Annotated[float, typer.Option("--memory", min=0.1, help="GiB that an answer may take.")] = 2.0
