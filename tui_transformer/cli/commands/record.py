"""Write every stop of a tour or a lecture of yours as pictures, SVG and PNG.

Example: tui-transformer record lecture.toml --model question --out pictures --size 160x45
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

    tour: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A lecture, or the name of a tour.")]
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the pictures go; made where it is not.")]
    size: Annotated[
        str, typer.Option("--size", metavar="COLUMNSxLINES", help="The terminal, from 40x12 to 400x150.")
    ] = "160x45"
    theme: Annotated[
        str | None, typer.Option("--theme", metavar="NAME", help="Colours: dark, light, or one of Textual.")
    ] = None

    def led_through(self) -> str | None:
        """The model that the tour is of."""
        from tui_transformer.session.tour_stop import model_of

        return model_of(self.tour)
