"""Charts of steps: rows as bars, histograms, waves of positions, entropy of heads, norms along the stream, gradients.

`_CHARTS` is the table of them: how each kind is made, and which steps it suits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, cast

import numpy as np

from tui_transformer.analysis.attentions import is_attention
from tui_transformer.analysis.expert_load import expert_load, expert_step, expert_steps
from tui_transformer.analysis.head_measures import head_entropy
from tui_transformer.analysis.similar import Term, similar
from tui_transformer.analysis.statistics import (
    CELLS,
    Norms,
    group_of,
    histogram,
    layer_norms,
    residual_norms,
    row_sample,
    statistics,
    stream_norms,
    streams,
    weight_norms,
)
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import in_percent, spoken
from tui_transformer.engine.ops import Embed, Sinusoid
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model.weight_table import TABLE
from tui_transformer.records import dataclass
from tui_transformer.views import position_charts as positions
from tui_transformer.views.charts import BarChart, Chart, Histogram, LineChart, Series
from tui_transformer.views.step_view import Place, placed
from tui_transformer.views.view import Axis, Values, View, around

Kind = Literal[
    "waves",
    "sines",
    "cosines",
    "all waves",
    "positions by distance",
    "row",
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
    word: Callable[[int], str]
    among: Host | None

    @property
    def step(self) -> Step:
        """The step of the view."""
        return self.trace.program.step(self.view.name)


def chart(
    kind: Kind, trace: Trace, view: View, place: Place, word: Callable[[int], str] = str, among: Host | None = None
) -> Chart:
    """A chart of a view of a trace (of its first sentence), with the cursor at a place in it.

    The kinds that suit a view are `charts_for`, InputError for others. `word` gives the word of a token ID; `among`
    says for every word whether it may be named as near to another, by default any may.
    """
    if kind not in charts_for(trace.program, view.name):
        raise InputError(f"{view.name} has no chart of {kind}")
    return _CHARTS[kind][0](Request(trace, view, place, word, among))


def charts_for(program: Program, name: str) -> tuple[Kind, ...]:
    """The kinds of chart that suit a step, weight or input, in the order in which they are offered."""
    step = program.by_name.get(program.aliases.get(name, name))
    return OF_WEIGHTS if step is None else tuple(kind for kind, (_, suits) in _CHARTS.items() if suits(program, step))


# Values


def row_bars(view: View, row: int, column: int) -> BarChart:
    """A row as bars, the cursor's column marked; of a wide row only `MOST_BARS` columns around the cursor.

    A matrix of one column is shown as that column.
    """
    upright = view.columns.size == 1 < view.rows.size
    axis, marked = (view.rows, row) if upright else (view.columns, column)
    part = around(marked, axis.size, MOST_BARS)
    cells = view.window(part, range(1)) if upright else view.window(range(row, row + 1), part)
    values = view.masked(cells).ravel()
    extent = "" if len(part) == axis.size else f", {part.start:,} to {part.stop - 1:,} of {axis.size:,}"
    return BarChart(
        title=_title(_subject(view), "" if upright else _named(view.rows, row), f"by {axis.name}{extent}"),
        labels=tuple(axis.label(index) for index in part),
        values=tuple(values.tolist()),
        marked=marked - part.start,
    )


def value_histogram(view: View) -> Histogram:
    """How often each value occurs in a view; of a matrix with more than `CELLS` cells, in evenly spaced rows."""
    runs = row_sample(range(view.rows.size), view.columns.size, CELLS)
    values = np.concatenate([view.masked(view.window(run, range(view.columns.size))).ravel() for run in runs])
    rows = sum(map(len, runs))
    sampled = f"{rows:,} of {view.rows.size:,} rows, evenly spaced" if rows < view.rows.size else ""
    return histogram_of(values, _title("Values", _subject(view)), sampled)


def histogram_of(values: Values, title: str, remark: str = "") -> Histogram:
    """A histogram of any array, with its statistics (and a remark) as the note; masked cells are left out."""
    counts, edges = histogram(values)
    of = statistics(values)
    measured = [
        _count(of.count, "value"),
        f"mean {spoken(of.mean, 4)}",
        f"deviation {spoken(of.deviation, 4)}",
        f"from {spoken(of.low, 4)} to {spoken(of.high, 4)}",
        f"norm {spoken(of.norm, 4)}",
        f"{in_percent(of.zeros)} zeros" if of.zeros else "",
    ]
    left = {"masked": np.isneginf(values), "NaN": np.isnan(values), "∞": np.isposinf(values)}
    others = [f"{np.count_nonzero(each):,} {name}" for name, each in left.items() if each.any()]
    note = _title(*(measured if of.count else ["no values"]), *others, remark)
    return Histogram(title, tuple(edges.tolist()), tuple(counts.tolist()), note)


# Positions and words


def _waves(dimensions: Callable[[Sinusoid, int], tuple[int, ...]]) -> Callable[[Request], Chart]:
    """A chart of the dimensions that are chosen for the cursor's column, with the cell marked."""

    def waves(request: Request) -> Chart:
        row, column = request.place.row, request.place.column
        sinusoid = cast(Sinusoid, request.step.op)
        value = float(request.view.window(range(row, row + 1), range(column, column + 1))[0, 0])
        mark = Series(f"{_named(request.view.rows, row)}: {spoken(value, 4)}", (float(row),), (value,))
        return positions.encoding_waves(sinusoid, request.view.rows.size, dimensions(sinusoid, column), mark, row)

    return waves


def _nearest_words(request: Request) -> BarChart:
    """The words whose rows of the embedding point most nearly where that of a word does, by their cosine."""
    row = request.place.row
    token = int(request.trace.window(request.step.inputs[0], (range(row, row + 1),), 0)[0])
    nearest = similar(request.trace, [Term(token, 1)], NEAREST, among=request.among)
    return BarChart(
        title=f"Nearest words of {request.word(token)} · cosine of their rows of the embedding",
        labels=tuple(request.word(other) for other, _ in nearest),
        values=tuple(cosine for _, cosine in nearest),
    )


# Heads and experts


def entropy_bars(trace: Trace, name: str, *, relative: bool = False, head: int | None = None) -> BarChart:
    """The mean row entropy of every head of an attention step, in bits or relative to the most that is possible."""
    measured = head_entropy(trace, name)
    values = measured.relative if relative else measured.bits
    most = f"{spoken(math.log2(max(measured.most_keys, 1)), 4)} ({_count(measured.most_keys, 'key')})"
    what = "Relative entropy of every head, 0 to 1" if relative else f"Entropy of every head in bits, at most {most}"
    everywhere, rule = measured.queries == measured.real, f" that see {_count(measured.keys, 'key')} or more"
    which = "all queries" if everywhere else f"{measured.queries:,} of {measured.real:,} queries"
    if measured.sampled:
        which = f"{which}, evenly spaced,{rule}"
    elif not everywhere:
        which += rule
    return BarChart(_title(what, name, f"mean over {which}"), tuple(map(str, range(len(values)))), values, head)


def _entropy(*, relative: bool) -> Callable[[Request], Chart]:
    return lambda of: entropy_bars(of.trace, of.view.name, relative=relative, head=of.place.head)


def _expert_load(request: Request, *, everywhere: bool) -> BarChart:
    """Number of tokens that every expert of a layer got, or the experts of each number in all layers together."""
    program = request.trace.program
    own = expert_step(program, request.view.name)
    steps = expert_steps(program) if everywhere or own is None else (own,)
    loads = [expert_load(request.trace, step) for step in steps]
    counts = [sum(of_expert) for of_expert in zip(*(load.tokens for load in loads), strict=True)]
    which = f"all {_count(len(loads), 'layer')} together" if everywhere else steps[0].name
    title = _title("Tokens of every expert", which, f"even load {spoken(sum(load.even for load in loads), 4)}")
    return BarChart(title, tuple(map(str, range(len(counts)))), tuple(map(float, counts)), request.place.column)


# The residual stream and gradients


def residual_norm_line(trace: Trace, name: str = "") -> LineChart:
    """The mean norm after every step of the residual stream, one curve a stack; the step `name` is marked."""
    curves, name = residual_norms(trace), trace.program.aliases.get(name, name)
    series = [Series(curve.stack, tuple(map(float, range(len(curve.norms)))), curve.norms) for curve in curves]
    for curve in curves:
        if name in curve.steps:
            place = curve.steps.index(name)
            norm = curve.norms[place]
            series.append(Series(f"{place} {name}: {spoken(norm, 4)}", (float(place),), (norm,)))
    return LineChart(
        title="Norm of the residual stream · mean over tokens",
        x_label=f"step of the stream, {', '.join(f'{curve.steps[0]} to {curve.steps[-1]}' for curve in curves)}",
        y_label="‖x‖₂",
        series=tuple(series),
        counted=True,
    )


GradientKind = Literal["gradient norms by layer", "gradient norms by weight", "gradient norms along the stream"]


def gradient_chart(kind: GradientKind, program: Program, gradients: Mapping[str, Host], name: str) -> BarChart:
    """The norms of a kind as bars on a log scale; that which the step or weight `name` belongs to is marked."""
    title, measure, marked = _GRADIENT_CHARTS[kind]
    norms, own = measure(program, gradients), marked(program, name)
    names = list(norms)
    at = names.index(own) if own in names else None
    part = around(at or 0, len(names), MOST_BARS)
    more = "" if len(part) == len(names) else f", {part.start + 1} to {part.stop} of {len(names)}"
    shown, labels = names[part.start : part.stop], list[str]()
    for each in shown:  # the end of a name tells the bars apart: `0.self_attention.query.weight` → `0 query.weight`
        parts = each.split(".")
        number = next((part for part in parts if part.isdigit()), "")
        labels.append(each if len(parts) < 3 else f"{number} {'.'.join(parts[-2:])}".strip())
    return BarChart(
        title=f"{title}{more} · log scale",
        labels=tuple(labels),
        values=tuple(norms[each] for each in shown),
        marked=None if at is None else at - part.start,
        logarithmic=True,
    )


def _weight_of(program: Program, name: str) -> str:
    if name in program.weights:
        return name
    return next((source for source in program.step(name).inputs if source in program.weights), "")


Maker = Callable[[Program, Mapping[str, Host]], Norms]
_GRADIENT_CHARTS: dict[GradientKind, tuple[str, Maker, Callable[[Program, str], str]]] = {
    "gradient norms by layer": (
        "Norm of ∂loss/∂weights by layer",
        layer_norms,
        lambda program, name: group_of(name if name in program.weights else f"{program.step(name).name}.weight"),
    ),
    "gradient norms by weight": ("Norm of ∂loss/∂weight", weight_norms, _weight_of),
    "gradient norms along the stream": (
        "Norm of ∂loss/∂x along the residual stream",
        stream_norms,
        lambda program, name: program.aliases.get(name, name),
    ),
}
GRADIENT_KINDS: tuple[GradientKind, ...] = tuple(_GRADIENT_CHARTS)


# Which steps a kind suits

Suits = Callable[[Program, Step], bool]


def _has_numbers(_program: Program, step: Step) -> bool:
    return not step.op.integer  # token IDs are names: they have no size


def _is_sinusoid(_program: Program, step: Step) -> bool:
    return isinstance(step.op, Sinusoid)


def _is_router(program: Program, step: Step) -> bool:
    return expert_step(program, step.name) is not None


_CHARTS: dict[Kind, tuple[Callable[[Request], Chart], Suits]] = {
    "waves": (_waves(positions.wave_dimensions), _is_sinusoid),
    "sines": (_waves(lambda sinusoid, _: positions.first_dimensions(sinusoid, cosines=False)), _is_sinusoid),
    "cosines": (_waves(lambda sinusoid, _: positions.first_dimensions(sinusoid, cosines=True)), _is_sinusoid),
    "all waves": (_waves(lambda sinusoid, _: positions.all_dimensions(sinusoid)), _is_sinusoid),
    "positions by distance": (
        lambda of: positions.by_distance(of.step.op, of.view),
        lambda _, step: step.name.endswith("embedding.positions"),
    ),
    "row": (lambda of: row_bars(of.view, of.place.row, of.place.column), _has_numbers),
    "entropy": (_entropy(relative=False), lambda _, step: is_attention(step)),
    "relative entropy": (_entropy(relative=True), lambda _, step: is_attention(step)),
    "expert load": (lambda of: _expert_load(of, everywhere=False), _is_router),
    "load of all layers": (  # where all have as many experts
        lambda of: _expert_load(of, everywhere=True),
        lambda program, step: _is_router(program, step) and len({e.shape[-1] for e in expert_steps(program)}) == 1,
    ),
    "histogram": (lambda of: value_histogram(of.view), _has_numbers),
    "residual norms": (
        lambda of: residual_norm_line(of.trace, of.view.name),
        lambda program, step: any(step.name in stream for stream in streams(program)),
    ),
    "nearest words": (
        _nearest_words,
        lambda _, step: (
            isinstance(step.op, Embed)
            and step.name.endswith("embedding.tokens")
            and any(name.endswith(TABLE) for name in step.inputs)
        ),
    ),
}
OF_WEIGHTS: tuple[Kind, ...] = ("row", "histogram")
"""The charts of weights and inputs, which are no steps."""


def _title(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _subject(view: View) -> str:
    return view.title if view.head is None else f"{view.title} · head {view.head}"


def _named(axis: Axis, index: int) -> str:
    """One index of an axis: `query waves @1`, or `dimension 5` where the label is the number; empty for one of none."""
    return f"{axis.name} {placed(axis.label(index), index)}" if axis.name else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
