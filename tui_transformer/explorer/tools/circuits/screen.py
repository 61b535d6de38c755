"""Circuits of weights: OV, QK and the matrices of a head, and the composition of all heads, as a heat map."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from textual import on
from textual.app import ComposeResult

from tui_transformer.analysis.circuits import READS, Circuit, Path, Words, chance, circuits, compositions, words_of
from tui_transformer.engine.number_format import minus
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import CIRCUITS
from tui_transformer.explorer.shell.overview import Overview, leave_to
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.matrix_pane import Legend
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.views.step_view import HEAD_MATRICES, circuit_view, composition_view, scale_for, tile_extremes
from tui_transformer.views.view import View

COMPOSED = "composition "
FEW = 4
"""Singular values and eigenvalues that are said."""


def open_from(port: Port) -> None:
    """The circuits; says so where the model has no attention with matrices of its own."""
    try:
        next(circuits(port.session.trace))
    except InputError as error:
        port.say(str(error))
        return
    port.open(CircuitsScreen(port))


@dataclass(frozen=True, eq=False)
class Known:
    """Numbers that do not depend on the head that is shown."""

    heads: Sequence[Circuit]
    words: Words

    @classmethod
    def of(cls, session: Session, task: Task) -> Known:
        """On the worker: read the weights of all heads."""
        heads = []
        for head in circuits(session.trace):
            task.report(f"layer {head.attention.layer} · head {head.head}")
            heads.append(head)
        task.report("words in and out")
        return cls(heads, words_of(session.trace))


@dataclass(frozen=True, eq=False)
class Shown:
    """A map, and what is said of it."""

    kind: str
    at: int
    view: View
    said: str
    more: str
    paths: Sequence[Path] = ()


class CircuitsScreen(Overview):
    """A matrix of a head, or the composition scores of all heads."""

    ACTIONS = CIRCUITS
    HELP_TOPIC, KIND = "circuits", "circuits"

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.kinds = (*list(HEAD_MATRICES)[:2], *(f"{COMPOSED}{reads}" for reads in READS), *list(HEAD_MATRICES)[2:])
        self.kind, self.at = self.kinds[0], 0
        self.known: Known | None = None
        self.shown: Shown | None = None

    def content(self) -> ComposeResult:
        """The map, and what its colours mean."""
        yield HeatMap(id="circuits")
        yield Legend(id="circuits-legend")

    def on_mount(self) -> None:
        """Read the weights."""
        self.query_one(HeatMap).focus()
        self.requests.ask(self.KIND, AT_ONCE + 1, partial(Known.of, self.session), self._begin)
        self.show_lines()

    def _begin(self, known: Known) -> None:
        self.known = known
        position = self.port.position
        here = [
            place
            for place, head in enumerate(known.heads)
            if position.stop.startswith(f"{head.attention.name.rpartition('.')[0]}.")
            and head.head == position.place.head
        ]
        self.at = here[0] if here else 0
        self.compute()

    def compute(self) -> None:
        """Make the map that is asked for, on the worker."""
        if self.known is not None:
            work = partial(_made, self.known, self.kind, self.at)
            self.requests.ask(self.KIND, AT_ONCE + 1, work, self._take)
            self.show_lines()

    def _take(self, shown: Shown) -> None:
        if (shown.kind, shown.at) != (self.kind, self.at):
            return
        self.shown = shown
        view = shown.view
        rows, columns = range(view.rows.size), range(view.columns.size)
        values = view.window(rows, columns)
        low, high = tile_extremes(values[np.isfinite(values)]) if np.isfinite(values).any() else (0.0, 1.0)
        scale = scale_for(view.kind, low, high)
        self.query_one(HeatMap).show(view, scale, view.tile(rows, columns))
        self.query_one(Legend).show(scale, note=view.formula)
        self.show_lines()

    # What is said

    def heading(self) -> str:
        """Which matrix."""
        if self.kind.startswith(COMPOSED):
            return f"Circuits · {self.kind} · earlier heads (rows) into later heads (columns)"
        head = None if self.known is None else self.known.heads[self.at]
        where = "" if head is None else f" · {head.attention.group} layer {head.attention.layer} · head {head.head}"
        return f"Circuits · {self.kind}{where}"

    def note(self) -> str:
        """Remark on what the matrices leave out."""
        return "weights alone: norms of layers, biases and rotations are not in it"

    def progress(self) -> str:
        """How many heads there are."""
        return "" if self.known is None else f"head {self.at + 1} of {len(self.known.heads)}"

    def detail(self) -> tuple[str, str]:
        """The cell under the cursor, and the measures of the head."""
        if self.shown is None:
            return "reading the weights", ""
        row, column = self.query_one(HeatMap).cursor
        view = self.shown.view
        value = float(view.window(range(row, row + 1), range(column, column + 1))[0, 0])
        cell = f"{view.rows.name} {view.rows.label(row)} · {view.columns.name} {view.columns.label(column)}"
        number = "one does not come before the other" if np.isnan(value) else minus(f"{value:.4f}")
        return f"{cell}   {number}   {self.shown.said}", self.shown.more

    def left_out(self) -> Collection[str]:
        """A composition is of all heads."""
        return ("head.next", "layer.next") if self.kind.startswith(COMPOSED) else ()

    # What keys do

    def action_kind(self) -> None:
        """The next matrix or composition."""
        self.kind = self.kinds[(self.kinds.index(self.kind) + 1) % len(self.kinds)]
        self.compute()

    def action_head(self, direction: int) -> None:
        """The next head, through all layers."""
        if self.known is not None and not self.kind.startswith(COMPOSED):
            self.at = (self.at + direction) % len(self.known.heads)
            self.compute()

    def action_layer(self, direction: int) -> None:
        """The same head of the next layer."""
        if self.known is not None:
            self.action_head(direction * self.known.heads[self.at].attention.heads)

    @on(HeatMap.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(HeatMap.Chosen)
    def _chosen(self) -> None:
        """To the weights of attention of the head; of a composition, of the later one."""
        if self.known is None or self.shown is None:
            return
        _, column = self.query_one(HeatMap).cursor
        composed = self.kind.startswith(COMPOSED)
        head = self.known.heads[min(column, len(self.known.heads) - 1) if composed else self.at]
        leave_to(self, head.attention.name, head.head)


def _made(known: Known, kind: str, at: int, task: Task) -> Shown:
    """On the worker: a map, and what is said of it."""
    task.report(kind)
    if kind.startswith(COMPOSED):
        reads = kind.removeprefix(COMPOSED)
        paths = list(compositions(known.heads, reads))
        best = max(paths, key=lambda path: path.score, default=None)
        more = f"by chance about {chance(known.heads[0]):.4f} (1 ÷ √d)"
        if best is not None:
            pair = (f"{each.attention.layer}.{each.head}" for each in (best.source, best.target))
            more += f" · largest {best.score:.4f}, {' → '.join(pair)}"
        return Shown(kind, at, composition_view(known.heads, paths, reads), "", more, paths)
    head = known.heads[at]
    copying = known.words.copying(head)
    said = "" if np.isnan(copying) else minus(f"copying score {copying:+.3f}")
    norms = (
        f"‖{name}‖ {np.linalg.norm(values):.3f}" for name, values in (("OV", head.ov_values), ("QK", head.qk_values))
    )
    return Shown(kind, at, circuit_view(head, kind), said, "   ".join((*norms, *_spectrum(head, kind))))


def _spectrum(head: Circuit, kind: str) -> Iterator[str]:
    """The largest singular values of the matrix, and eigenvalues where it is square."""
    values = {"OV": (head.ov_values, head.ov_eigenvalues), "QK": (head.qk_values, head.qk_eigenvalues)}
    singular, eigen = values.get(kind, (np.zeros(0), None))
    if eigen is None:
        matrix = HEAD_MATRICES[kind][1](head)
        singular = np.linalg.svd(matrix, compute_uv=False)
        yield f"‖W_{kind}‖ {np.linalg.norm(matrix):.3f}"
    yield f"singular values {', '.join(f'{value:.3g}' for value in singular[:FEW])} …"
    if eigen is not None:
        largest = eigen[np.argsort(-np.abs(eigen), kind="stable")][:FEW]
        yield f"eigenvalues {', '.join(map(_complex, largest))} …".replace("-", "−")


def _complex(value: complex) -> str:
    """`0.31`, `0.31+0.2i`."""
    return f"{value.real:.3g}" + (f"{value.imag:+.2g}i" if abs(value.imag) > 1e-9 * abs(value) else "")
