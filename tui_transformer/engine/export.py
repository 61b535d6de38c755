"""A trace outside of the program: its arrays in a file, its steps in a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.program import Program, Step
from tui_transformer.errors import UsageError
from tui_transformer.files import write_whole

Arrays = Mapping[str, Host]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays in the format that the name ends in.

    Raises:
        InputError: The file cannot be written; the old one is as it was.
    """
    if path.suffix not in WRITERS:
        raise UsageError(f"{path}: name a file that ends in {' or '.join(WRITERS)}")
    write_whole(path, WRITERS[path.suffix](arrays))


def _safetensors(arrays: Arrays) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def _npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[Arrays], bytes]] = {".safetensors": _safetensors, ".npz": _npz}
"""By the end of the name."""


SIDE = 24
"""Cells of a picture, at most, in each direction; of a larger array every so many-th cell is drawn."""

PIXELS = 5
BLUE, RED, MASKED = (33, 102, 172), (178, 24, 43), "#9a9a9a"
"""Below 0 and above it, fading to white at 0; and what is no number."""


class Shown(Protocol):
    """The parts of a trace that a notebook shows."""

    @property
    def program(self) -> Program:
        """The steps."""

    @property
    def backend(self) -> Backend:
        """Where the values are."""

    def held_value(self, name: str) -> Array | None:
        """The value of a step that is there already, with its batch axis; None where it is not."""


def html_of(trace: Shown) -> str:
    """The line of `repr`, and a table of all steps: name, shape, formula, and a picture where the values are there."""
    rows = "".join(_row(trace, step) for step in trace.program.steps)
    head = "".join(f"<th style='text-align:left'>{title}</th>" for title in ("step", "shape", "formula", "values"))
    return f"<div><code>{html.escape(repr(trace))}</code><table><tr>{head}</tr>{rows}</table></div>"


def _row(trace: Shown, step: Step) -> str:
    cells = (f"<code>{html.escape(step.name)}</code>", shape_text(step.shape), html.escape(step.op.formula))
    value, picture = trace.held_value(step.name), ""
    if value is not None:
        array = np.asarray(trace.backend.to_host(value))[0]
        picture = "".join(map(heat_map, array[:8] if array.ndim > 2 else [np.atleast_2d(array)]))
    return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in (*cells, picture)) + "</tr>"


def heat_map(matrix: Host) -> str:
    """A matrix as SVG, blue below 0 and red above, as deep as its largest size."""
    rows, columns = (np.arange(0, size, -(-size // SIDE)) for size in matrix.shape)
    values = matrix[np.ix_(rows, columns)].astype(np.float64)
    largest = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0)) or 1.0
    cells = "".join(
        f"<rect x='{column * PIXELS}' y='{row * PIXELS}' width='{PIXELS}' height='{PIXELS}' "
        f"fill='{_color(value / largest)}'/>"
        for (row, column), value in np.ndenumerate(values)
    )
    size = f"width='{len(columns) * PIXELS}' height='{len(rows) * PIXELS}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} style='margin-right:4px'>{cells}</svg>"


def _color(share: float) -> str:
    if not np.isfinite(share):
        return MASKED
    deep = RED if share > 0 else BLUE
    return "#" + "".join(f"{round(255 + (channel - 255) * min(abs(share), 1.0)):02x}" for channel in deep)
