"""What commands write: data on standard output, notes beside it, tables, and steps as runs of cells."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.report.export import csv_text
from tui_transformer.text.display import cells, fit, visible

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


Format = Literal["text", "json", "csv"]
Value = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows of values under the names of their columns; NaN and None are values that are not there.

    Attributes:
        columns: Their names.
        rows: As many values each.
        digits: Digits behind the point in text.
        note: What is to be known of all rows, in text under them.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Value, ...]]
    digits: int = 3
    note: str = ""


def written(table: Table, form: Format) -> Iterator[str]:
    """The table in a format; JSON is a list of objects, numbers are exact in JSON and CSV."""
    return _WRITERS[form](table)


def by_size(value: Value, sign: int = -1) -> tuple[bool, float]:
    """What rows are sorted by for the largest value first, or with the sign 1 the smallest; those without it last."""
    number = float(value) if isinstance(value, int | float) else math.nan
    return math.isnan(number), 0.0 if math.isnan(number) else sign * number


def _text(table: Table) -> Iterator[str]:
    """Columns side by side, numbers at the right."""
    lines = [[_shown(value, table.digits) for value in row] for row in table.rows]
    widths = [max(map(cells, column)) for column in zip(table.columns, *lines, strict=True)]
    right = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(table.columns))]
    for line in (table.columns, *lines):
        yield "  ".join(map(_cell, line, widths, right)).rstrip() + "\n"
    if table.note:
        yield f"\n{visible(table.note)}\n"


def _cell(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - called by map
    return fit(text, width, "right" if right else "left")


def _shown(value: Value, digits: int) -> str:
    if _absent(value):
        return "–"
    return f"{value:.{digits}f}" if isinstance(value, float) else visible(str(value))


def _absent(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _present(row: Iterable[Value]) -> Iterator[Value]:
    return (None if _absent(value) else value for value in row)


def _json(table: Table) -> Iterator[str]:
    objects = [dict(zip(table.columns, _present(row), strict=True)) for row in table.rows]
    yield json.dumps(objects, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _csv(table: Table) -> Iterator[str]:
    rows = (["" if value is None else value for value in _present(row)] for row in table.rows)
    yield csv_text([table.columns, *rows])


_WRITERS = {"text": _text, "json": _json, "csv": _csv}


def full_shape(trace: Trace, name: str) -> Shape:
    """The shape of a step as it is handed out: with a batch axis where there is more than one sentence."""
    shape = trace.program.shape(name)
    return shape if trace.batch == 1 else (trace.batch, *shape)


def runs(trace: Trace, name: str) -> Iterator[Host]:
    """The cells of a step in order, as runs on one axis, each computed when it is asked for."""
    for item in range(trace.batch):
        for _, block in trace.blocks(name, item=item):
            yield block.reshape(-1)
