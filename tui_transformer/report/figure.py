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


SEQUENCES = {"tokens": "input.ids", "decoder tokens": "decoder.input.ids"}
"""The inputs that token sequences are."""


def figure(trace: Trace, name: str, head: int = 0, *, item: int = 0) -> Figure:
    """A step or weight (of one head, where it has heads) of one sentence as a heat map.

    Raises:
        InputError: There is no such step or head, or it has too many cells for a figure.
    """
    name = trace.program.named(name)
    words = dict(zip(SEQUENCES, (trace.word, trace.target_word), strict=True))
    there = {sequence: given for sequence, given in SEQUENCES.items() if given in trace.givens}
    sequences = {
        sequence: tuple(words[sequence](int(token)) for token in trace.givens[given][item])
        for sequence, given in there.items()
    }
    return Figure(view_of(trace, name, Labels(sequences, trace.target_word, trace.word), head=head, item=item))
