"""A step of the model: `show`, all of them, one, or how a cell was made; `chart`; `poster`, the way back to words."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_transformer.cli.options import Edited, Featured, Metric, Position, Targets, Tokens, steps
from tui_transformer.cli.output import check_ending, deliver, emit_view, json_text, note, page
from tui_transformer.cli.session import open_session
from tui_transformer.cli.typer_layer import argument, flag, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.engine.explanation import Index
    from tui_transformer.engine.gradient import Gradients
    from tui_transformer.engine.program import Program
    from tui_transformer.engine.trace import Trace
    from tui_transformer.report import text
    from tui_transformer.session.session import Session
    from tui_transformer.views import charts
    from tui_transformer.views.step_view import Place
    from tui_transformer.views.view import View

    Backward = tuple[Gradients, tuple[int, ...]]
    """Gradients, and the targets that they are of."""


@dataclass(frozen=True, kw_only=True)
class Show(Featured):
    """Show the steps, one step, or how one cell was made.

    Example: tui-transformer show weights --head 2 --explain 0,8
    """

    step: str | None = argument(
        "A name, the end of one, or a pattern with *; without it, all steps are listed.",
        default=None,
        metavar="STEP",
        autocompletion=steps,
    )
    head: str | None = option(None, "Which head, from 0; in text all, below each other.", metavar="N|all")
    explain: str | None = option(None, "The terms that made one cell.", metavar="ROW,COLUMN")
    gradient: bool = flag("The gradient instead of the values: of the mean cross-entropy, or a metric.")
    targets: Targets = None
    metric: Metric = None
    tokens: Tokens = None
    position: Position = None
    format: Literal["text", "json", "csv", "dat", "svg"] | None = option(
        None, "Text by default; for a file, what its name ends in."
    )
    everything: bool = flag("Everything, however wide.", "--all")
    out: Path | None = option(None, "Write to .txt, .json, .csv, .dat, .svg or .npz.", metavar="FILE")

    def run(self) -> None:
        self._check_gradient()
        session = open_session(self)
        if self.step is None:
            deliver(self._list(session.trace.program), self.out)
            return
        from tui_transformer.cli.metrics import gradients_of_chosen
        from tui_transformer.engine.names import find
        from tui_transformer.report import text

        back = gradients_of_chosen(session, session.trace, self) if self.gradient else None
        program = session.trace.program
        names = find((*program.names, *program.weights), self.step)
        views = _views(session, names, self._head(), None if back is None else back[0])
        if self.explain is not None:
            deliver(self._explained(session.trace, _single(views, "--explain"), self.explain, back), self.out)
        elif self.format == "text" or (self.format is None and self.out is None):
            texts = (text.render(view, self._page()) for view in views)
            deliver(("\n" * (number > 0) + each for number, each in enumerate(texts)), self.out)
        else:
            asked = f"--out {self.out}" if self.format is None else f"--format {self.format}"
            emit_view(_single(views, asked), self.format, self.out)

    def _check_gradient(self) -> None:
        scalar = (self.metric, self.tokens, self.targets) != (None, None, None)
        if (self.gradient or scalar) and self.step is None:
            raise UsageError("--gradient and --targets need a STEP: `tui-transformer show` lists the steps")
        if self.gradient and not scalar:
            raise UsageError(
                "--gradient needs --targets: one token ID a position, as 7,9,-1 (-1 = not counted), "
                "or --tokens or --metric"
            )
        if scalar and not self.gradient:
            raise UsageError("--targets is what a gradient is computed from: give --gradient too")

    def _head(self) -> int | None:
        """The head that is shown; None for all."""
        if self.head == "all":
            return None
        if not re.fullmatch(r"-?[0-9]{1,9}", self.head or "0"):
            raise UsageError(f"--head: {(self.head or '')[:40]!r} is no head: write a number from 0, or all")
        return int(self.head or 0)

    def _form(self) -> str:
        """The format of what is no matrix: that which is asked for, else what the name of the file says."""
        from tui_transformer.report.export import SUFFIXES

        if self.format is None:
            check_ending(self.out, "what is shown", SUFFIXES)
        return self.format or SUFFIXES.get("" if self.out is None else self.out.suffix.lower(), "text")

    def _page(self) -> text.Page:
        return page(everything=self.everything or self.out is not None)

    def _explained(self, trace: Trace, view: View, cell: str, back: Backward | None) -> Iterator[str]:
        """How the cell was made; of a gradient by the chain rule."""
        from tui_transformer.engine.gradient_explanation import GRADIENT, explain_gradient
        from tui_transformer.report import text
        from tui_transformer.views.step_view import index_of

        place, name = _place_of_cell(view, cell, "--explain"), view.name.removeprefix(GRADIENT)
        index = index_of(trace.program.axes(name), place)
        explanation = trace.explain_cell(name, index) if back is None else explain_gradient(trace, *back, name, index)
        if self._form() not in ("text", "json"):
            raise UsageError(f"--explain has no {self._form()} format: use text or json")
        if self._form() == "json":
            yield json_text(text.cell_data(explanation))
            return
        sides = ((view.rows, place.row), (view.columns, place.column))
        labels = [f"{axis.name} {axis.label(i)}" for axis, i in sides if axis.label(i) != str(i)]
        yield text.cell_text(explanation, labels, self._page(), trace.edits)

    def _list(self, program: Program) -> Iterator[str]:
        """All steps, their names by which others are called, and the weights."""
        from tui_transformer.engine.axis import shape_text
        from tui_transformer.report.export import csv_text
        from tui_transformer.report.numbers import aligned

        if self.head is not None or self.explain is not None:
            raise UsageError("--head and --explain need a STEP: `tui-transformer show` lists the steps")
        if self._form() not in ("text", "json", "csv"):
            raise UsageError(f"the list of steps has no {self._form()} format: name a STEP, or use text, json or csv")
        columns, rows = ("name", "kind", "shape", "formula"), list[tuple[str, str, tuple[int, ...], str]]()
        for name in program.names:
            alias = program.aliases.get(name)
            formula = program.step(name).op.formula if alias is None else f"= {alias}"
            rows.append((name, "step" if alias is None else "alias", program.shape(name), formula))
        rows += [(name, "weight", program.shape(name), "") for name in program.weights]
        if self._form() == "json":
            yield json_text([dict(zip(columns, row, strict=True)) for row in rows])
        elif self._form() == "csv":
            yield csv_text(
                [columns, *((name, kind, "x".join(map(str, shape)), formula) for name, kind, shape, formula in rows)]
            )
        else:
            yield from aligned((name, shape_text(shape), formula) for name, _, shape, formula in rows)


def _single(views: list[View], option: str) -> View:
    if len(views) > 1:
        several = len({view.name for view in views}) > 1
        advice = "write the whole name of one" if several else "name one head, or leave --head out"
        raise UsageError(f"{option} takes one {'step' if several else 'matrix'}, and {len(views)} match: {advice}")
    return views[0]


def _place_of_cell(view: View, cell: str, option: str) -> Place:
    """The place that an option names as ROW,COLUMN; InputError where the view has no such cell."""
    from tui_transformer.views.step_view import Place

    match = re.fullmatch(r"\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*", cell)
    if match is None:
        raise UsageError(f"{option}: {cell[:40]!r} is not a cell: write ROW,COLUMN, as 4,1")
    place = Place(view.head or 0, int(match[1]), int(match[2]))
    if place.row >= view.rows.size or place.column >= view.columns.size:
        last = f"{view.rows.size - 1},{view.columns.size - 1}"
        raise InputError(f"{view.name} has no cell {place.row},{place.column}: its cells are 0,0 to {last}")
    return place


def _views(session: Session, names: Sequence[str], head: int | None, gradients: Gradients | None) -> list[View]:
    """A view of each name and head, None: of all heads that it has; with gradients, of that of each name that has one.

    Raises:
        InputError: None of them has a gradient.
    """
    from tui_transformer.engine.gradient_explanation import GRADIENT, gradient_formula
    from tui_transformer.views.step_view import gradient_of, view_of

    trace, program = session.trace, session.trace.program
    own = {name: program.aliases.get(name, name) for name in names}
    known = [name for name in names if gradients is None or own[name] in gradients.values]
    if not known:
        raise InputError(f"{names[0]} has no gradient: the loss does not depend on it, or it depends on no weight")
    views = []
    for name in known:
        axes = program.axes(name)
        every = range(axes[0].size if len(axes) == 3 else 1)
        for number in every if head is None else (head,):
            view = view_of(trace, name, session.labels, head=number)
            if gradients is None:
                views.append(view)
                continue
            of = "loss" if gradients.start is None else f"({gradients.start.description})"
            gradient = gradient_of(view, axes, gradients.values[own[name]], of)
            formula = gradient_formula(trace, gradients, name)
            views.append(dataclasses.replace(gradient, name=f"{GRADIENT}{name}", formula=formula))
    return views


@dataclass(frozen=True, kw_only=True)
class Chart(Featured):
    """Draw a chart of a step: a row as bars, a histogram, waves of positions, entropy of heads.

    Example: tui-transformer chart embedding.positions --kind sines --out sines.svg
    """

    step: str = argument("A name, or the end of one.", metavar="STEP", autocompletion=steps)
    kind: str | None = option(None, "Which chart, of those that suit the step; by default the first.")
    head: int | None = option(None, "Which head, from 0.")
    cell: str | None = option(None, "The row that is drawn, the column marked.", metavar="ROW,COLUMN")
    format: Literal["text", "svg"] | None = option(None, "Text by default; for a file, what its name ends in.")
    out: Path | None = option(None, "Write to .svg or .txt.", metavar="FILE")

    def run(self) -> None:
        from tui_transformer.explorer.run import chart_drawing
        from tui_transformer.report.svg import chart_svg

        drawn = self._drawn(open_session(self))
        if self.out is not None and self.format is None:
            chart_drawing.export_chart(drawn, self.out)
            note(f"wrote {self.out}")
        elif self.format == "svg":
            deliver([chart_svg(drawn)], self.out)
        elif sys.stdout.isatty():
            size = shutil.get_terminal_size((chart_drawing.WIDTH, chart_drawing.HEIGHT))
            deliver([chart_drawing.chart_text(drawn, size.columns, size.lines - 1)], self.out)
        else:
            deliver([chart_drawing.chart_text(drawn)], self.out)

    def _drawn(self, session: Session) -> charts.Chart:
        from tui_transformer.engine.names import find, listed
        from tui_transformer.views.chart_data import chart, charts_for
        from tui_transformer.views.step_view import Place, view_of

        program = session.trace.program
        names = find((*program.names, *program.weights), self.step)
        if len(names) > 1:
            raise UsageError(f"a chart is of one step, and {len(names)} match: {listed(names)}")
        kinds = charts_for(program, names[0])
        if not kinds:
            raise InputError(f"{names[0]} has no chart: its values are names, not sizes")
        asked = kinds[0] if self.kind is None else self.kind.strip().replace("-", " ").casefold()
        kind = next((kind for kind in kinds if kind == asked), None)
        if kind is None:
            raise UsageError(f"{names[0]} has no chart of {(self.kind or '')[:40]!r}: use {', '.join(kinds)}")
        view = view_of(session.trace, names[0], session.labels, head=self.head or 0)
        place = Place(view.head or 0) if self.cell is None else _place_of_cell(view, self.cell, "--cell")
        return chart(kind, session.trace, view, place, word=session.labels.word, among=session.model.has_vector)


# The way back


@dataclass(frozen=True, kw_only=True)
class Poster(Edited):
    """Draw the way back from one cell to the words: each sum with its largest terms, level after level.

    Example: tui-transformer poster weights --cell 2,0,8 --out weight.svg
    """

    step: str = argument("A name, or the end of one.", metavar="STEP", autocompletion=steps)
    cell: str | None = option(None, "The cell, from 0; by default the largest of the step.", metavar="HEAD,ROW,COLUMN")
    levels: int | None = option(None, "How far back; by default as far as it goes.", metavar="N", min=1)
    terms: int = option(2, "Terms of a sum that are shown.", metavar="N", min=1, max=20)
    most: int = option(24, "Cells that are taken apart, what adds most first.", metavar="N", min=1, max=2000)
    out: Path | None = option(None, "Write to .svg, .png or .txt; by default text to the terminal.", metavar="FILE")

    def run(self) -> None:
        from tui_transformer.engine.names import one
        from tui_transformer.files import write_whole
        from tui_transformer.report.poster import ENDINGS, poster_svg, poster_text
        from tui_transformer.views.poster import poster

        if self.out is not None and self.out.suffix.lower() not in ENDINGS:
            raise UsageError(f"--out {self.out}: a poster ends in {', '.join(ENDINGS)}")
        session = open_session(self)
        program, trace = session.trace.program, session.trace
        name, labels = one(program.names, self.step), session.labels
        index, terms, most = self._index(trace, name), self.terms, self.most
        root = poster(trace, name, index, labels, levels=self.levels, terms=terms, most=most)
        if self.out is None or self.out.suffix.lower() == ".txt":
            deliver(poster_text(root, page(everything=self.out is not None).width), self.out)
            return
        svg = poster_svg(root, f"{session.text} · {session.model.name}" if session.text else session.model.name)
        if self.out.suffix.lower() == ".png":
            from tui_transformer.report.export import png_drawing

            png = png_drawing()
            if png is None:
                raise InputError("a PNG needs the extra record: pip install 'tui-transformer[record]'; or write .svg")
            write_whole(self.out, png(svg))
        else:
            write_whole(self.out, svg.encode())
        note(f"wrote {self.out}")

    def _index(self, trace: Trace, name: str) -> Index:
        """The cell that is named, or that with the value farthest from 0."""
        import numpy as np

        shape = trace.program.shape(name)
        if self.cell is None:
            values = np.nan_to_num(trace.backend.to_host(trace.array(name))[0], posinf=0.0, neginf=0.0)
            return tuple(map(int, np.unravel_index(int(np.abs(values).argmax()), values.shape)))
        if (
            not re.fullmatch(r"\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*", self.cell)
            or self.cell.count(",") != len(shape) - 1
        ):
            wanted = ",".join(("HEAD", "ROW", "COLUMN")[-len(shape) :])
            raise UsageError(f"--cell: {self.cell[:40]!r} is not a cell of {name}: write {wanted}")
        index = tuple(map(int, self.cell.split(",")))
        if any(i >= size for i, size in zip(index, shape, strict=True)):
            last = ",".join(str(size - 1) for size in shape)
            raise InputError(f"{name} has no cell {self.cell.strip()}: its last is {last}")
        return index
