"""Commands that are made when they are asked for, each by the module of its name in `commands`.

Its `Request` says what it takes, and `run` of the module of the same name in `cli` is handed one; a command of several
has an `app`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from typer._click import Command, Context, HelpFormatter
from typer.main import get_command

from tui_transformer.cli.bare import BareCommand
from tui_transformer.cli.once import App, OnceGroup
from tui_transformer.cli.requests import takes_request

PLACE = Path(__file__).parent / "commands"


def single() -> App:
    """An app of one command."""
    return App(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Commands(OnceGroup):
    """All commands: their names are those of files, their descriptions the first lines of these."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - as typer calls it
        """The names, in alphabetical order."""
        return sorted(path.stem for path in PLACE.glob("[!_]*.py"))

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of this name; None where there is none."""
        names = self.list_commands(ctx)
        self.commands.update(dict.fromkeys(names))  # type: ignore[arg-type] # only the names, to suggest one
        if cmd_name not in names:
            return None
        module = import_module(f"tui_transformer.cli.commands.{cmd_name}")
        command = get_command(module.app if hasattr(module, "app") else _app(cmd_name, module))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The list in `--help`, without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(PLACE / f"{name}.py")) for name in self.list_commands(ctx)])


def _app(name: str, module: ModuleType) -> App:
    """The app of a command that has a request; what it does is imported when it runs, after what it prepares."""

    def command(*, request: Any) -> None:
        if hasattr(module, "prepare"):
            module.prepare()
        import_module(f"tui_transformer.cli.{name}").run(request)

    app = single()
    app.command(help=module.__doc__, cls=BareCommand)(takes_request(command, module.Request))
    return app


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
