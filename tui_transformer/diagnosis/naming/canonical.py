"""The program's own names of steps, as `trace` writes them."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.diagnosis.naming.name import Table, Target, present, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

LATER = ("scores", "scaled", "capped", "biased", "masked")
"""Steps between the product of queries and keys and the softmax: a name may stand for a later one."""


def canonical(model: Model, program: Program) -> Table:
    """Every step and alias, with `value/` in front or without."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
    for name in program.names:
        target = Target(_later(program, name))
        yield name, target
        yield f"value/{name}", target


def _later(program: Program, name: str) -> tuple[str, ...]:
    """The step, and where it holds scores, the same after more was done to them."""
    place, _, part = name.rpartition(".")
    if part not in LATER or not place:
        return present(program, name)
    return present(program, *(f"{place}.{later}" for later in LATER[LATER.index(part) :]))
