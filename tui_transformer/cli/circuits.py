"""`circuits`: what the weights of every head do by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Edited, Layer, Of
from tui_transformer.cli.output import Row, Table, by_size, emit_view
from tui_transformer.cli.session import open_session
from tui_transformer.cli.terminal import cleared, show
from tui_transformer.cli.typer_layer import option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.analysis.circuits import Circuit, Reads

SORTED = {"copying": 3, "ov": 4, "qk": 6}
"""The column that an order goes by."""


@dataclass(frozen=True, kw_only=True)
class Circuits(Edited):
    """List what the weights of every head do by themselves: OV and QK, their norms, singular values, copying score.

    No sentence is needed: the matrices W_Q, W_K, W_V and W_O of a head are looked at, and with --matrix shown. With
    --compose, how much of what a head reads is what an earlier head writes.

    Example: tui-transformer circuits --model copy --sort copying
    """

    layer: Layer = None
    sort: Literal["copying", "ov", "qk"] | None = option(None, "By the copying score or a norm.")
    values: Literal["ov", "qk"] | None = option(None, "Singular values and eigenvalues of it, a row each.")
    matrix: Literal["ov", "qk", "q", "k", "v", "o"] | None = option(
        None, "One matrix of a head, by default of layer 0 and head 0, in full."
    )
    head: int | None = option(None, "With --matrix: which head, from 0.", min=0)
    of: Of = None
    compose: Literal["Q", "K", "V"] | None = option(
        None, "Scores of every head with every earlier one: into its queries, keys, values."
    )
    top: int | None = option(None, "So many of the largest scores alone.", min=1)
    format: Literal["text", "json", "csv", "svg"] = option("text", "How to write it; svg with --compose or --matrix.")

    def run(self) -> None:
        if self.compose is not None:
            self._composed(self.compose)
        elif self.matrix is not None:
            self._matrix(self.matrix)
        else:
            self._heads()

    def _heads(self) -> None:
        """A line a head, or a line a singular value."""
        import numpy as np

        from tui_transformer.analysis.circuits import circuits, words_of

        if self.head is not None or self.of is not None:
            raise UsageError("--head and --of are of --matrix")
        if self.format == "svg" or self.top is not None:
            raise UsageError("--top and svg are of --compose, svg of --matrix too")
        trace = open_session(self).trace
        found = circuits(trace, self.layer)
        if self.values is not None:
            names = ("attention", "layer", "head", "rank", "singular value", "eigenvalue", "imaginary part")
            Table(names, [row for each in found for row in _values(each, self.values)], 4).emit(self.format)
            return
        words = words_of(trace)
        rows: list[Row] = []
        for each in found:
            ov, qk = (np.sqrt((values**2).sum()) for values in (each.ov_values, each.qk_values))
            sizes = (ov, each.ov_values[0], qk, each.qk_values[0])
            rows.append((*_place(each), words.copying(each), *map(float, sizes)))
        if self.sort is not None:
            at = SORTED[self.sort]
            rows.sort(key=lambda row: by_size(row[at]))
        note = "Frobenius norms and largest singular values of W_V W_O and W_Q W_Kᵀ"
        note += " · copying: Σ λ ÷ Σ |λ| of W_E W_V W_O W_U"
        columns = ("attention", "layer", "head", "copying", "ov", "ov largest", "qk", "qk largest")
        Table(columns, rows, 4, note).emit(self.format)

    def _composed(self, into: Reads) -> None:
        """A line a pair, the largest score first, or a heat map."""
        from tui_transformer.analysis.circuits import chance, circuits, compositions

        if any(each is not None for each in (self.values, self.sort, self.layer, self.matrix, self.head)):
            raise UsageError(
                "--compose takes every head, by its score: leave --layer, --head, --sort, --values and --matrix out"
            )
        heads = list(circuits(open_session(self).trace))
        with cleared():
            paths = sorted(compositions(heads, into, show), key=lambda path: -path.score)
        if self.format == "svg":
            from tui_transformer.views.step_view import composition_view

            emit_view(composition_view(heads, paths, into), "svg")
            return
        rows: list[Row] = [(*_place(path.source), *_place(path.target), path.score) for path in paths[: self.top]]
        note = f"{into}-composition of {len(paths)} pairs; by chance about {chance(heads[0]):.4f} (1 ÷ √d)"
        columns = ("from", "from layer", "from head", "to", "to layer", "to head", "score")
        Table(columns, rows, 4, note).emit(self.format)

    def _matrix(self, which: str) -> None:
        from tui_transformer.analysis.attentions import chosen_group
        from tui_transformer.analysis.circuits import circuits
        from tui_transformer.views.step_view import circuit_view

        if self.values is not None or self.sort is not None or self.top is not None:
            raise UsageError("--matrix is of one head: leave --sort, --values and --top out")
        trace = open_session(self).trace
        group = chosen_group(trace.program, self.of)
        heads = [each for each in circuits(trace, self.layer or 0) if each.attention.group == group]
        if not heads:
            raise InputError(f"layer {self.layer or 0} has no {group} with matrices")
        at = self.head or 0
        if at >= len(heads):
            raise InputError(f"there is no head {at}: heads are 0 to {len(heads) - 1}")
        emit_view(circuit_view(heads[at], which.upper()), self.format)


def _values(circuit: Circuit, which: str) -> Iterator[Row]:
    singular = circuit.ov_values if which == "ov" else circuit.qk_values
    eigen = circuit.ov_eigenvalues if which == "ov" else circuit.qk_eigenvalues
    eigen = eigen[(-abs(eigen)).argsort(kind="stable")]
    for rank, (one, other) in enumerate(zip(singular, eigen, strict=True), 1):
        yield (*_place(circuit), rank, float(one), float(other.real), float(other.imag))


def _place(circuit: Circuit) -> Row:
    return circuit.attention.group, circuit.attention.layer, circuit.head
