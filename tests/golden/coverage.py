"""Which commands and options the cases use, of those that the frozen help lists."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator

from tests.golden import commands, store

PROGRAM = "tui-transformer"
SHARED = 8
"""An option of so many commands is of all of them: it has to be used once, and not by each."""

NOT_RUN = {"--install-completion"}
"""What would write into the user's own files."""


def unused() -> dict[str, list[str]]:
    """By command, the options that no case gives; a command that none runs has them all, and itself."""
    listed = {name: options(text) for name, text in store.read(store.FROZEN, "help").items()}
    often = Counter(option for every in listed.values() for option in every)
    lines = list(_lines())
    given = {option for _, options in lines for option in options}
    missing = {}
    for name, every in listed.items():
        own = {option for command, options in lines if command == name for option in options}
        wanted = {option for option in every if option not in (given if often[option] >= SHARED else own)}
        run = any(f"{command} ".startswith(f"{name} ") for command, _ in lines)
        if wanted - NOT_RUN or not run:
            missing[name] = sorted(wanted - NOT_RUN) + ([] if run else [name])
    return missing


def options(text: str) -> set[str]:
    """The options that a help lists."""
    below = text.partition("\nOptions:\n")[2].partition("\nCommands:\n")[0]
    return {each for line in re.findall(r"^  (-.*)", below, re.MULTILINE) for each in _spelled(line)} - {"--help"}


def _spelled(line: str) -> list[str]:
    """How an option is written, without its value and what is said of it."""
    return re.findall(r"--[a-z][\w-]*", re.split(r"  | [A-Z<']", line)[0])


def _lines() -> Iterator[tuple[str, set[str]]]:
    """The command of every line, and the options that it gives."""
    names = set(store.read(store.FROZEN, "help"))
    for group in commands.groups().values():
        for case in group.values():
            for line in case.lines:
                words = shlex.split(line)
                found = [word for word in words if word.startswith("-")]
                deep = max((n for n in range(3) if " ".join([PROGRAM, *words[:n]]) in names), default=0)
                short = {"--out"} if "-o" in found else set()
                yield " ".join([PROGRAM, *words[:deep]]), {word.partition("=")[0] for word in found} | short
