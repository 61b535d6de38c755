"""Where the commands write: data to standard output or a file, messages to standard error."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tui_transformer.errors import InputError
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.report import text

BROKEN_PIPE = 128 + 13
"""The exit code when the reader of standard output has gone (SIGPIPE)."""


def emit(pieces: Iterable[str]) -> None:
    """Write data to standard output.

    Raises:
        InputError: It cannot take the data, because its disk is full for example.
    """
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError as error:
        discard_output()
        raise typer.Exit(BROKEN_PIPE) from error
    except OSError as error:
        discard_output()
        raise InputError(not_written(error)) from error


def not_written(error: OSError) -> str:
    """Why standard output takes nothing."""
    return f"standard output: cannot be written: {error.strerror}"


def discard_output() -> None:
    """Nothing more is written at exit, where a second failure could not be caught."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def deliver(pieces: Iterable[str], out: Path | None) -> None:
    """Write data to a file, or to standard output where there is none.

    Raises:
        InputError: It cannot be written.
    """
    from tui_transformer.report.export import write_pieces

    if out is None:
        emit(pieces)
    else:
        write_pieces(out, pieces)
        note(f"wrote {out}")


def page(*, everything: bool) -> text.Page:
    """As wide as the terminal, or everything."""
    from tui_transformer.report import text

    if everything:
        return text.EVERYTHING
    return text.Page(width=shutil.get_terminal_size().columns) if sys.stdout.isatty() else text.DEFAULT_PAGE


def note(message: str) -> None:
    """One line to standard error."""
    typer.echo(visible(message), err=True)
