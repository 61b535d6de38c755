"""Charts of steps: rows as bars, histograms, positional-encoding waves, entropy of heads, norms along the stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tui_transformer.analysis.attentions import is_attention
from tui_transformer.analysis.entropy import HeadEntropy, head_entropy
from tui_transformer.analysis.expert_load import ExpertLoad, expert_load, expert_step, expert_steps
from tui_transformer.analysis.norms import StreamNorms, residual_norms, streams
from tui_transformer.analysis.similar import TABLE, Term, similar
from tui_transformer.analysis.statistics import CELLS, Statistics, histogram, row_sample, statistics
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Embed, Sinusoid
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.spoken import in_percent, spoken
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.views.charts import BarChart, Chart, Histogram, LineChart, Series, around
from tui_transformer.views.position_charts import (
    all_dimensions,
    encoding_waves,
    first_dimensions,
    products_by_distance,
    sinusoid_by_distance,
    wave_dimensions,
)
from tui_transformer.views.step_view import Place, placed
from tui_transformer.views.view import Axis, Values, View

Kind = Literal[
    "row",
    "waves",
    "sines",
    "cosines",
    "all waves",
    "positions by distance",
    "entropy",
    "relative entropy",
    "expert load",
    "load of all layers",
    "histogram",
    "residual norms",
    "nearest words",
]

MOST_BARS = 40
NEAREST = 12
"""Words that are named as nearest."""


@dataclass(frozen=True)
class Request:
    """Source of a chart: a step's view, and the cell under the cursor."""

    trace: Trace
    view: View
    place: Place
    item: int = 0
    word: Callable[[int], str] = str
    among: Host | None = None

    @property
    def step(self) -> Step:
        """The step of the view."""
        return self.trace.program.step(self.view.name)


def chart(
    kind: Kind,
    trace: Trace,
    view: View,
    place: Place,
    item: int = 0,
    word: Callable[[int], str] = str,
    among: Host | None = None,
) -> Chart:
    """A chart of a view; the kinds that suit it are `charts_for`.

    Args:
        kind: A kind of chart.
        trace: What the view is of.
        view: One step (of one head) as a matrix.
        place: The cursor's cell in the view.
        item: Which sentence of the batch, the same as in the view.
        word: The word of a token ID.
        among: For every word whether it may be named as near to another; by default any may.

    Raises:
        InputError: The chart does not suit the step.
    """
    if kind not in charts_for(trace.program, view.name):
        raise InputError(f"{view.name} has no chart of {kind}")
    return _MAKERS[kind](Request(trace, view, place, item, word, among))


def charts_for(program: Program, name: str) -> tuple[Kind, ...]:
    """The kinds of chart that suit a step, weight or input, in the order in which they are offered."""
    step = program.by_name.get(program.aliases.get(name, name))
    return tuple(kind for kind, suits in _SUITS.items() if suits(program, step))


def row_bars(view: View, row: int, column: int) -> BarChart:
    """A row as bars, the cursor's column marked; of a wide row only `MOST_BARS` columns around the cursor.

    A matrix of one column is shown as that column.
    """
    upright = view.columns.size == 1 < view.rows.size
    axis, marked = (view.rows, row) if upright else (view.columns, column)
    part = around(marked, axis.size, MOST_BARS)
    cells = view.window(part, range(1)) if upright else view.window(range(row, row + 1), part)
    values = np.where(np.isfinite(cells), cells, np.nan).ravel()
    return BarChart(
        title=_title(_subject(view), "" if upright else _named(view.rows, row), _extent(axis, part)),
        labels=tuple(axis.label(index) for index in part),
        values=tuple(values.tolist()),
        marked=marked - part.start,
    )


def value_histogram(view: View) -> Histogram:
    """How often each value occurs in a view; of a matrix with more than `CELLS` cells, in evenly spaced rows."""
    runs = row_sample(range(view.rows.size), view.columns.size, CELLS)
    values = np.concatenate([view.window(run, range(view.columns.size)).ravel() for run in runs])
    rows = sum(map(len, runs))
    sampled = f"{rows:,} of {view.rows.size:,} rows, evenly spaced" if rows < view.rows.size else ""
    return histogram_of(values, _title("Values", _subject(view)), sampled)


def histogram_of(values: Values, title: str, remark: str = "") -> Histogram:
    """A histogram of any array, with its statistics (and a remark) as the note; masked cells are left out."""
    counts, edges = histogram(values)
    note = _title(_statistics_line(statistics(values)), remark)
    return Histogram(title, tuple(edges.tolist()), tuple(counts.tolist()), note)


def entropy_bars(
    trace: Trace, name: str, *, relative: bool = False, head: int | None = None, item: int = 0
) -> BarChart:
    """The mean row entropy of every head of an attention step, in bits or relative to the most that is possible."""
    measured = head_entropy(trace, name, item)
    values = measured.relative if relative else measured.bits
    what = "Relative entropy of every head, 0 to 1" if relative else _bits_title(measured)
    return BarChart(_title(what, name, _queries_text(measured)), tuple(map(str, range(len(values)))), values, head)


def expert_load_bars(trace: Trace, name: str, marked: int | None = None, item: int = 0) -> BarChart:
    """How many tokens every expert of a layer got."""
    step = expert_step(trace.program, name)
    if step is None:
        raise InputError(f"{name} is no step of a router")
    return _load_bars([expert_load(trace, step, item)], f"Tokens of every expert · {step.name}", marked)


def all_expert_load_bars(trace: Trace, marked: int | None = None, item: int = 0) -> BarChart:
    """How many tokens the experts of each number got, all layers together."""
    loads = [expert_load(trace, step, item) for step in expert_steps(trace.program)]
    return _load_bars(loads, f"Tokens of every expert · all {_count(len(loads), 'layer')} together", marked)


def _load_bars(loads: Sequence[ExpertLoad], title: str, marked: int | None) -> BarChart:
    counts = [sum(of_expert) for of_expert in zip(*(load.tokens for load in loads), strict=True)]
    even = sum(load.even for load in loads)
    labels, values = tuple(map(str, range(len(counts)))), tuple(map(float, counts))
    return BarChart(_title(title, f"even load {_number(even)}"), labels, values, marked)


def residual_norm_line(trace: Trace, name: str = "", item: int = 0) -> LineChart:
    """The mean norm after every step of the residual stream, one curve a stack; the step `name` is marked."""
    curves = residual_norms(trace, item)
    series = tuple(Series(curve.stack, *_numbered(curve.norms)) for curve in curves)
    ends = ", ".join(f"{curve.steps[0]} to {curve.steps[-1]}" for curve in curves)
    return LineChart(
        title="Norm of the residual stream · mean over tokens",
        x_label=f"step of the stream, {ends}",
        y_label="‖x‖₂",
        series=(*series, *_marked_norm(curves, trace.program.aliases.get(name, name))),
    )


def _numbered(norms: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(map(float, range(len(norms)))), norms


def _marked_norm(curves: Sequence[StreamNorms], name: str) -> tuple[Series, ...]:
    """The point of a step, where it is on a stream."""
    return tuple(
        Series(f"{place} {name}: {_number(norm)}", (float(place),), (norm,))
        for curve in curves
        for place, (step, norm) in enumerate(zip(curve.steps, curve.norms, strict=True))
        if step == name
    )


def _bits_title(measured: HeadEntropy) -> str:
    most = math.log2(max(measured.most_keys, 1))
    return f"Entropy of every head in bits, at most {_number(most)} ({_count(measured.most_keys, 'key')})"


def _queries_text(measured: HeadEntropy) -> str:
    """Which queries the mean is over."""
    which = "all" if measured.queries == measured.real else f"{measured.queries:,} of {measured.real:,}"
    if measured.sampled:
        return f"mean over {which} queries, evenly spaced, that see {_count(measured.keys, 'key')} or more"
    rule = "" if which == "all" else f" that see {_count(measured.keys, 'key')} or more"
    return f"mean over {which} queries{rule}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _waves_of(request: Request, choose: Callable[[Sinusoid], tuple[int, ...]]) -> Chart:
    row, column = request.place.row, request.place.column
    sinusoid = request.step.op
    if not isinstance(sinusoid, Sinusoid):
        raise TypeError(f"{request.view.name} is not sinusoidal")
    value = float(request.view.window(range(row, row + 1), range(column, column + 1))[0, 0])
    mark = Series(f"{_named(request.view.rows, row)}: {_number(value)}", (float(row),), (value,))
    return encoding_waves(sinusoid, request.view.rows.size, choose(sinusoid), mark, row)


def nearest_words(trace: Trace, token: int, word: Callable[[int], str], among: Host | None = None) -> BarChart:
    """The words whose rows of the embedding point most nearly where that of a word does, by their cosine."""
    nearest = similar(trace, [Term(token, 1)], NEAREST, among=among)
    return BarChart(
        title=f"Nearest words of {word(token)} · cosine of their rows of the embedding",
        labels=tuple(word(other) for other, _ in nearest),
        values=tuple(cosine for _, cosine in nearest),
    )


def _nearest(request: Request) -> Chart:
    row = request.place.row
    token = int(request.trace.window(request.step.inputs[0], (range(row, row + 1),), request.item)[0])
    return nearest_words(request.trace, token, request.word, request.among)


def _waves(request: Request) -> Chart:
    return _waves_of(request, lambda sinusoid: wave_dimensions(sinusoid, request.place.column))


def _distances(request: Request) -> Chart:
    op = request.step.op
    if isinstance(op, Sinusoid):
        return sinusoid_by_distance(op, request.view.rows.size)
    return products_by_distance(request.view)


def _entropy(request: Request, *, relative: bool) -> Chart:
    return entropy_bars(request.trace, request.view.name, relative=relative, head=request.place.head, item=request.item)


_MAKERS: dict[Kind, Callable[[Request], Chart]] = {
    "row": lambda request: row_bars(request.view, request.place.row, request.place.column),
    "waves": _waves,
    "sines": lambda request: _waves_of(request, lambda sinusoid: first_dimensions(sinusoid, cosines=False)),
    "cosines": lambda request: _waves_of(request, lambda sinusoid: first_dimensions(sinusoid, cosines=True)),
    "all waves": lambda request: _waves_of(request, all_dimensions),
    "positions by distance": _distances,
    "entropy": lambda request: _entropy(request, relative=False),
    "relative entropy": lambda request: _entropy(request, relative=True),
    "expert load": lambda request: expert_load_bars(
        request.trace, request.view.name, request.place.column, request.item
    ),
    "load of all layers": lambda request: all_expert_load_bars(request.trace, request.place.column, request.item),
    "histogram": lambda request: value_histogram(request.view),
    "nearest words": _nearest,
    "residual norms": lambda request: residual_norm_line(request.trace, request.view.name, request.item),
}


def _has_numbers(_program: Program, step: Step | None) -> bool:
    """Token IDs are names: they have no size."""
    return step is None or not step.op.integer


def _is_embedding(_program: Program, step: Step | None) -> bool:
    if step is None or not isinstance(step.op, Embed) or not step.name.endswith("embedding.tokens"):
        return False
    return any(name.endswith(TABLE) for name in step.inputs)


def _is_sinusoid(_program: Program, step: Step | None) -> bool:
    return step is not None and isinstance(step.op, Sinusoid)


def _is_attention(_program: Program, step: Step | None) -> bool:
    return is_attention(step)


def _alike_everywhere(program: Program, name: str) -> bool:
    """Whether a step is of a router, and all layers with experts have as many of them."""
    return expert_step(program, name) is not None and len({step.shape[-1] for step in expert_steps(program)}) == 1


def _is_on_stream(program: Program, step: Step | None) -> bool:
    return step is not None and any(step.name in stream for stream in streams(program))


_SUITS: dict[Kind, Callable[[Program, Step | None], bool]] = {
    "waves": _is_sinusoid,
    "sines": _is_sinusoid,
    "cosines": _is_sinusoid,
    "all waves": _is_sinusoid,
    "positions by distance": lambda _program, step: step is not None and step.name.endswith("embedding.positions"),
    "row": _has_numbers,
    "entropy": _is_attention,
    "relative entropy": _is_attention,
    "expert load": lambda program, step: step is not None and expert_step(program, step.name) is not None,
    "load of all layers": lambda program, step: step is not None and _alike_everywhere(program, step.name),
    "histogram": _has_numbers,
    "residual norms": _is_on_stream,
    "nearest words": _is_embedding,
}


def _title(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _subject(view: View) -> str:
    return view.title if view.head is None else f"{view.title} · head {view.head}"


def _named(axis: Axis, index: int) -> str:
    """One index of an axis: `query waves @1`, or `dimension 5` where the label is the number; empty for one of none."""
    return f"{axis.name} {placed(axis.label(index), index)}" if axis.name else ""


def _extent(axis: Axis, part: range) -> str:
    """Label of the bars: all of an axis, or which of how many."""
    if len(part) == axis.size:
        return f"by {axis.name}"
    return f"by {axis.name}, {part.start:,} to {part.stop - 1:,} of {axis.size:,}"


def _statistics_line(of: Statistics) -> str:
    masked = f"{of.masked:,} masked" if of.masked else ""
    if not of.count:
        return _title("no values", masked)
    return _title(
        f"{of.count:,} values",
        f"mean {_number(of.mean)}",
        f"deviation {_number(of.deviation)}",
        f"from {_number(of.low)} to {_number(of.high)}",
        f"norm {_number(of.norm)}",
        f"{in_percent(of.zeros)} zeros" if of.zeros else "",
        masked,
    )


def _number(value: float) -> str:
    return spoken(value, 4)
