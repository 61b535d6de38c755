"""One layer over typer: a command is a dataclass.

Its docstring is what `--help` says, its fields are its options and arguments, and its `run` is what it does. One that
has `commands` is a group; its `before`, where it has one, is called before one of these.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints

import typer
from typer._click import Command, Context, HelpFormatter
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from tui_transformer.errors import UsageError

Kind = TypeVar("Kind")


class Option:
    """What typer is told of a field: an option, or an argument where it stands in an `argument`.

    Options are called as their fields, with dashes; those that are on or not given have a `--no-` beside them. The
    lists of an option that may be given `several` times are put together with commas.
    """

    def __init__(
        self, help: str | None, *names: str, several: bool = False, argument: bool = False, **more: Any
    ) -> None:
        self.several = several
        self._names, self._argument, self._more = names, argument, {"help": help, **more}

    def parameter(self, name: str, kind: Any, default: Any) -> inspect.Parameter:
        """The parameter that typer reads."""
        if self.several:
            kind, default = list[str] | None, None
        written = option_name(name)
        is_pair = bool in (get_args(kind) or (kind,)) and default is not False
        names = self._names or (f"{written}/--no-{written[2:]}" if is_pair else written,)
        said = typer.Argument(**self._more) if self._argument else typer.Option(*names, **self._more)
        return _parameter(name, Annotated[kind, said], default)


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def option(default: Any, help: str | None, *names: str, **more: Any) -> Any:
    """A field that is an option; `names` where it is not called as the field, `more` as `Option` and typer take it."""
    return dataclasses.field(default=default, metadata={"option": Option(help, *names, **more)})


def flag(help: str, *names: str, default: bool = False, **more: Any) -> Any:
    """A field that is on or off."""
    return option(default, help, *names, **more)


def required(help: str | None, *names: str, **more: Any) -> Any:
    """A field that is an option which has to be given."""
    return option(dataclasses.MISSING, help, *names, **more)


def argument(help: str | None, *, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """A field that is an argument."""
    return dataclasses.field(default=default, metadata={"option": Option(help, argument=True, **more)})


def like(other: type, *names: str) -> Callable[[type[Kind]], type[Kind]]:
    """Give a class that becomes a dataclass some options of another: behind its own, and None where not given."""
    options, hints = _options(other), get_type_hints(other, include_extras=True)

    def add(kind: type[Kind]) -> type[Kind]:
        for name in names:
            kind.__annotations__[name] = _bare(hints[name]) | None
            setattr(kind, name, dataclasses.field(default=None, metadata={"option": options[name]}))
        return kind

    return add


def option_name(field: str) -> str:
    """An option as it is written on the command line."""
    return f"--{field.replace('_', '-')}"


def app_of(kind: Any, **settings: Any) -> typer.Typer:
    """The app of a command."""
    options, hints = _options(kind), get_type_hints(kind, include_extras=True)
    commands: Mapping[str, Any] | None = getattr(kind, "commands", None)

    def called(*, context: typer.Context, **given: Any) -> None:
        lists = {name: ",".join(given[name]) if given[name] else None for name, each in options.items() if each.several}
        request = kind(**given | lists)
        if context.invoked_subcommand is None:
            request.run()
        elif hasattr(kind, "before"):
            request.before(context.invoked_subcommand)

    defaults = {each.name: each.default for each in dataclasses.fields(kind)}
    empty = {dataclasses.MISSING: inspect.Parameter.empty}
    parameters = [
        _parameter("context", typer.Context),
        *(
            each.parameter(name, _bare(hints[name]), empty.get(defaults[name], defaults[name]))
            for name, each in options.items()
        ),
    ]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, **{"add_completion": False} | settings)
    if commands is None:
        app.command(help=kind.__doc__, cls=BareCommand)(called)
        return app
    app.info.cls = type("Commands", (Group,), {"below": commands})
    runs = hasattr(kind, "run")
    app.callback(help=kind.__doc__, invoke_without_command=runs, no_args_is_help=not runs)(called)
    return app


def _options(kind: Any) -> dict[str, Option]:
    """What is said of each field; those of a base come last."""
    hints = get_type_hints(kind, include_extras=True)
    bases = filter(dataclasses.is_dataclass, kind.__bases__)
    inherited = {each.name for base in bases for each in dataclasses.fields(base)}
    return {
        each.name: each.metadata["option"] if each.metadata else hints[each.name].__metadata__[0]
        for each in sorted(dataclasses.fields(kind), key=lambda each: each.name in inherited)
    }


def _bare(hint: Any) -> Any:
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint


class _Once(Command):
    """Refuses an option that is given again and would replace what was given before."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        given = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(list(args))[2]
        for parameter, count in Counter(given).items():
            if count > 1 and isinstance(parameter, TyperOption) and not parameter.multiple:
                names = " or ".join((*parameter.opts[:1], *parameter.secondary_opts[:1]))
                if not parameter.is_flag or parameter.secondary_opts:  # a flag alone says the same again
                    raise UsageError(f"{names} is given {count} times and has one value: give it once")
        return super().parse_args(ctx, args)


ADDRESS = re.compile(r"auto|local|(ray://)?[\w.\-]+:\d+|(ray://)?\[[0-9a-fA-F:]+\]:\d+")
"""A value; anything else behind an option whose value may be left out belongs to the command."""

LEFT_OUT = "local"
"""Stands for a value that was left out."""


class BareCommand(_Once, TyperCommand):
    """A command; the value of an option whose metavar is in brackets may be left out."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        bare = (option for option in self.params if (option.metavar or "").startswith("["))
        names = {name for option in bare if option.opts[0].startswith("--") for name in option.opts}
        return super().parse_args(ctx, completed(args, names))


def completed(args: list[str], names: set[str]) -> list[str]:
    """The arguments, with a value behind each of these options."""
    words: list[str] = []
    for at, argument in enumerate(args):
        words.append(argument)
        following = args[at + 1] if at + 1 < len(args) else ""
        if argument in names and "--" not in words and not ADDRESS.fullmatch(following):
            words.append(LEFT_OUT)
    return words


class Group(_Once, TyperGroup):
    """Commands below another: classes, or the modules of this folder that have a class of the command's name."""

    below: ClassVar[Mapping[str, Any]] = {}

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - as typer calls it
        return list(self.below)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002 - as typer calls it
        self.commands.update(dict.fromkeys(self.below))  # type: ignore[arg-type] # only the names, to suggest one
        if cmd_name not in self.below:
            return None
        command = get_command(app_of(self._kind(cmd_name)))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The list in `--help`: of the program with whole first paragraphs, without building a command."""
        if ctx.parent is not None:
            super().format_commands(ctx, formatter)
            return
        texts = {name: self._kind(name).__doc__.partition("\n\n")[0] for name in self.below}
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in texts.items()])

    def _kind(self, name: str) -> Any:
        kind = self.below[name]
        return (
            getattr(import_module(f"tui_transformer.cli.{kind}"), name.capitalize()) if isinstance(kind, str) else kind
        )
