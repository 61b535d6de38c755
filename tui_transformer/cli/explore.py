"""The explorer as the command opens it, the commands beside it, and its tours as pictures."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from tui_transformer import __version__
from tui_transformer.cli.options import Featured, Flags, Theme
from tui_transformer.cli.terminal import check_terminal
from tui_transformer.cli.typer_layer import argument, flag, option, required
from tui_transformer.errors import UsageError
from tui_transformer.records import dataclass, fields, replace

if TYPE_CHECKING:
    from tui_transformer.survey.results import Results

NAME = "tui-transformer"

COMMANDS = {
    "ablate": "interventions",
    "answer": "answer",
    "attribute": "attribute",
    "chart": "show",
    "circuits": "attention",
    "diff": "diff",
    "exercise": "exercise",
    "experts": "attention",
    "features": "features",
    "fetch": "info",
    "generate": "generate",
    "graph": "features",
    "heads": "attention",
    "info": "info",
    "lens": "attribute",
    "links": "attention",
    "models": "info",
    "patch": "interventions",
    "positions": "positions",
    "poster": "show",
    "record": "explore",
    "rollout": "attention",
    "score": "answer",
    "serve": "serve",
    "show": "show",
    "similar": "similar",
    "survey": "survey",
    "trace": "trace",
    "train": "train",
    "vocab": "vocab",
    "weights": "trace",
}
"""The module of every command: its class has the same name."""


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by typer
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


@dataclass(frozen=True, kw_only=True)
class Explore(Featured):
    """See every number inside a transformer, in a terminal.

    Alone, the command opens the explorer. The options before a command are those of the explorer; each command has
    its own, the same ones.
    """

    commands: ClassVar[Mapping[str, str]] = COMMANDS

    version: bool = flag("Show the version and exit.", is_eager=True, callback=_print_version)
    no_color: bool = flag("Glyphs instead of colours.")
    theme: Theme = None
    tour: str | None = option(
        None, "Begin with a tour (question, question-heads …), or your own lecture.", metavar="FILE|NAME"
    )
    notes: Path | None = option(
        None, "Write the notes of its stops there, not on the screen: read them with `tail -f FILE`.", metavar="FILE"
    )
    survey: Path | None = option(None, "Begin with what `tui-transformer survey` wrote, on its model.", metavar="FILE")
    plain: bool = flag("No screen: a key or a command a line, each answered by a sentence; also in a pipe.")

    def before(self, command: str) -> None:
        if self.given():
            option = self.given()[0]
            raise UsageError(f"{option} belongs after the command: {NAME} {command} {option} …")

    def run(self) -> None:
        reading = self.reading()
        results = self._results()
        options = (self if results is None else self.of_survey(results)).options()
        if self.notes is not None and self.tour is None:
            raise UsageError("--notes are of a tour: name one with --tour")
        self.check_features()
        if not self.plain:
            check_terminal()
        if self.no_color:
            os.environ["NO_COLOR"] = "1"
        if self.theme is not None:
            from tui_transformer.explorer.run import check_theme

            check_theme(self.theme)
        gc.disable()  # until the first screen: collecting while modules are loaded finds nothing and takes time
        from tui_transformer.explorer.run import run
        from tui_transformer.session.tour_stop import left_aside

        ended = run(
            options,
            reading,
            self.theme,
            tour=self.tour,
            notes=self.notes,
            says=left_aside(self.tour, self.model),
            survey=results,
            edits=self.edit or (),
            features=self.features,
            at=self.at,
            plain=self.plain,
        )
        raise typer.Exit(ended)

    def _results(self) -> Results | None:
        if self.survey is None:
            return None
        if self.plain:
            raise UsageError("--survey is a screen: leave out --plain")
        from tui_transformer.survey.results import read_results

        return read_results(self.survey)

    def of_survey(self, results: Results) -> Explore:
        """The same on the model of a survey, where none is named."""
        if self.model is not None:
            return self
        row = results.rows[0]
        measured: dict[str, Any] = {
            "model": row.model,
            "vocab": row.vocab or None,
            "seed": row.seed,
            "dtype": row.dtype,
        }
        usual = {field.name: field.default for field in fields(self)}
        return replace(self, **{name: new for name, new in measured.items() if getattr(self, name) == usual[name]})


# Pictures

SMALLEST, LARGEST = (40, 12), (400, 150)


@dataclass(frozen=True, kw_only=True)
class Record(Flags):
    """Write a tour, a lecture of yours, or what keys do, as pictures, a film for a terminal, or a page for a browser.

    The ending of --out chooses: .cast (asciinema), .gif or .png (they move), .html (stepped by keys, needs nothing
    else); a folder gets every screen as SVG and PNG.

    Example: tui-transformer record --keys "space space enter" --out walk.cast

    Example: tui-transformer record question --out question.html --size 120x36
    """

    tour: str | None = argument("A lecture, or the name of a tour.", default=None, metavar="FILE|NAME")
    keys: str | None = option(None, 'Keys instead, as "space ] enter"; a "text" in quotes is typed.', metavar="KEYS")
    out: Path = required("A .cast, .gif, .png or .html file, or a folder.", metavar="FILE|FOLDER")
    size: str = option("160x45", "The terminal, from 40x12 to 400x150.", metavar="COLUMNSxLINES")
    theme: Theme = None

    def run(self) -> None:
        from tui_transformer.cli.output import note
        from tui_transformer.explorer.run import check_theme
        from tui_transformer.session.open_session import session_of
        from tui_transformer.session.tour_stop import left_aside, suitable

        size = parse_size(self.size)
        if self.theme is not None:
            check_theme(self.theme)
        if (self.tour is None) is (self.keys is None):
            raise UsageError('name a tour, or keys that are pressed: --keys "space space enter"')
        options = self.options()
        session = session_of(options.load(), self.reading(), options)
        os.environ.setdefault("COLORTERM", "truecolor")
        os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
        from tui_transformer.explorer.recorded import Page, form_of
        from tui_transformer.explorer.recording import parse_keys, record_keys, record_tour

        if self.tour is not None:
            if aside := left_aside(self.tour, self.model):
                note(aside)
            told = suitable(session, self.tour)
            lead: Callable[..., int] = partial(record_tour, session, told)
            title = told.question or self.tour
        else:
            lead = partial(record_keys, session, parse_keys(self.keys or ""))
            title = f"{session.model.name}: {self.keys}"
        form = form_of(self.out, title, note)
        both = self.theme is None and isinstance(form, Page)
        theme = "dark" if both else self.theme
        if ended := lead(size, theme, form.add, moves=form.moves, both=both):
            raise SystemExit(ended)
        form.finish()
        if self.out.is_file():
            note(f"wrote {self.out}")


def parse_size(text: str) -> tuple[int, int]:
    """Columns and lines, not too small or too large to draw."""
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*[x×,]\s*([0-9]{1,4})\s*", text)
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(low <= each <= high for low, each, high in zip(SMALLEST, size, LARGEST, strict=True)):
        least, most = (f"{columns}x{lines}" for columns, lines in (SMALLEST, LARGEST))
        raise UsageError(f"--size: {text[:40]!r} is not COLUMNSxLINES from {least} to {most}, as 160x45")
    return size
