"""A matrix of a trace as a figure: shown by notebooks, saved as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tui_transformer.engine.trace import Trace
from tui_transformer.files import write_whole
from tui_transformer.report import as_svg
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Labels, view_of
from tui_transformer.views.view import View


@dataclass(frozen=True, eq=False)
class Figure:
    """A heat map with labels, numbers where they fit, and a legend."""

    view: View

    @property
    def svg(self) -> str:
        """As SVG 1.1; texts are escaped."""
        return as_svg.render(self.view)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        rows, columns = self.view.shape
        return f"<Figure of {visible(self.view.title)}: {rows} × {columns}>"

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file.

        Raises:
            InputError: It cannot be written; the old file is as it was.
        """
        write_whole(Path(path), self.svg.encode())


def figure(trace: Trace, name: str, head: int = 0) -> Figure:
    """A step or weight (of one head, where it has heads) as a heat map.

    Raises:
        InputError: There is no such step or head, or it has too many cells for a figure.
    """
    ids = trace.givens.get("input.ids")
    words = {} if ids is None else {"tokens": tuple(trace.word(int(token)) for token in ids[0])}
    return Figure(view_of(trace, trace.program.named(name), Labels(words, trace.word), head=head))
