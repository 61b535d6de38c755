"""The poster of a number: the cells that it is made of, a line each, back to the words; written as a picture, too."""

from __future__ import annotations

from functools import partial

from rich.text import Text

from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.user_files import path_of
from tui_transformer.files import write_whole
from tui_transformer.report.export import png_drawing
from tui_transformer.report.poster import ENDINGS, checked, heading, poster_lines, poster_svg, poster_text
from tui_transformer.views.poster import Cell, poster
from tui_transformer.views.step_view import index_of, place_of

LEVELS, DEEPEST = 5, 12
"""How far back it goes at first, and at most."""


class PosterScreen(Overview, tool="poster"):
    """A line for each cell, indented below the one that it is a part of."""

    def __init__(self, port: Port) -> None:
        """The way back from the cell under the cursor.

        Raises:
            InputError: There is none.
        """
        super().__init__(port)
        program, stop = self.session.trace.program, port.position.stop
        if stop not in program.names:
            raise InputError(port.hint("there is no number here: go to a step with {step.next}"))
        axes = program.axes(stop)
        places = zip(index_of(axes, port.position.place), axes, strict=True)
        self.of = program.named(stop), tuple(min(at, axis.size - 1) for at, axis in places)
        self.levels = LEVELS
        self.root: Cell | None = None
        self.back = LEVELS  # those of the poster that is shown
        self.cells: list[tuple[str, Cell | None]] = []

    def begin(self) -> None:
        trace, labels = self.session.trace, self.session.labels
        (name, index), levels = self.of, self.levels

        def work(_: object) -> Cell:
            return poster(trace, name, index, labels, levels=levels, most=12 * levels)  # cells that are taken apart

        self.compute(work, partial(self._take, levels))

    def _take(self, levels: int, root: Cell) -> None:
        self.back = levels
        self.root, self.cells = root, list(poster_lines(root))
        quiet = "dim" if self.app.no_color else "bright_black"

        def line(place: int) -> Text:
            text, cell = self.cells[place]
            return Text(f" {text}", quiet if cell is None else "", no_wrap=True)

        self.lines.show(len(self.cells), line)

    def texts(self) -> Texts:
        if self.root is None:
            return Texts("Poster", "the way back to the words")
        place, detail = self.lines.cursor, ("", "")
        cell = None if place is None else self.cells[place][1]
        if cell is not None:
            at = f"{cell.name}[{', '.join(map(str, cell.index))}] = {spoken(cell.value)}"
            apart = cell.edited or f"a {cell.kind}, not taken apart here"
            made = f"{cell.formula}: {cell.equation}" if cell.formula else apart
            detail = f"{at}   {cell.place}", made
        levels = f"{self.back} level{'s' * (self.back > 1)} back"
        return Texts(f"Poster · {heading(self.root)}", f"{levels} · {checked(self.root)}", detail)

    def action_levels(self, by: int) -> None:
        wanted = max(1, min(self.levels + by, DEEPEST))
        if wanted != self.levels:
            self.levels = wanted
            self.begin()

    def chosen(self) -> None:
        cell = self.cells[self.lines.index][1]
        if cell is not None:
            place = place_of(self.session.trace.program.axes(cell.name), cell.index)
            leave_to(self, cell.name, place.head, place.row, place.column)

    def action_export(self) -> None:
        root = self.root
        if root is None:
            return
        about = f"{self.session.text} · {self.session.model.name}"

        def write(name: str) -> str:
            path = path_of(name)
            ending = path.suffix.lower()
            if ending not in ENDINGS:
                raise InputError(f"{path.name}: a poster ends in {', '.join(ENDINGS)}")
            if ending == ".txt":
                made = "".join(poster_text(root, None)).encode()
            elif ending == ".svg":
                made = poster_svg(root, about).encode()
            elif (png := png_drawing()) is not None:
                made = png(poster_svg(root, about))
            else:
                raise InputError("a PNG needs the extra record: pip install 'tui-transformer[record]'; or write .svg")
            write_whole(path, made)
            return name

        value, hint = f"{root.name}.svg", f"the name decides the format: {', '.join(ENDINGS)}"
        self.open(*asking("Write the poster to", write, self.port.written, value=value, hint=hint, replaces=True))
