"""Keep and drop: which values a trace holds on to, decided from shapes before anything is computed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.engine.program import Program, Step

MEBIBYTE = 1 << 20
DEFAULT_BUDGET = 512 * MEBIBYTE
RESIDUAL = frozenset({"output", "residual", "norm", "query", "key", "value", "tokens", "positions"})
"""Last parts of the names of steps that are kept longest: the residual stream, q, k and v."""


@dataclass(frozen=True)
class Plan:
    """What is kept: the names, how many bytes they take, and how many everything would take."""

    names: frozenset[str]
    bytes: int
    total: int

    @property
    def everything(self) -> bool:
        """Nothing is dropped."""
        return self.bytes == self.total


def keep_plan(program: Program, bytes_per_cell: int, budget: int = DEFAULT_BUDGET) -> Plan:
    """Keep everything while it fits the budget, else less, down to the residual stream and q, k, v.

    First what is made again from few numbers goes: tokens × vocabulary, then queries × keys, then both.

    Args:
        program: The steps.
        bytes_per_cell: Bytes of one number, times the batch.
        budget: Bytes that may be kept. 0 keeps nothing.
    """
    total = program.step_cells() * bytes_per_cell
    choices = (
        program.steps,
        [step for step in program.steps if step.square or not step.windowed],
        [step for step in program.steps if not step.square],
        [step for step in program.steps if not step.windowed],
        [step for step in program.steps if step.name.rpartition(".")[2] in RESIDUAL],
    )
    for steps in choices:
        size = program.step_cells(steps) * bytes_per_cell
        if size <= budget:
            return Plan(_names(steps), size, total)
    return Plan(frozenset(), 0, total)


def _names(steps: tuple[Step, ...] | list[Step]) -> frozenset[str]:
    return frozenset(step.name for step in steps)


def available_memory() -> int:
    """Bytes that can be taken without swapping, as the system estimates them; physical memory where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def readable(size: int) -> str:
    """Bytes as people read them: `512 MiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
