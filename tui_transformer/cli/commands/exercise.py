"""Learn by writing a transformer step by step: each answer is checked, and what is wrong is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tui_transformer.cli.once import App, OnceGroup

app = App(cls=OnceGroup, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
Named = Annotated[str, typer.Argument(metavar="NAME", help="An exercise: its name or its number.")]
Folder = Annotated[
    Path | None, typer.Option("--course", metavar="FOLDER", help="A teacher's own exercises, a folder each.")
]
Language = Annotated[str, typer.Option("--language", metavar="CODE", help="Of the texts, where they are translated.")]


@app.callback(invoke_without_command=True)
def _exercise(*, context: typer.Context, course: Folder = None, language: Language = "en") -> None:
    """Learn by writing a transformer step by step: each answer is checked, and what is wrong is explained.

    Without a command, the exercises are listed. Exit code 0: right; 1: wrong.

    Example: tui-transformer exercise
    """
    from tui_transformer.cli.exercise import Place, show_list
    from tui_transformer.errors import UsageError

    if context.invoked_subcommand is None:
        show_list(Place(course, language))
    elif course is not None or language != "en":
        raise UsageError(f"--course and --language belong after the command: exercise {context.invoked_subcommand} …")


@app.command("list")
def _list(*, course: Folder = None, language: Language = "en") -> None:
    """List the exercises, and which are done.

    Example: tui-transformer exercise list
    """
    from tui_transformer.cli.exercise import Place, show_list

    show_list(Place(course, language))


@app.command("start")
def _start(
    name: Named,
    *,
    files: Annotated[
        bool, typer.Option("--files", help="The task and the inputs as text files, for any language.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file, or with --files the folder, to write.")
    ] = None,
    course: Folder = None,
    language: Language = "en",
) -> None:
    """Write a file to begin with: the task, the shapes and the signature. No file is written over.

    Example: tui-transformer exercise start scores
    """
    from tui_transformer.cli.exercise import Place, begin

    begin(Place(course, language), name, out, files=files)


@app.command("open")
def _open(name: Named, *, course: Folder = None, language: Language = "en") -> None:
    """Open the explorer at the step that an exercise is about: every number of the right answer.

    Example: tui-transformer exercise open scores
    """
    from tui_transformer.cli.exercise import Place, explore

    explore(Place(course, language), name)


@app.command("check")
def _check(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An exercise; with --all, a folder of answers.")
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The answer, by default the file that start writes.")
    ] = None,
    *,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="COMMAND", help="A program instead: it is given a folder of text files."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every answer of a folder; nothing is recorded.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="How long an answer may take.")] = 10.0,
    memory: Annotated[float, typer.Option("--memory", min=0.1, help="GiB that an answer may take.")] = 2.0,
    course: Folder = None,
    language: Language = "en",
) -> None:
    """Run an answer in a process of its own, compare it, and explain what is wrong with it.

    Example: tui-transformer exercise check scores
    """
    from tui_transformer.cli.exercise import Checked, Place, run_check

    run_check(Place(course, language), Checked(name, file, command, every, json, seconds, memory))


@app.command("hint")
def _hint(name: Named, *, course: Folder = None, language: Language = "en") -> None:
    """Show the next hint; there are three, each says more.

    Example: tui-transformer exercise hint scores
    """
    from tui_transformer.cli.exercise import Place, show_hint

    show_hint(Place(course, language), name)


@app.command("solution")
def _solution(name: Named, *, course: Folder = None, language: Language = "en") -> None:
    """Show a right answer.

    Example: tui-transformer exercise solution scores
    """
    from tui_transformer.cli.exercise import Place, show_solution

    show_solution(Place(course, language), name)


@app.command("next")
def _next(*, course: Folder = None, language: Language = "en") -> None:
    """Show the first exercise that is not done.

    Example: tui-transformer exercise next
    """
    from tui_transformer.cli.exercise import Place, show_next

    show_next(Place(course, language))
