"""Charts of positional encodings: waves over the position, and products of positions by their distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.ops import Sinusoid
from tui_transformer.views.charts import LineChart, Series
from tui_transformer.views.view import Values, View, around

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
    width = sinusoid.width
    if sinusoid.halves:
        half = (width + 1) // 2
        pair = {column % half, column % half + half} & set(range(width))
        return tuple(sorted({*pair, *(half * i // SPACED_WAVES for i in range(SPACED_WAVES))}))
    neighbours = range(column - column % 2, min(column - column % 2 + 2, width))
    return tuple(sorted({*neighbours, *(2 * (width * i // (2 * SPACED_WAVES)) for i in range(SPACED_WAVES))}))


def first_dimensions(sinusoid: Sinusoid, *, cosines: bool) -> tuple[int, ...]:
    """The first columns of sines, or of cosines: 0, 2, 4, or 1, 3, 5."""
    half = (sinusoid.width + 1) // 2
    if sinusoid.halves:
        return tuple(range(half * cosines, min(half * cosines + FIRST_WAVES, sinusoid.width if cosines else half)))
    return tuple(range(int(cosines), sinusoid.width, 2))[:FIRST_WAVES]


def all_dimensions(sinusoid: Sinusoid) -> tuple[int, ...]:
    """Every column; of more than can be told apart pairs of sine and cosine, evenly spaced."""
    width, half = sinusoid.width, (sinusoid.width + 1) // 2
    if width <= MOST_WAVES:
        return tuple(range(width))
    pairs = [half * i // (MOST_WAVES // 2) for i in range(MOST_WAVES // 2)]
    columns = {
        each for pair in pairs for each in ((pair, pair + half) if sinusoid.halves else (2 * pair, 2 * pair + 1))
    }
    return tuple(sorted(column for column in columns if column < width))


def products_by_distance(view: View) -> LineChart:
    """PE·PEᵀ, the scalar product of the rows of two positions, by their distance: mean, least and most of all pairs.

    Of many positions the first are taken; those of sines and cosines depend on the distance alone.
    """
    rows = view.window(range(min(view.rows.size, MOST_POSITIONS)), range(view.columns.size)).astype(np.float64)
    return _by_distance(rows, f"{len(rows)} positions of {view.rows.size}")


def sinusoid_by_distance(sinusoid: Sinusoid, length: int) -> LineChart:
    """The same of sines and cosines, beyond the sentence."""
    positions = np.arange(min(max(length, FEWEST_POSITIONS), MOST_POSITIONS) + 1, dtype=np.float64)
    rows = sinusoid.forward(numpy_backend("float64"), positions)
    return _by_distance(rows, f"the sentence: up to {length - 1}")


def _by_distance(rows: Values, remark: str) -> LineChart:
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
