"""A trace in a notebook: its steps in a table, those that are there already as small heat maps, in SVG by itself."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Array, Backend, Host
from tui_transformer.engine.program import Program, Step

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
    value = trace.held_value(step.name)
    picture = "" if value is None else "".join(_pictures(np.asarray(trace.backend.to_host(value))[0]))
    return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in (*cells, picture)) + "</tr>"


def _pictures(array: Host) -> Iterator[str]:
    """A picture of each of the first heads, or of the one matrix."""
    heads = array[:8] if array.ndim > 2 else [np.atleast_2d(array)]
    yield from map(heat_map, heads)


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
