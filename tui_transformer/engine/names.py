"""Names of steps and weights found by a whole name, by the end of one, or by a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from tui_transformer.errors import InputError, UsageError

SHOWN = 8

DIFFERENCE = "difference/"
"""Prefix of the name of a step or weight that means its difference between two traces."""


def find(names: Sequence[str], wanted: str) -> list[str]:
    """The names that are meant: an exact one, those of a pattern with `*`, or that with a single such end.

    Raises:
        InputError: Nothing is meant, or the end of several names; the message lists candidates.
    """
    return match(names, wanted) or [one(names, wanted)]


def one(names: Sequence[str], wanted: str) -> str:
    """The name that is meant: an exact one, or the only one that ends so.

    Raises:
        InputError: Nothing is meant, or the end of several names; the message lists candidates.
    """
    if not isinstance(wanted, str):
        raise UsageError(f"a step is meant by its name, not by {type(wanted).__name__}")
    if wanted in names:
        return wanted
    ends = ending(names, wanted)
    if len(ends) > 1:
        raise InputError(f"{wanted!r} can be {listed(ends)}: write more of the name, or *.{wanted} for all of them")
    if not ends:
        raise InputError(missing(names, wanted))
    return ends[0]


def ending(names: Sequence[str], wanted: str) -> list[str]:
    """The names that end so."""
    return [name for name in names if name.endswith(f".{wanted}")]


def match(names: Sequence[str], pattern: str) -> list[str]:
    """The name itself, or those that a pattern with `*`, `?` or `[…]` matches."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def missing(names: Sequence[str], wanted: str) -> str:
    """Says that nothing is called so, and what is called nearly so."""
    from difflib import get_close_matches

    core = wanted.strip("*.")[:200]
    ends = [".".join(name.split(".")[-1 - core.count(".") :]) for name in names]
    near = get_close_matches(core, ends, SHOWN, 0.6)
    close = [name for name, end in zip(names, ends, strict=True) if end in near or (core and core in name)]
    hint = f"; close names are {listed(close)}" if close else ""
    return f"no step is called {wanted[:200]!r}{hint}: `tui-transformer show` lists all"


def listed(names: Sequence[str], most: int = SHOWN) -> str:
    """A few names in one line, and how many there are more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
