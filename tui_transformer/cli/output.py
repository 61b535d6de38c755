"""What commands write: data on standard output, notes beside it, tables, and steps as runs of cells."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

if TYPE_CHECKING:
    from tui_transformer.engine.axis import Shape
    from tui_transformer.engine.backend import Host
    from tui_transformer.engine.trace import Trace
    from tui_transformer.report.text import Page
    from tui_transformer.views.view import View

BROKEN_PIPE = 128 + 13
"""The exit code when the reader of standard output has gone (SIGPIPE)."""


def emit(pieces: Iterable[str]) -> None:
    """Write data to standard output; InputError where it cannot take them, because its disk is full for example."""
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


def emit_json(data: object, indent: int | None = 1) -> None:
    """Write an object."""
    emit([json_text(data, indent)])


def json_text(data: object, indent: int | None = 1) -> str:
    """An object as a text that ends in a line; a number that is not finite has to be null already."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"


def jsonable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as JSON can hold them: null in place of a number that is infinite, or none."""
    odd = [name for name, value in values.items() if isinstance(value, float) and not math.isfinite(value)]
    return {**values, **dict.fromkeys(odd)}


def emit_csv(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write columns and rows."""
    from tui_transformer.report.export import csv_text

    emit([csv_text([columns, *rows])])


def not_written(error: OSError) -> str:
    """Why standard output takes nothing."""
    return f"standard output: cannot be written: {error.strerror}"


def discard_output(stream: TextIO | None = None) -> None:
    """Nothing more is written at exit, where a second failure could not be caught: on stdout, or another stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())


def deliver(pieces: Iterable[str], out: Path | None) -> None:
    """Write data to a file, or to standard output where there is none."""
    if out is None:
        emit(pieces)
    else:
        from tui_transformer.report.export import write_pieces

        write_pieces(out, pieces)
        note(f"wrote {out}")


def page(*, everything: bool) -> Page:
    """As wide as the terminal, or everything."""
    from tui_transformer.report import text

    if everything:
        return text.EVERYTHING
    return text.Page(width=shutil.get_terminal_size().columns) if sys.stdout.isatty() else text.DEFAULT_PAGE


def emit_view(view: View, form: str | None, out: Path | None = None, *, everything: bool = False) -> None:
    """Write a matrix in a format; None for text, or for what the name of the file says."""
    from tui_transformer.report import text
    from tui_transformer.report.export import FORMATS, export

    if out is not None and form is None:
        export(view, out)
        note(f"wrote {out}")
    elif form in (None, "text"):
        deliver([text.render(view, page(everything=everything or out is not None))], out)
    else:
        deliver(FORMATS[form](view), out)


NUMBERS = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".dat", ".parquet", ".npz", ".npy", ".safetensors", ".gguf")
ENDINGS = frozenset((*NUMBERS, ".toml", ".svg", ".png", ".apng", ".gif", ".html", ".cast"))
"""Of files in formats that are known: a name that ends so says what is in its file."""


def check_ending(out: Path | None, what: str, own: Collection[str]) -> None:
    """Refuse a file whose name says that another format is in it than those that it can have."""
    if out is not None and out.suffix.lower() in ENDINGS - {*own}:
        raise UsageError(f"--out {out}: {what} ends in {', '.join(own)}")


def note(message: str) -> None:
    """One line to standard error."""
    typer.echo(visible(message), err=True)


Value = str | int | float | None
Row = tuple[Value, ...]


@dataclass(frozen=True)
class Table:
    """Columns and rows; a text shows so many digits behind the point, and a note of all rows under them."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    digits: int = 3
    note: str = ""

    def emit(self, form: str, out: Path | None = None) -> None:
        """Write it; JSON is a list of objects, numbers are exact in JSON and CSV, but for ∞, which JSON has not."""
        deliver(self.pieces(form), out)

    def pieces(self, form: str) -> Iterator[str]:
        """The table in a format."""
        if form == "text":
            from tui_transformer.report.numbers import aligned

            numbers = {i for row in self.rows for i, value in enumerate(row) if isinstance(value, int | float)}
            yield from aligned([self.columns, *([self._shown(value) for value in row] for row in self.rows)], numbers)
            yield f"\n{visible(self.note)}\n" if self.note else ""
        elif form == "json":
            yield json_text([jsonable(dict(zip(self.columns, row, strict=True))) for row in self.rows])
        else:
            from tui_transformer.report.export import csv_text

            present = (("" if value is None else value for value in map(_present, row)) for row in self.rows)
            yield csv_text([self.columns, *present])

    def _shown(self, value: Value) -> str:
        if _present(value) is None:
            return "–"
        return f"{value:.{self.digits}f}" if isinstance(value, float) else visible(str(value))


def _present(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


def by_size(value: Value, sign: int = -1) -> tuple[bool, float]:
    """What rows are sorted by for the largest value first, or with the sign 1 the smallest; those without it last."""
    number = float(value) if isinstance(value, int | float) else math.nan
    return math.isnan(number), 0.0 if math.isnan(number) else sign * number


def full_shape(trace: Trace, name: str) -> Shape:
    """The shape of a step as it is handed out: with a batch axis where there is more than one sentence."""
    shape = trace.program.shape(name)
    return shape if trace.batch == 1 else (trace.batch, *shape)


def runs(trace: Trace, name: str) -> Iterator[Host]:
    """The cells of a step in order, as runs on one axis, each computed when it is asked for."""
    for item in range(trace.batch):
        for _, block in trace.blocks(name, item=item):
            yield block.reshape(-1)
