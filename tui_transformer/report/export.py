"""A view as a file, in the format that its name says: text, JSON, CSV, points, SVG or NPZ.

A format is made in parts, a few rows at a time. A number is the shortest text that reads back as the same value in the
step's precision.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import writing
from tui_transformer.records import dataclass
from tui_transformer.report import text
from tui_transformer.report.numbers import blocks, exact, full_shape
from tui_transformer.report.svg import view_svg
from tui_transformer.text.files import shown_path
from tui_transformer.views.view import Axis, View

Pieces = Iterable[str]
MONOSPACE = "DejaVu Sans Mono"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every entry of an archive, so that the same trace gives the same bytes."""


def export(view: View, path: Path) -> None:
    """Write a view whole, as text, JSON, CSV, points, SVG or NPZ by the suffix of the path.

    Raises:
        InputError: Another suffix, a view that does not fit the format, or a file that cannot be written.
    """
    kind = check_suffix(path)
    if kind != "npz":
        write_pieces(path, FORMATS[kind](view))
        return
    values = view.window(range(view.rows.size), range(view.columns.size))
    is_matrix = view.rows.name and view.columns.name
    with writing(path) as file:
        write_npz(file, [(view.name, values if is_matrix else values.reshape(-1))])


def check_suffix(path: Path) -> str:
    """The format that a path's suffix says; InputError for any other suffix."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{shown_path(path)}: the name has to end in {', '.join(SUFFIXES)}")
    return kind


def write_pieces(path: Path, pieces: Pieces) -> None:
    """Write text in UTF-8, as it is made; InputError where it cannot be, and an older file is as it was."""
    with writing(path) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", errors="backslashreplace"))


def csv_pieces(view: View) -> Iterator[str]:
    """CSV with labels in the first row and column; a masked cell is `-inf`."""
    labels = [view.columns.label(column) if view.columns.name else view.name for column in range(view.columns.size)]
    yield csv_text([["", *labels]])
    for rows, values in blocks(view):
        yield csv_text([view.rows.label(row), *texts] for row, texts in zip(rows, exact(values), strict=True))


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV; lines end in CR LF (RFC 4180)."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def json_pieces(view: View) -> Iterator[str]:
    """One strict JSON object: name, shape, axes with labels, formula, and the rows of numbers; null if not finite."""

    def side(axis: Axis) -> dict[str, object]:
        return {"axis": axis.name, "labels": [axis.label(index) for index in range(axis.size)]}

    head = {
        "name": view.name,
        "formula": view.formula,
        "shape": list(full_shape(view)),
        "head": view.head,
        "rows": side(view.rows),
        "columns": side(view.columns),
        "note": "null is a cell without a finite number: -infinity where a query may not look",
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "values": [\n'
    for rows, values in blocks(view):
        finite = np.isfinite(values).tolist()
        lines = (
            "[" + ", ".join(number if known else "null" for number, known in zip(*row, strict=True)) + "]"
            for row in zip(exact(values), finite, strict=True)
        )
        yield ",\n".join(lines) + ("\n]" if rows.stop == view.rows.size else ",\n")
    yield "}\n"


def point_pieces(view: View) -> Iterator[str]:
    """Points, `row column value` a line, as gnuplot's `splot "sin.dat"` draws a surface; a blank line ends each row.

    The first line says what the numbers are, behind a # as a remark. A row or column is its number: the one that it is
    called by (the dimensions 0, 2, 4 of the sines), else its place. A masked cell is `-inf`.
    """
    yield f"# {view.rows.name or 'row'} {view.columns.name or 'column'} {view.name}\n"
    names, columns = _point_numbers(view.rows), _point_numbers(view.columns)
    for rows, values in blocks(view):
        for row, texts in zip(rows, exact(values), strict=True):
            yield "".join(f"{names[row]} {column} {text}\n" for column, text in zip(columns, texts, strict=True)) + "\n"


def _point_numbers(axis: Axis) -> Sequence[int]:
    """What rows or columns are called, where these are numbers that rise, or of dimensions; else their places."""
    places, called = range(axis.size), list[int]()
    for place in places:
        label = axis.label(place)
        rises = not called or axis.name == "dimension" or int(label) > called[-1]
        if not re.fullmatch("[0-9]{1,9}", label) or not rises:
            return places
        called.append(int(label))
    return called


FORMATS: dict[str, Callable[[View], Pieces]] = {
    "text": lambda view: [text.render(view, text.EVERYTHING)],
    "json": json_pieces,
    "csv": csv_pieces,
    "dat": point_pieces,
    "svg": lambda view: [view_svg(view)],
}
SUFFIXES = {".txt": "text", ".json": "json", ".csv": "csv", ".dat": "dat", ".svg": "svg", ".npz": "npz"}


@dataclass(frozen=True, eq=False)
class Blocks:
    """An array of which a part is there at a time: its shape, and its cells in order (the last axis runs fastest)."""

    shape: Shape
    cells: Iterable[Host]


class _Sink(NamedTuple):
    """What is written to in order alone: a device such as /dev/null says that it stands at 0, however much it took."""

    write: Callable[[bytes], int]
    flush: Callable[[], None]


def write_npz(file: BinaryIO, arrays: Iterable[tuple[str, Host | Blocks]]) -> None:
    """Write arrays under their names; only one, or one block of one, is in memory at a time."""
    with contextlib.suppress(OSError, AttributeError):  # in memory
        if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
            file = cast("BinaryIO", _Sink(file.write, file.flush))
    archive = zipfile.ZipFile(file, "w", allowZip64=True)
    try:
        for name, array in arrays:
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EARLIEST), "w", force_zip64=True) as member:
                if not isinstance(array, Blocks):
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
                    continue
                cells = iter(array.cells)  # the same bytes as of the whole array
                first = next(cells)
                header = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False}
                np.lib.format.write_array_header_1_0(member, header | {"shape": array.shape})
                for block in chain((first,), cells):
                    member.write(np.ascontiguousarray(block).data.cast("B"))
        archive.close()
    except BaseException:
        archive.fp = None  # an archive that is given up is not to be finished, which would hide the reason
        raise


def png_drawing(width: int | None = None) -> Callable[[str], bytes] | None:
    """Function that makes a PNG of an SVG, of so many pixels; None where the library is not installed."""
    try:
        import resvg_py
    except ImportError:
        return None
    more: Mapping[str, Any] = {} if width is None else {"width": width}
    return lambda svg: bytes(resvg_py.svg_to_bytes(svg_string=svg, monospace_family=MONOSPACE, **more))
