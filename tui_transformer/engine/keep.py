"""Keep and drop: which values a trace holds on to, decided from shapes before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.engine.backend import POOL
from tui_transformer.engine.program import Program, Step
from tui_transformer.errors import InputError

MEBIBYTE = 1 << 20
DEFAULT_BUDGET = 512 * MEBIBYTE
RESIDUAL = frozenset({"output", "residual", "norm", "query", "key", "value", "tokens", "positions"})
"""Last parts of the names of steps that are kept long: the residual stream, q, k and v."""
PROJECTIONS = frozenset({"query", "key", "value"})
"""Last parts of the names of steps that windows of attention weights and context are made from."""


@dataclass(frozen=True)
class Plan:
    """Names of the steps that are kept, the bytes that they take, and those that everything would take."""

    names: frozenset[str]
    bytes: int
    total: int

    @property
    def everything(self) -> bool:
        """Nothing is dropped."""
        return self.bytes == self.total


def keep_plan(program: Program, bytes_per_cell: int, budget: int = DEFAULT_BUDGET) -> Plan:
    """Keep everything while it fits the budget, else less, down to what leaves some of the layers.

    First what is made again from few numbers goes: tokens × vocabulary, then queries × keys, then both. Of the rest,
    the residual stream, q, k and v stay longest; last of all what leaves every k-th layer, from which the layers after
    it are computed again.

    Args:
        program: The steps.
        bytes_per_cell: Bytes of one number, times the batch.
        budget: Bytes that may be kept. 0 keeps nothing.
    """
    total = program.step_cells() * bytes_per_cell
    sizes = ((steps, program.step_cells(steps) * bytes_per_cell) for steps in _choices(program))
    return next(Plan(frozenset(step.name for step in steps), size, total) for steps, size in sizes if size <= budget)


def _choices(program: Program) -> Iterator[tuple[Step, ...]]:
    """Sets of steps that may be kept, from all to nothing."""
    layers = layer_outputs(program)
    yield program.steps
    yield tuple(step for step in program.steps if step.square or not step.windowed)
    yield tuple(step for step in program.steps if not step.square)
    yield tuple(step for step in program.steps if not step.windowed)
    yield tuple(step for step in program.steps if _last_part(step) in RESIDUAL)
    yield tuple(step for step in program.steps if step.name in layers or _last_part(step) in PROJECTIONS)
    for stride in range(1, len(layers) + 1):
        yield tuple(program.step(name) for name in _every(stride, layers))
    yield ()


def _last_part(step: Step) -> str:
    return step.name.rpartition(".")[2]


def _every(stride: int, names: Iterable[str]) -> Iterator[str]:
    """Output of the last layer of each stack, and of every so many layers before it."""
    stacks: dict[str, list[str]] = {}
    for name in names:
        stacks.setdefault(name.partition(".")[0], []).append(name)
    for stack in stacks.values():
        yield from stack[::-1][::stride]


def layer_outputs(program: Program) -> tuple[str, ...]:
    """The own names of what leaves each layer, in order."""
    return tuple(program.aliases[name] for name in program.names if name in program.aliases and _is_layer(name))


def _is_layer(name: str) -> bool:
    stack, _, rest = name.partition(".")
    layer, _, last = rest.partition(".")
    return bool(stack) and layer.isdigit() and last == "output"


def available_memory() -> int:
    """Bytes that can be taken without swapping, as the system estimates them; physical memory where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise InputError where more memory is needed than is free; what lies idle is given back before that."""
    if needed > available_memory():
        POOL.clear()
    free = available_memory()
    if needed > free:
        raise InputError(f"{what} {readable(needed)} of memory and {readable(free)} are free: {advice}")


def readable(size: int) -> str:
    """Bytes as people read them: `512 MiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
