"""Charts of positional encodings: waves over the position, and products of positions by their distance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.ops import Op, Sinusoid
from tui_transformer.views.charts import LineChart, Series
from tui_transformer.views.view import View, around

FEWEST_POSITIONS, MOST_POSITIONS, POINTS_A_POSITION = 50, 200, 4
SPACED_WAVES = 3
FIRST_WAVES = 3
"""Sines, or cosines, that are drawn alone: those of the first columns, which turn fastest."""

MOST_WAVES = 32
"""Of more dimensions so many are drawn: pairs of sine and cosine, evenly spaced."""


def encoding_waves(
    sinusoid: Sinusoid, length: int, dimensions: Sequence[int], mark: Series | None = None, near: int = 0
) -> LineChart:
    """The positional encoding of some dimensions over position, also between and after the sentence's positions.

    Positions go on to `FEWEST_POSITIONS`, and of more than `MOST_POSITIONS` only so many `near` one are drawn; with the
    `mark`.
    """
    part = around(near, max(length, FEWEST_POSITIONS) + 1, MOST_POSITIONS + 1)
    positions = np.linspace(part.start, part.stop - 1, POINTS_A_POSITION * (len(part) - 1) + 1)
    encoding = sinusoid.forward(numpy_backend("float64"), positions)
    x = tuple(positions.tolist())
    waves = []
    for dimension in dimensions:
        cosine = dimension >= (sinusoid.width + 1) // 2 if sinusoid.halves else dimension % 2
        waves.append(Series(f"{'cos' if cosine else 'sin'} {dimension}", x, tuple(encoding[:, dimension].tolist())))
    return LineChart(
        title=f"Positional encoding · {len(waves)} of {sinusoid.width} dimensions",
        x_label=f"position (the sentence: 0 to {length - 1})",
        y_label="value",
        series=tuple(waves) if mark is None else (*waves, mark),
    )


def wave_dimensions(sinusoid: Sinusoid, column: int) -> tuple[int, ...]:
    """The dimensions whose waves are drawn: the cursor's pair of sine and cosine, and evenly spaced sines."""
    pair = column % ((sinusoid.width + 1) // 2) if sinusoid.halves else column // 2
    spaced = (sinusoid.width * i // (2 * SPACED_WAVES) for i in range(SPACED_WAVES))
    return tuple(sorted({*_columns(sinusoid, [pair], 0, 1), *_columns(sinusoid, spaced, 0)}))


def first_dimensions(sinusoid: Sinusoid, *, cosines: bool) -> tuple[int, ...]:
    """The first columns of sines, or of cosines: 0, 2, 4, or 1, 3, 5."""
    return _columns(sinusoid, range(FIRST_WAVES), int(cosines))


def all_dimensions(sinusoid: Sinusoid) -> tuple[int, ...]:
    """Every column; of more than can be told apart pairs of sine and cosine, evenly spaced."""
    if sinusoid.width <= MOST_WAVES:
        return tuple(range(sinusoid.width))
    half, most = (sinusoid.width + 1) // 2, MOST_WAVES // 2
    return _columns(sinusoid, (half * i // most for i in range(most)), 0, 1)


def _columns(sinusoid: Sinusoid, pairs: Iterable[int], *sides: int) -> tuple[int, ...]:
    """The columns of some pairs, of their sines (side 0) or cosines (side 1): those that there are."""
    half = (sinusoid.width + 1) // 2
    among = (
        pair + side * half if sinusoid.halves else 2 * pair + side for pair in pairs if pair < half for side in sides
    )
    return tuple(sorted({column for column in among if column < sinusoid.width}))


def by_distance(op: Op, view: View) -> LineChart:
    """PE·PEᵀ, the scalar product of the rows of two positions, by their distance: mean, least and most of all pairs.

    Of many positions the first are taken; those of sines and cosines depend on the distance alone, and go on beyond the
    sentence.
    """
    length = view.rows.size
    if isinstance(op, Sinusoid):
        positions = np.arange(min(max(length, FEWEST_POSITIONS), MOST_POSITIONS) + 1, dtype=np.float64)
        rows, remark = op.forward(numpy_backend("float64"), positions), f"the sentence: up to {length - 1}"
    else:
        rows = view.window(range(min(length, MOST_POSITIONS)), range(view.columns.size)).astype(np.float64)
        remark = f"{len(rows)} positions of {length}"
    products, count = rows @ rows.T, len(rows)
    diagonals = [np.diagonal(products, distance) for distance in range(count)]
    x = tuple(map(float, range(count)))
    named = (("mean", np.mean), ("least", np.min), ("most", np.max))
    curves = tuple(Series(name, x, tuple(float(of(line)) for line in diagonals)) for name, of in named)
    alike = all(np.allclose(curves[0].y, curve.y, rtol=1e-5, atol=1e-6) for curve in curves)
    return LineChart(
        title="PE·PEᵀ by distance" + (" · the same for all pairs" if alike else ""),
        x_label=f"distance of two positions ({remark})",
        y_label="product",
        series=(Series("PE[pos] · PE[pos + distance]", x, curves[0].y),) if alike else curves,
        counted=True,
    )
