"""A trace outside of the program: its arrays in a file, its steps in a notebook."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Mapping, Sequence
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
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: name a file that ends in {' or '.join(ENDINGS)}")
    if path.suffix.lower() == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_whole(path, buffer.getvalue())
    else:
        from safetensors.numpy import save

        write_whole(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


LARGEST = 48_000
"""Bytes of a trace in a notebook, which keeps them in its file: half for the steps, the rest for their pictures."""

LONGEST = 500
"""Characters of its title."""

SIDE, HEADS = 24, 8
"""Cells of a picture, at most, in each direction, and heads; of a larger array every so many-th cell is drawn."""

PIXELS = 5
BLUE, RED, MASKED = (33, 102, 172), (178, 24, 43), (154, 154, 154)
"""Below 0 and above it, fading to white at 0; and what is no number."""


def html_of(title: str, steps: Sequence[tuple[Step, Host | None]]) -> str:
    """The title and a table of steps: name, shape, formula, and a picture where the values are there.

    Where they are too many, those whose values are there stand first in line, and how many are left out is said.
    """
    from html import escape

    shown = escape(title if len(title) <= LONGEST else f"{title[:LONGEST]} …")
    begin, end = f"<div><code>{shown}</code><table>{_row('th', 'step', 'shape', 'formula', 'values')}", "</table></div>"
    room, cells = (LARGEST - len(f"{begin}{end}".encode())) // 2, dict[int, tuple[str, str, str]]()
    for at, (step, _) in sorted(enumerate(steps), key=lambda each: each[1][1] is None):
        name, formula = escape(step.name), escape(step.op.formula)
        line = f"<code>{name}</code>", shape_text(step.shape), formula
        room -= len(_row("td", *line, "").encode())
        if room < 0:
            break
        cells[at] = line
    rows, room = "", LARGEST // 2 - 500
    for at, line in sorted(cells.items()):
        value = steps[at][1]  # of a batch the first sentence, every head apart
        matrices = () if value is None else value[0][:HEADS] if value.ndim > 3 else (np.atleast_2d(value[0]),)
        pictures = "".join(map(heat_map, matrices))
        if len(pictures) > room:
            pictures = "…"
        room -= len(pictures)
        rows += _row("td", *line, pictures)
    left = len(steps) - len(cells)
    return f"{begin}{rows}{_row('td', f'{left:,} more steps', '', '', '') if left else ''}{end}"


def _row(kind: str, *cells: str) -> str:
    return "<tr>" + "".join(f"<{kind} style='text-align:left'>{cell}</{kind}>" for cell in cells) + "</tr>"


def heat_map(matrix: Host) -> str:
    """A matrix as a picture, blue below 0 and red above, as deep as its largest size."""
    rows, columns = (np.arange(0, size, -(-size // SIDE)) for size in matrix.shape)
    values = matrix[np.ix_(rows, columns)].astype(np.float64)
    finite = np.isfinite(values)
    largest = float(np.abs(values, where=finite, out=np.zeros_like(values)).max(initial=0.0)) or 1.0
    shares = np.where(finite, values, 0.0)[..., None] / largest
    pixels = np.rint(255 + (np.where(shares > 0, RED, BLUE) - np.array(255.0)) * np.abs(shares))
    picture = base64.b64encode(_png(np.where(finite[..., None], pixels, MASKED).astype(np.uint8))).decode()
    size = f"width='{len(columns) * PIXELS}' height='{len(rows) * PIXELS}'"
    style = "image-rendering:pixelated;margin-right:4px"
    return f"<img alt='' {size} style='{style}' src='data:image/png;base64,{picture}'/>"


def _png(pixels: Host) -> bytes:
    """Rows × columns × 3 bytes as PNG."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    parts = {
        b"IHDR": struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
