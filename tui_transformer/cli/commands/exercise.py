"""Learn by writing a transformer step by step: each answer is checked, and what is wrong is explained."""

from __future__ import annotations

import typer

from tui_transformer.cli.exercise_options import Begun, Checked, Named, Place
from tui_transformer.cli.typer_layer import App, OnceGroup, takes_request

app = App(cls=OnceGroup, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.callback(invoke_without_command=True)
@takes_request
def _exercise(*, context: typer.Context, request: Place) -> None:
    """Learn by writing a transformer step by step: each answer is checked, and what is wrong is explained.

    Without a command, the exercises are listed. Exit code 0: right; 1: wrong. `check` runs an answer with all your
    rights, within limits of time, memory, disk, output and processes.

    Example: tui-transformer exercise
    """
    from tui_transformer.cli.exercise import show_list
    from tui_transformer.errors import UsageError

    if context.invoked_subcommand is None:
        show_list(request)
    elif request != Place():
        raise UsageError(f"--course and --language belong after the command: exercise {context.invoked_subcommand} …")


@app.command("list")
@takes_request
def _list(*, request: Place) -> None:
    """List the exercises, and which are done.

    Example: tui-transformer exercise list
    """
    from tui_transformer.cli.exercise import show_list

    show_list(request)


@app.command("start")
@takes_request
def _start(*, request: Begun) -> None:
    """Write a file to begin with: the task, the shapes and the signature. No file is written over.

    Example: tui-transformer exercise start scores
    """
    from tui_transformer.cli.exercise import begin

    begin(request)


@app.command("open")
@takes_request
def _open(*, request: Named) -> None:
    """Open the explorer at the step that an exercise is about: every number of the right answer.

    Example: tui-transformer exercise open scores
    """
    from tui_transformer.cli.exercise import explore

    explore(request)


@app.command("check")
@takes_request
def _check(*, request: Checked) -> None:
    """Run an answer in processes of its own, compare it, and explain what is wrong with it.

    An answer runs with all your rights: check only what you would run yourself. What it may take is limited (time,
    memory, disk, output, processes): of all its processes together where systemd-run makes a cgroup, else of each
    alone. It gets an empty home and a small environment, and what it leaves running is ended.

    Example: tui-transformer exercise check scores
    """
    from tui_transformer.cli.exercise import run_check

    run_check(request)


@app.command("hint")
@takes_request
def _hint(*, request: Named) -> None:
    """Show the next hint; there are three, each says more.

    Example: tui-transformer exercise hint scores
    """
    from tui_transformer.cli.exercise import show_hint

    show_hint(request)


@app.command("solution")
@takes_request
def _solution(*, request: Named) -> None:
    """Show a right answer.

    Example: tui-transformer exercise solution scores
    """
    from tui_transformer.cli.exercise import show_solution

    show_solution(request)


@app.command("next")
@takes_request
def _next(*, request: Place) -> None:
    """Show the first exercise that is not done.

    Example: tui-transformer exercise next
    """
    from tui_transformer.cli.exercise import show_next

    show_next(request)
