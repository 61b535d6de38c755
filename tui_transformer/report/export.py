"""A view to a file, in the format that the file's name says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tui_transformer.errors import InputError
from tui_transformer.files import writing
from tui_transformer.report import as_csv, as_json, as_npz, as_points, as_svg, text
from tui_transformer.text.files import shown_path
from tui_transformer.views.view import View

Pieces = Iterable[str]


def _whole_text(view: View) -> Iterator[str]:
    yield text.render(view, text.EVERYTHING)


def _figure(view: View) -> Iterator[str]:
    yield as_svg.render(view)


FORMATS: dict[str, Callable[[View], Pieces]] = {
    "text": _whole_text,
    "json": as_json.pieces,
    "csv": as_csv.pieces,
    "dat": as_points.pieces,
    "svg": _figure,
}
SUFFIXES = {".txt": "text", ".json": "json", ".csv": "csv", ".dat": "dat", ".svg": "svg", ".npz": "npz"}


def check_suffix(path: Path) -> str:
    """The format that a path's suffix says; InputError for any other suffix."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{shown_path(path)}: the name has to end in {', '.join(SUFFIXES)}")
    return kind


def export(view: View, path: Path) -> None:
    """Write a view whole, as text, JSON, CSV, points, SVG or NPZ by the suffix of the path.

    Raises:
        InputError: Another suffix, a view that does not fit the format, or a file that cannot be written.
    """
    kind = check_suffix(path)
    if kind == "npz":
        _write_npz(view, path)
    else:
        write_pieces(path, FORMATS[kind](view))


def write_pieces(path: Path, pieces: Pieces) -> None:
    """Write text in UTF-8, as it is made.

    Raises:
        InputError: The file cannot be written; an older one is as it was.
    """
    with writing(path) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", errors="backslashreplace"))


def _write_npz(view: View, path: Path) -> None:
    with writing(path) as file:
        as_npz.write(file, [(view.name, as_npz.view_array(view))])
