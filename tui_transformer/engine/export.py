"""A trace outside of the program: its arrays in a file, its steps in a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Step
from tui_transformer.errors import UsageError
from tui_transformer.files import write_whole

ENDINGS = (".safetensors", ".npz")


def write_arrays(path: Path, arrays: Mapping[str, Host]) -> None:
    """Write arrays in the format that the name ends in.

    Raises:
        InputError: The file cannot be written; the old one is as it was.
    """
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path}: name a file that ends in {' or '.join(ENDINGS)}")
    if path.suffix == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_whole(path, buffer.getvalue())
    else:
        from safetensors.numpy import save

        write_whole(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


SIDE = 24
"""Cells of a picture, at most, in each direction; of a larger array every so many-th cell is drawn."""

PIXELS = 5
BLUE, RED, MASKED = (33, 102, 172), (178, 24, 43), "#9a9a9a"
"""Below 0 and above it, fading to white at 0; and what is no number."""


def html_of(title: str, steps: Iterable[tuple[Step, Host | None]]) -> str:
    """The title and a table of steps: name, shape, formula, and a picture where the values are there."""
    rows = [("step", "shape", "formula", "values")]
    for step, value in steps:
        matrices = () if value is None else value[0][:8] if value.ndim > 3 else [np.atleast_2d(value[0])]
        name, formula = html.escape(step.name), html.escape(step.op.formula)
        rows.append((f"<code>{name}</code>", shape_text(step.shape), formula, "".join(map(heat_map, matrices))))
    table = ""
    for kind, cells in zip(("th", *("td" for _ in rows)), rows, strict=False):
        table += "<tr>" + "".join(f"<{kind} style='text-align:left'>{cell}</{kind}>" for cell in cells) + "</tr>"
    return f"<div><code>{html.escape(title)}</code><table>{table}</table></div>"


def heat_map(matrix: Host) -> str:
    """A matrix as SVG, blue below 0 and red above, as deep as its largest size."""
    rows, columns = (np.arange(0, size, -(-size // SIDE)) for size in matrix.shape)
    values = matrix[np.ix_(rows, columns)].astype(np.float64)
    largest = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max(initial=0.0)) or 1.0
    cells = ""
    for (row, column), share in np.ndenumerate(values / largest):
        deep = RED if share > 0 else BLUE
        shades = (f"{round(255 + (channel - 255) * min(abs(share), 1.0)):02x}" for channel in deep)
        fill = "#" + "".join(shades) if np.isfinite(share) else MASKED
        place = f"x='{column * PIXELS}' y='{row * PIXELS}' width='{PIXELS}' height='{PIXELS}'"
        cells += f"<rect {place} fill='{fill}'/>"
    size = f"width='{len(columns) * PIXELS}' height='{len(rows) * PIXELS}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size} style='margin-right:4px'>{cells}</svg>"
