"""Write a tour, a lecture of yours, or what keys do, as pictures, a film for a terminal, or a page for a browser.

The ending of --out chooses: .cast (asciinema), .gif or .png (they move), .html (stepped by keys, needs nothing else); a
folder gets every screen as SVG and PNG.

Example: tui-transformer record --keys "space space enter" --out walk.cast

Example: tui-transformer record question --out question.html --size 120x36
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.options import Flags


@dataclass(frozen=True, kw_only=True)
class Request(Flags):
    """The tour that is recorded, and where to."""

    tour: Annotated[str | None, typer.Argument(metavar="FILE|NAME", help="A lecture, or the name of a tour.")] = None
    keys: Annotated[
        str | None,
        typer.Option("--keys", metavar="KEYS", help='Keys instead of a tour, as "space ] enter"; "a text" is typed.'),
    ] = None
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE|FOLDER", help="A .cast, .gif, .png or .html file, or a folder.")
    ]
    size: Annotated[
        str, typer.Option("--size", metavar="COLUMNSxLINES", help="The terminal, from 40x12 to 400x150.")
    ] = "160x45"
    theme: Annotated[
        str | None, typer.Option("--theme", metavar="NAME", help="Colours: dark, light, or one of Textual.")
    ] = None

    def led_through(self) -> str | None:
        """The model that the tour is of."""
        from tui_transformer.session.tour_stop import model_of

        return None if self.tour is None else model_of(self.tour)
