"""Circuits of weights: OV, QK and the matrices of a head, and the composition of all heads, as a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tui_transformer.analysis.circuits import READS, Circuit, Words, chance, circuits, compositions, words_of
from tui_transformer.engine.number_format import minus
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, following, leave_to, show_map, value_at
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.links import attention_at
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.records import dataclass
from tui_transformer.views.step_view import HEAD_MATRICES, circuit_view, composition_view, scale_for, tile_extremes
from tui_transformer.views.view import View

COMPOSED = "composition "

LOOKS: Mapping[str, tuple[str, str]] = {
    "OV": (
        "What is written of a word that is looked at: rows are read, columns written",
        "positive eigenvalues copy words · {kind}: QK, where it looks · {head.next}: the next head",
    ),
    "QK": (
        "Which word looks at which: rows of the word that looks, columns of the other",
        "the largest cells are what is looked for · {kind}: who reads what it writes",
    ),
    COMPOSED: (
        "How much of what an earlier head (row) writes a later one (column) reads",
        "cells far above chance are pairs that work together · {cursor.choose}: the later head",
    ),
    "O": (
        "From what the head has mixed (rows) back to the residual stream (columns)",
        "{kind}: OV, both matrices in one · {head.next}: the next head",
    ),
    **{
        kind: (
            f"From the residual stream (rows) to the {written} of the head (columns)",
            "{kind}: the next matrix · {head.next}: the next head · {cursor.choose}: its attention",
        )
        for kind, written in (("Q", "queries"), ("K", "keys"), ("V", "values"))
    },
}
"""What one looks at, and what to do next, by the matrix."""

FEW = 4
"""Singular values and eigenvalues that are said."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A map, and what is said of it."""

    kind: str
    at: int
    view: View
    said: str
    more: str


class CircuitsScreen(Overview, tool="circuits"):
    """A matrix of a head, or the composition scores of all heads."""

    WIDGETS = (HeatMap, Legend)
    HAS_COLUMNS = True
    DEFAULT_CSS = """
    CircuitsScreen {
        & #overview-columns { height: 2; padding: 0 1; }
        &.-short #overview-columns { height: 1; }
    }
    """

    def __init__(self, port: Port) -> None:
        """Begin with the head that is shown.

        Raises:
            InputError: The model has no attention with matrices of its own.
        """
        circuits(port.session.trace)
        super().__init__(port)
        self.kinds = (*list(HEAD_MATRICES)[:2], *(f"{COMPOSED}{reads}" for reads in READS), *list(HEAD_MATRICES)[2:])
        self.kind, self.at = self.kinds[0], 0
        self.heads: Sequence[Circuit] = ()
        self.words: Words | None = None
        self.shown: Shown | None = None

    def begin(self) -> None:
        trace, position = self.session.trace, self.port.position

        def work(task: Task) -> tuple[Sequence[Circuit], Words]:
            heads = []
            for head in circuits(trace):
                task.report(f"layer {head.attention.layer} · head {head.head}")
                heads.append(head)
            task.report("words in and out")
            return heads, words_of(trace)

        def take(known: tuple[Sequence[Circuit], Words]) -> None:
            self.heads, self.words = known
            at = attention_at(position.stop, [each.attention for each in self.heads])
            here = [each.attention is at and each.head == position.place.head for each in self.heads]
            self.at = here.index(True) if any(here) else 0
            self._show()

        self.compute(work, take)

    def _show(self) -> None:
        if self.words is not None:
            self.compute(partial(_made, self.heads, self.words, self.kind, self.at), self._take)

    def _take(self, shown: Shown) -> None:
        self.shown, view = shown, shown.view
        limits = tile_extremes(view.window(range(view.rows.size), range(view.columns.size)))
        show_map(self, view, scale_for(view.kind, *limits), view.formula)

    def texts(self) -> Texts:
        kind, place = (self.kind, self.at) if self.shown is None else (self.shown.kind, self.shown.at)
        at = self.heads[place] if self.heads else None
        if kind.startswith(COMPOSED):
            heading = f"Circuits · {kind} · earlier heads (rows) into later heads (columns)"
        else:
            where = "" if at is None else f" · {at.attention.group} layer {at.attention.layer} · head {at.head}"
            heading = f"Circuits · {kind}{where}"
        detail = "reading the weights", ""
        if self.shown is not None:
            (row, column), view = self.query_one(HeatMap).at, self.shown.view
            value = value_at(view, row, column)
            cell = f"{view.rows.name} {view.rows.label(row)} · {view.columns.name} {view.columns.label(column)}"
            number = "one does not come before the other" if np.isnan(value) else minus(f"{value:.4f}")
            detail = f"{cell}   {number}   {self.shown.said}", self.shown.more
        return Texts(
            heading,
            "weights alone: norms of layers, biases and rotations are not in it",
            detail,
            f"head {place + 1} of {len(self.heads)}" if self.heads else "",
            "\n".join(map(self.port.hint, LOOKS[COMPOSED if kind.startswith(COMPOSED) else kind])),
            useful=dict.fromkeys(("head.next", "layer.next"), not self.kind.startswith(COMPOSED)),
        )

    def action_kind(self) -> None:
        self.kind = following(self.kinds, self.kind)
        self._show()

    def action_head(self, by: int) -> None:
        if self.heads and not self.kind.startswith(COMPOSED):
            self.at = (self.at + by) % len(self.heads)
            self._show()

    def action_layer(self, by: int) -> None:
        if self.heads:
            self.action_head(by * self.heads[self.at].attention.heads)

    def chosen(self) -> None:
        """To the weights of attention of the head; of a composition, of the later one."""
        if self.shown is None:
            return
        _, column = self.query_one(HeatMap).cursor
        composed = self.shown.kind.startswith(COMPOSED)
        head = self.heads[min(column, len(self.heads) - 1) if composed else self.shown.at]
        leave_to(self, head.attention.name, head.head)


def _made(heads: Sequence[Circuit], words: Words, kind: str, at: int, task: Task) -> Shown:
    """On the worker: a map, and what is said of it."""
    task.report(kind)
    if kind.startswith(COMPOSED):
        reads = next(each for each in READS if each == kind.removeprefix(COMPOSED))
        paths = list(compositions(heads, reads, lambda said: task.report(f"{kind}: {said}")))
        best = max(paths, key=lambda path: path.score, default=None)
        more = f"by chance about {chance(heads[0]):.4f} (1 ÷ √d)"
        if best is not None:
            pair = (f"{each.attention.layer}.{each.head}" for each in (best.source, best.target))
            more += f" · largest {best.score:.4f}, {' → '.join(pair)}"
        return Shown(kind, at, composition_view(heads, paths, reads), "", more)
    head = heads[at]
    copying = words.copying(head)
    said = "" if np.isnan(copying) else minus(f"copying score {copying:+.3f}")
    square = {"OV": (head.ov_values, head.ov_eigenvalues), "QK": (head.qk_values, head.qk_eigenvalues)}
    numbers = [f"‖{name}‖ {np.linalg.norm(values):.3f}" for name, (values, _) in square.items()]
    singular, eigen = square.get(kind, (np.zeros(0), None))
    if eigen is None:
        matrix = HEAD_MATRICES[kind][1](head)
        singular = np.linalg.svd(matrix, compute_uv=False)
        numbers.append(f"‖W_{kind}‖ {np.linalg.norm(matrix):.3f}")
    numbers.append(f"singular values {', '.join(f'{value:.3g}' for value in singular[:FEW])} …")
    if eigen is not None:
        largest = eigen[np.argsort(-np.abs(eigen), kind="stable")][:FEW]
        values = (f"{v.real:.3g}" + (f"{v.imag:+.2g}i" if abs(v.imag) > 1e-9 * abs(v) else "") for v in largest)
        numbers.append(f"eigenvalues {', '.join(values)} …".replace("-", "−"))
    return Shown(kind, at, circuit_view(head, kind), said, "   ".join(numbers))
