"""A chart of curves as an SVG figure: axes, a grid and a legend; no script and nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from tui_transformer.text.display import visible
from tui_transformer.views.charts import LineChart, Series

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 132, 34, 44
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Told apart by people who see few colours (Okabe & Ito 2008)."""

DASHES = ("", "6 3", "2 2", "8 3 2 3")
TICKS = 5
LINE = 16


def render(chart: LineChart) -> str:
    """The figure; curves of more than the colours are dashed."""
    xs, ys = ([value for series in chart.series for value in getattr(series, axis)] for axis in ("x", "y"))
    frame = Frame(_range(xs), _range(ys))
    height = max(HEIGHT, TOP + BOTTOM + LINE * len(chart.series))
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">\n',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n',
            _text(LEFT, 20, chart.title, "start", 13),
            *_grid(frame, chart),
            *(_curve(series, frame, number) for number, series in enumerate(chart.series)),
            *_legend(chart),
            "</svg>\n",
        )
    )


class Frame:
    """Where values lie in the figure."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point of two values."""
        right = LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)
        down = TOP + (self.y[1] - y) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)
        return right, down


def _range(values: list[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _grid(frame: Frame, chart: LineChart) -> Iterator[str]:
    (left, top), (right, bottom) = frame.at(frame.x[0], frame.y[1]), frame.at(frame.x[1], frame.y[0])
    for part in range(TICKS + 1):
        x = frame.x[0] + (frame.x[1] - frame.x[0]) * part / TICKS
        y = frame.y[0] + (frame.y[1] - frame.y[0]) * part / TICKS
        across, down = frame.at(x, y)
        yield f'<path d="M{across:.1f} {top:.1f}V{bottom:.1f}M{left:.1f} {down:.1f}H{right:.1f}" stroke="#dddddd"/>\n'
        yield _text(across, bottom + 14, f"{x:.4g}", "middle")
        yield _text(left - 6, down + 4, f"{y:.3g}", "end")
    yield _text((left + right) / 2, bottom + 32, chart.x_label, "middle")
    yield _text(left, top - 6, chart.y_label, "start")


def _curve(series: Series, frame: Frame, number: int) -> str:
    points = (frame.at(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(x) and math.isfinite(y))
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke-width="1.5"{_ink(number)}/>\n' if path else ""


def _legend(chart: LineChart) -> Iterator[str]:
    left = WIDTH - RIGHT + 14
    for number, series in enumerate(chart.series):
        y = TOP + 8 + LINE * number
        yield f'<path d="M{left} {y}h20" stroke-width="2"{_ink(number)}/>\n'
        yield _text(left + 26, y + 4, series.label, "start")


def _ink(number: int) -> str:
    dash = DASHES[number // len(COLORS) % len(DASHES)]
    return f' stroke="{COLORS[number % len(COLORS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    said = escape(visible(text))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{said}</text>\n'
