"""Circuits of weights as views: a matrix of a head, and the composition scores of all heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tui_transformer.analysis.circuits import Circuit, Path
from tui_transformer.engine.backend import Host
from tui_transformer.views.view import Axis, ScaleKind, View, window_of

HEAD_MATRICES: Mapping[str, tuple[str, Callable[[Circuit], Host]]] = {
    "OV": ("W_V W_O: what a token that is attended to writes", lambda head: head.ov),
    "QK": ("W_Q W_Kᵀ: which tokens attend to which", lambda head: head.qk),
    "Q": ("W_Q", lambda head: head.query),
    "K": ("W_K", lambda head: head.key),
    "V": ("W_V", lambda head: head.value),
    "O": ("W_O", lambda head: head.output),
}
"""The matrices of a head, with what they are."""


def head_name(head: Circuit) -> str:
    """`0.3`, of layer 0 the head 3; with the kind where it is no self-attention."""
    kind = "" if head.attention.own else "×"
    return f"{head.attention.layer}.{head.head}{kind}"


def circuit_view(head: Circuit, which: str) -> View:
    """A matrix of a head."""
    formula, make = HEAD_MATRICES[which]
    values = make(head)
    name = f"circuits.{head.attention.stack}.{head_name(head)}.{which}"
    return _view(name, formula, values, ("row", str), ("column", str), "diverging")


def composition_view(heads: Sequence[Circuit], paths: Sequence[Path], reads: str) -> View:
    """Earlier heads × later heads: the scores; NaN where the one does not come before the other."""
    places = {(id(head)): place for place, head in enumerate(heads)}
    values = np.full((len(heads), len(heads)), np.nan)
    for path in paths:
        values[places[id(path.source)], places[id(path.target)]] = path.score
    names = [head_name(head) for head in heads]
    label = names.__getitem__
    formula = f"how much of what a head reads as {reads} an earlier one writes"
    return _view(f"composition.{reads}", formula, values, ("from", label), ("to", label), "sequential")


def _view(
    name: str,
    formula: str,
    values: Host,
    rows: tuple[str, Callable[[int], str]],
    columns: tuple[str, Callable[[int], str]],
    kind: ScaleKind,
) -> View:
    height, width = values.shape
    down, across = Axis(rows[0], height, rows[1]), Axis(columns[0], width, columns[1])
    return View(name, name, down, across, kind, window_of(values), formula)
