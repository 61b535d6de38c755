"""`attribute --by gradient` and `--by integrated`: what every input token adds to a metric."""

from __future__ import annotations

import numpy as np

from tui_transformer.analysis.effects import answer_positions
from tui_transformer.analysis.expert_load import expert_steps
from tui_transformer.analysis.input_attribution import InputAttribution, gradient_times_input, integrated_gradients
from tui_transformer.analysis.metrics import Metric
from tui_transformer.cli.commands.attribute import Request
from tui_transformer.cli.experiment import parse_positions, where
from tui_transformer.cli.metrics import chosen, read_id
from tui_transformer.cli.output import Table, Value, emit, written
from tui_transformer.cli.progress import show
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.session.session import Session

JUMPS = "with the jumps where a token goes to another expert, which no gradient sees"
"""Said of the remainder where a model has experts."""


def run(session: Session, request: Request) -> None:
    """Print a line a token, and what they sum to.

    Raises:
        InputError: The metric cannot be measured, or does not depend on the step.
    """
    if request.neurons:
        raise UsageError("--neurons are terms: leave --by out")
    trace = session.trace
    if not trace.program.logits:
        raise InputError("the model has no logits of words: attribution reads these")
    positions = answer_positions(trace, parse_positions(request.position, trace), folder=session.model.folder)
    metric = chosen(session, request) or _likeliest(session, positions)
    attribution = _attribution(session, request, metric, positions)
    label = session.labels.of(trace.program.axes(attribution.step)[-2])
    rows: list[tuple[Value, ...]] = [(row, label(row), float(value)) for row, value in enumerate(attribution.rows)]
    if request.top is not None:
        rows = sorted(rows, key=lambda row: -abs(float(row[2] or 0)))[: request.top]
    columns = ("position", "token", "gradient × input" if attribution.baseline is None else "integrated gradient")
    emit(written(Table(columns, rows, 4, _note(session, attribution, metric, positions)), request.format))


def _likeliest(session: Session, positions: range) -> Metric:
    """The logit of the most likely token, at the first position."""
    name = session.trace.program.logits
    width = session.trace.program.shape(name)[-1]
    row = session.trace.window(name, (positions[:1], range(width)))
    return Metric("logit", (int(np.argmax(row[0])),))


def _attribution(session: Session, request: Request, metric: Metric, positions: range) -> InputAttribution:
    if request.by == "gradient":
        return gradient_times_input(session.trace, metric, positions, request.of)
    baseline = _baseline(session, request.baseline, request.of)
    return integrated_gradients(
        session.trace, metric, positions, request.of, baseline=baseline, points=request.points, report=show
    )


def _baseline(session: Session, text: str, step: str) -> float | Host:
    """0, the mean of the rows of the input, or the rows that a word has at every position."""
    trace = session.trace
    if text == "0":
        return 0.0
    own = trace.program.step(step).name
    if text == "mean":
        rows: Host = np.asarray(trace[own], np.float64).reshape(-1, trace.program.shape(own)[-1]).mean(axis=0)
        return rows
    ids = [read_id(session.model, text)] * trace.givens["input.ids"].shape[1]
    other = session.model.trace(ids=ids, mask=[1] * len(ids), decoder_ids=_decoder_ids(session))
    return np.asarray(other[own], np.float64)


def _decoder_ids(session: Session) -> list[list[int]] | None:
    ids = session.trace.givens.get("decoder.input.ids")
    return None if ids is None else ids.tolist()


def _note(session: Session, attribution: InputAttribution, metric: Metric, positions: range) -> str:
    said = metric.said(session.labels.word) + ("" if metric.targets else f" at {where(session, positions)}")
    total = float(attribution.cells.sum())
    if attribution.baseline is None:
        return f"{said}: {attribution.value:.4f} · input {attribution.step} · sum {total:.4f}, to first order"
    parts = (
        f"{said}: {attribution.value:.4f}, of the baseline {attribution.baseline:.4f}",
        f"input {attribution.step}",
        f"sum {total:.4f}",
        f"remainder {attribution.remainder:.1e}",
        *([JUMPS] if expert_steps(session.trace.program) else []),
    )
    return " · ".join(parts)
