"""One layer over typer: options given once, values left out, requests, and commands made when they are asked for."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer._click import Command, Context, HelpFormatter
from typer._click.core import Parameter
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from tui_transformer.errors import UsageError


def check_once(parameters: Iterable[Parameter]) -> None:
    """Refuse an option that is given again and would replace what was given before.

    Raises:
        UsageError: There is one.
    """
    for parameter, count in Counter(parameters).items():
        if count > 1 and isinstance(parameter, TyperOption) and _loses(parameter):
            names = " or ".join((*parameter.opts[:1], *parameter.secondary_opts[:1]))
            raise UsageError(f"{names} is given {count} times and has one value: give it once")


def _loses(option: TyperOption) -> bool:
    """Whether the last value of an option replaces the others: lists are put together, flags say the same again."""
    return not option.multiple and not (option.is_flag and not option.secondary_opts)


class _Once(Command):
    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As typer does, after the check."""
        if not ctx.resilient_parsing:
            check_once(self.make_parser(ctx).parse_args(list(args))[2])
        return super().parse_args(ctx, args)


class OnceCommand(_Once, TyperCommand):
    """A command that refuses to forget."""


class OnceGroup(_Once, TyperGroup):
    """The same for options before a command."""


class App(typer.Typer):
    """An app of such commands."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Any], Any]:
        """As typer does."""
        return super().command(name, **({"cls": OnceCommand} | more))


def together(lists: Sequence[str] | None) -> str | None:
    """The lists of an option that may be given several times, as one; None where it was not given."""
    return ",".join(lists) if lists else None


ADDRESS = re.compile(r"auto|local|(ray://)?[\w.\-]+:\d+|(ray://)?\[[0-9a-fA-F:]+\]:\d+")
"""A value; anything else behind such an option belongs to the command."""

BARE = "local"
"""Stands for a value that was left out."""


class BareCommand(OnceCommand):
    """A command with such options: their metavar is in brackets."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As typer does, with the values that were left out."""
        names = {name for option in self.params if _may_be_bare(option) for name in option.opts}
        return super().parse_args(ctx, completed(args, names))


def completed(args: list[str], names: set[str]) -> list[str]:
    """The arguments, with a value behind each of these options."""
    words: list[str] = []
    for at, argument in enumerate(args):
        words.append(argument)
        following = args[at + 1] if at + 1 < len(args) else ""
        if argument in names and "--" not in words and not ADDRESS.fullmatch(following):
            words.append(BARE)
    return words


def _may_be_bare(option: Parameter) -> bool:
    return bool(option.metavar) and str(option.metavar).startswith("[") and option.opts[0].startswith("--")


SEVERAL = "several"
"""Stands in the annotation of an option that takes a list: given several times, the lists are put together."""


def takes_request(function: Callable[..., None], request: type | None = None) -> Callable[..., None]:
    """A command one of whose parameters is a dataclass, each field of it an option; those of a base come last.

    Args:
        function: What the command does.
        request: The dataclass of the parameter `request`; by default the first that annotates a parameter.
    """
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    annotated = {each.annotation: each.name for each in parameters if dataclasses.is_dataclass(each.annotation)}
    kind: Any = request or next(iter(annotated))
    hints = get_type_hints(kind, include_extras=True)
    shared = {field.name for base in kind.__bases__ if dataclasses.is_dataclass(base) for field in _fields(base)}
    fields = sorted(_fields(kind), key=lambda field: field.name in shared)
    lists = {field.name for field in fields if SEVERAL in get_args(hints[field.name])}
    options = {
        field.name: (_several(hints[field.name]), None) if field.name in lists else (hints[field.name], _default(field))
        for field in fields
    }

    def gathered(given: dict[str, Any]) -> Any:
        return kind(**given | {name: together(given[name]) for name in lists})

    return takes_options(function, options, annotated.get(kind, "request"), gathered)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


def _default(field: dataclasses.Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _several(annotation: Any) -> Any:
    return Annotated[list[str] | None, get_args(annotation)[1]]


def takes_options(
    function: Callable[..., None],
    options: Mapping[str, tuple[Any, Any]],
    parameter: str,
    gathered: Callable[[dict[str, Any]], Any],
) -> Callable[..., None]:
    """A command one of whose parameters is gathered from options.

    Args:
        function: What the command does.
        options: The annotation and default of each.
        parameter: The parameter of `function` that is no option.
        gathered: Makes it from what was given.
    """
    shared = [_parameter(name, *option) for name, option in options.items()]
    own = [
        _parameter(each.name, each.annotation, each.default)
        for each in inspect.signature(function, eval_str=True).parameters.values()
        if each.name != parameter
    ]

    def command(**given: Any) -> None:
        together = gathered({each.name: given.pop(each.name) for each in shared})
        function(**given, **{parameter: together})

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


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
