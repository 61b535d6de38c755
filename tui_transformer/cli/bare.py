"""Options whose value may be left out: `--ray`, or `--ray HOST:PORT`."""

from __future__ import annotations

import re

from typer._click import Context
from typer._click.core import Parameter

from tui_transformer.cli.once import OnceCommand

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
