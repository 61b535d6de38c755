"""Everything that is frozen: for each file of outputs, how its cases are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tests.golden import commands, screens, surface
from tests.golden.store import Cases

Make = Callable[[str], Cases]
"""Makes the cases whose names contain a text."""


def _of_commands(group: Mapping[str, commands.Case], part: str) -> Cases:
    return {name: commands.result(case) for name, case in group.items() if part in name}


PARTS: Mapping[str, Make] = {
    **{name: partial(_of_commands, group) for name, group in commands.groups().items()},
    "help": surface.helps,
    "keys": surface.keys,
    "library-names": surface.names,
    "library-examples": surface.examples,
    "library-results": surface.results,
    **screens.PARTS,
}
