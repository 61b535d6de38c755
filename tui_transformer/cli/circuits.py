"""`circuits`: what the weights of every head do by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tui_transformer.analysis.attentions import chosen_group
from tui_transformer.analysis.circuits import Circuit, Words, chance, circuits, compositions, words_of
from tui_transformer.cli.commands.circuits import Request
from tui_transformer.cli.output import Table, Value, by_size, emit, page, written
from tui_transformer.cli.session import open_session
from tui_transformer.errors import InputError, UsageError
from tui_transformer.report import svg, text
from tui_transformer.report.export import FORMATS
from tui_transformer.views.step_view import circuit_view, composition_view

HEADS = ("attention", "layer", "head", "copying", "ov", "ov largest", "qk", "qk largest")
VALUES = ("attention", "layer", "head", "rank", "singular value", "eigenvalue", "imaginary part")
PAIRS = ("from", "from layer", "from head", "to", "to layer", "to head", "score")
SORTED = {"copying": 3, "ov": 4, "qk": 6}
"""The column that an order goes by."""


def run(request: Request) -> None:
    """Print a line a head, or a line a singular value.

    Raises:
        InputError: The model has no attention with matrices, or no such layer.
    """
    if request.compose is not None:
        _composed(request)
        return
    if request.matrix is not None:
        _matrix(request, request.matrix)
        return
    if request.head is not None or request.of is not None:
        raise UsageError("--head and --of are of --matrix")
    if request.format == "svg" or request.top is not None:
        raise UsageError("--top and svg are of --compose, svg of --matrix too")
    session = open_session(request)
    heads_of_layer = circuits(session.trace, request.layer)
    if request.values is not None:
        rows = [row for circuit in heads_of_layer for row in _values(circuit, request.values)]
        emit(written(Table(VALUES, rows, 4), request.format))
        return
    words = words_of(session.trace)
    heads = [_row(circuit, words) for circuit in heads_of_layer]
    if request.sort is not None:
        heads.sort(key=lambda row: by_size(row[SORTED[request.sort or "ov"]]))
    note = (
        "Frobenius norms and largest singular values of W_V W_O and W_Q W_Kᵀ · copying: Σ λ ÷ Σ |λ| of W_E W_V W_O W_U"
    )
    emit(written(Table(HEADS, heads, 4, note), request.format))


def _composed(request: Request) -> None:
    """A line a pair, the largest score first, or a heat map."""
    if any(each is not None for each in (request.values, request.sort, request.layer, request.matrix, request.head)):
        raise UsageError(
            "--compose takes every head, by its score: leave --layer, --head, --sort, --values and --matrix out"
        )
    heads = list(circuits(open_session(request).trace))
    paths = sorted(compositions(heads, request.compose or "Q"), key=lambda path: -path.score)
    if request.format == "svg":
        emit([svg.view_svg(composition_view(heads, paths, request.compose or "Q"))])
        return
    rows: list[tuple[Value, ...]] = [(*_place(path.source), *_place(path.target), path.score) for path in paths]
    note = f"{request.compose}-composition of {len(paths)} pairs; by chance about {chance(heads[0]):.4f} (1 ÷ √d)"
    emit(written(Table(PAIRS, rows[: request.top], 4, note), request.format))


def _matrix(request: Request, which: str) -> None:
    """One matrix of a head."""
    if request.values is not None or request.sort is not None or request.top is not None:
        raise UsageError("--matrix is of one head: leave --sort, --values and --top out")
    trace = open_session(request).trace
    group = chosen_group(trace.program, request.of)
    heads = [each for each in circuits(trace, request.layer or 0) if each.attention.group == group]
    if not heads:
        raise InputError(f"layer {request.layer or 0} has no {group} with matrices")
    at = request.head or 0
    if at >= len(heads):
        raise InputError(f"there is no head {at}: heads are 0 to {len(heads) - 1}")
    view = circuit_view(heads[at], which.upper())
    emit([text.render(view, page(everything=False))] if request.format == "text" else FORMATS[request.format](view))


def _row(circuit: Circuit, words: Words) -> tuple[Value, ...]:
    sizes = (number for values in (circuit.ov_values, circuit.qk_values) for number in _sizes(values))
    return (*_place(circuit), words.copying(circuit), *sizes)


def _sizes(values: np.ndarray) -> tuple[float, float]:
    return float(np.sqrt((values**2).sum())), float(values[0])


def _values(circuit: Circuit, which: str) -> Iterator[tuple[Value, ...]]:
    singular = circuit.ov_values if which == "ov" else circuit.qk_values
    eigen = circuit.ov_eigenvalues if which == "ov" else circuit.qk_eigenvalues
    eigen = eigen[np.argsort(-np.abs(eigen), kind="stable")]
    for rank, (one, other) in enumerate(zip(singular, eigen, strict=True), 1):
        yield (*_place(circuit), rank, float(one), float(other.real), float(other.imag))


def _place(circuit: Circuit) -> tuple[Value, ...]:
    return circuit.attention.group, circuit.attention.layer, circuit.head
