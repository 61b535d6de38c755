"""The poster of a number: the way back from one cell to the words, as text, SVG or PNG."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tui_transformer.cli import parsing
from tui_transformer.cli.options import Edited
from tui_transformer.cli.output import deliver, note, page
from tui_transformer.cli.session import open_session
from tui_transformer.cli.typer_layer import argument, option
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

if TYPE_CHECKING:
    from tui_transformer.engine.explanation import Index
    from tui_transformer.engine.trace import Trace

ENDINGS = (".svg", ".png", ".txt")


@dataclass(frozen=True, kw_only=True)
class Poster(Edited):
    """Draw the way back from one cell to the words: each sum with its largest terms, level after level.

    Example: tui-transformer poster weights --cell 2,0,8 --out weight.svg
    """

    step: str = argument("A name, or the end of one.", metavar="STEP", autocompletion=parsing.steps)
    cell: str | None = option(None, "The cell, from 0; by default the largest of the step.", metavar="HEAD,ROW,COLUMN")
    levels: int | None = option(None, "How far back; by default as far as it goes.", metavar="N", min=1)
    terms: int = option(2, "Terms of a sum that are shown.", metavar="N", min=1, max=20)
    most: int = option(24, "Cells that are taken apart, what adds most first.", metavar="N", min=1, max=2000)
    out: Path | None = option(None, "Write to .svg, .png or .txt; by default text to the terminal.", metavar="FILE")

    def run(self) -> None:
        ending = ".txt" if self.out is None else self.out.suffix.lower()
        if ending not in ENDINGS:
            raise UsageError(f"--out {self.out}: a poster ends in {', '.join(ENDINGS)}")
        session = open_session(self)
        from tui_transformer.engine.names import one
        from tui_transformer.files import write_whole
        from tui_transformer.report.poster import poster_svg, poster_text
        from tui_transformer.views.poster import place_words, poster

        program, trace = session.trace.program, session.trace
        name, places = one(program.names, self.step), place_words(trace, session.labels)
        index, terms, most = self._index(trace, name), self.terms, self.most
        root = poster(trace, name, index, places, levels=self.levels, terms=terms, most=most)
        about = f"{session.text} · {session.model.name}" if session.text else session.model.name
        if self.out is None or ending == ".txt":
            deliver(poster_text(root, str, page(everything=self.out is not None).width), self.out)
            return
        svg = poster_svg(root, str, about)
        if ending == ".png":
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
