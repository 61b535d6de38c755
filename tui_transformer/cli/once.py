"""Commands that lose nothing they are given: an option that has one value may be given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer
from typer._click import Context
from typer._click.core import Command, Parameter
from typer.core import TyperCommand, TyperGroup, TyperOption

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
