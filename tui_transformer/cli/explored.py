"""The options of the explorer, and the survey that it may begin with."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_transformer.cli.options import Edited
from tui_transformer.errors import UsageError

if TYPE_CHECKING:
    from tui_transformer.survey.results import Results


@dataclass(frozen=True)
class Explored(Edited):
    """How the explorer is opened, and what it explores."""

    no_color: Annotated[bool, typer.Option("--no-color", help="Glyphs instead of colours.")] = False
    theme: Annotated[
        str | None, typer.Option("--theme", metavar="NAME", help="Colours: dark, light, or one of Textual.")
    ] = None
    tour: Annotated[
        str | None,
        typer.Option("--tour", metavar="FILE|NAME", help="Begin with a tour of the program, or with your own lecture."),
    ] = None
    survey: Annotated[
        Path | None,
        typer.Option("--survey", metavar="FILE", help="Begin with what `tui-transformer survey` wrote, on its model."),
    ] = None
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="No screen: a key or a command a line, each answered by a sentence; also in a pipe."
        ),
    ] = False

    def led_through(self) -> str | None:
        """The model that the tour is of."""
        if self.tour is None:
            return None
        from tui_transformer.session.tour_stop import model_of

        return model_of(self.tour)


def surveyed(request: Explored) -> Results | None:
    """The results of the survey that is named; None where none is.

    Raises:
        InputError: They cannot be read, or there is no screen to show them.
    """
    if request.survey is None:
        return None
    if request.plain:
        raise UsageError("--survey is a screen: leave out --plain")
    from tui_transformer.survey.results import read_results

    return read_results(request.survey)


def of_survey(request: Explored, results: Results) -> Explored:
    """The request on the model of a survey, where none is named."""
    if request.model is not None:
        return request
    row = results.rows[0]
    measured: dict[str, Any] = {"model": row.model, "vocab": row.vocab or None, "seed": row.seed, "dtype": row.dtype}
    usual = {field.name: field.default for field in fields(request)}
    return replace(request, **{name: new for name, new in measured.items() if getattr(request, name) == usual[name]})
