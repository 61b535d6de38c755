"""The command `tui-transformer`: the explorer, the headless commands, and one exit code for every end.

0 fine; 1 the work failed; 2 wrong usage, or no terminal for the explorer; 128 + n for a signal.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from typer._click.exceptions import ClickException

from tui_transformer import __version__
from tui_transformer.cli.lazy import Commands
from tui_transformer.cli.options import Flags, takes_request
from tui_transformer.cli.terminal import check_terminal
from tui_transformer.cli.themes import check_theme
from tui_transformer.errors import InputError, UsageError

app = typer.Typer(cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False)

NAME = "tui-transformer"
FAILED, WRONG_USAGE = 1, 2
ENDING = ("SIGTERM", "SIGHUP")
"""Signals that end a command in order: what is half-written is removed."""


def main() -> NoReturn:
    """Run the command line and exit."""
    _use_utf8()
    _catch_signals()
    code = 0
    try:
        code = app(prog_name=NAME, standalone_mode=False)
    except ClickException as error:
        _fail_by_arguments(error)
    except UsageError as error:
        _fail(str(error), WRONG_USAGE)
    except InputError as error:
        _fail(str(error), FAILED)
    except OSError as error:
        if error.filename is None:
            _fail_by_mistake(error)
        _fail(f"{os.fsdecode(error.filename)}: {error.strerror}: check the path and its permissions", FAILED)
    except MemoryError:
        _fail("not enough memory: use fewer tokens or smaller sizes", FAILED)
    except Exception as error:  # noqa: BLE001 - whatever else comes here is a mistake of the program
        _fail_by_mistake(error)
    sys.exit(code)


def _use_utf8() -> None:
    """Output is UTF-8 whatever the locale; what cannot be encoded is escaped, and a closed stream takes everything."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _catch_signals() -> None:
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _fail(message: str, code: int) -> NoReturn:
    from tui_transformer.text.display import visible

    typer.echo(f"{NAME}: {visible(message)}", err=True)
    sys.exit(code)


def _fail_by_arguments(error: ClickException) -> NoReturn:
    """Typer's message about the arguments, which it quotes, without anything that a terminal would obey."""
    from tui_transformer.text.display import visible

    said = io.StringIO()
    error.show(said)
    for line in said.getvalue().splitlines():
        typer.echo(visible(line), err=True)
    sys.exit(error.exit_code)


def _fail_by_mistake(error: Exception) -> NoReturn:
    from tui_transformer.crash import message

    typer.echo(f"{NAME}: {message(error)}", err=True)
    sys.exit(FAILED)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by typer
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
@takes_request
def explore(
    *,
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Glyphs instead of colours.")] = False,
    theme: Annotated[str | None, typer.Option("--theme", metavar="NAME", help="Colours of the explorer.")] = None,
    tour: Annotated[
        str | None,
        typer.Option("--tour", metavar="FILE|NAME", help="Begin with a tour of the program, or with your own lecture."),
    ] = None,
    survey: Annotated[
        Path | None,
        typer.Option("--survey", metavar="FILE", help="Begin with what `tui-transformer survey` wrote, on its model."),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="No screen: a key or a command a line, each answered by a sentence; also in a pipe."
        ),
    ] = False,
    flags: Flags,
) -> None:
    """See every number inside a transformer, in a terminal.

    Alone, the command opens the explorer. The options before a command are those of the explorer; each command has
    its own, the same ones.
    """
    if context.invoked_subcommand is not None:
        _refuse_misplaced(flags, context.invoked_subcommand)
        return
    reading = flags.reading()
    results = None
    if survey is not None:
        from tui_transformer.survey.results import read_results

        if plain:
            raise UsageError("--survey is a screen: leave out --plain")
        results = read_results(survey)
        flags = flags if flags.model is not None else replace(flags, model=results.rows[0].model)
    options = flags.options()
    if not plain:
        check_terminal()
    if no_color:
        os.environ["NO_COLOR"] = "1"
    if theme is not None:
        check_theme(theme)
    gc.disable()  # until the first screen: collecting while modules are loaded finds nothing and takes time
    from tui_transformer.explorer.run import run

    raise typer.Exit(run(options, reading, theme, plain=plain, tour=tour, survey=results))


def _refuse_misplaced(flags: Flags, command: str) -> None:
    """Options before a command would be lost."""
    if flags.given():
        option = flags.given()[0]
        raise UsageError(f"{option} belongs after the command: {NAME} {command} {option} …")
