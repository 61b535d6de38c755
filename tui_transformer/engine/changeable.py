"""The cells and regions of a program that may be changed; all others are refused by their names."""

from __future__ import annotations

from collections.abc import Sequence

from tui_transformer.engine.axis import Region, Shape, shape_text
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.program import Program, Step
from tui_transformer.errors import InputError, UsageError


def check_index(program: Program, name: str, index: Index) -> None:
    """Refuse a cell that a step, weight or input does not have."""
    shape = program.shape(name)
    if not isinstance(index, Sequence):
        raise UsageError(f"a cell of {name} has an index for every axis, as {tuple(0 for _ in shape)}")
    if len(index) != len(shape) or not all(0 <= i < size for i, size in zip(index, shape, strict=True)):
        raise InputError(f"{name} has no cell [{', '.join(map(str, index))}]: it is {shape_text(shape)}")


def array_of_numbers(program: Program, name: str) -> tuple[str, Shape]:
    """The own name and the shape of a step of numbers or of a weight.

    Raises:
        InputError: There is none, or it holds whole numbers.
    """
    own = program.named(name)
    if own in program.givens:
        raise InputError(f"{own} is an input: change a step or a weight")
    return (own, program.shape(own)) if own in program.weights else (own, step_of_numbers(program, own).shape)


def checked_region(program: Program, name: str, region: Region) -> str:
    """The own name of a step of numbers, or of a weight, that has this region."""
    own, shape = array_of_numbers(program, name)
    if not isinstance(region, Sequence) or not all(isinstance(part, range) for part in region):
        raise UsageError(f"a region of {own} is a range for every axis; Set({name!r}, 0.0, rows=3) names one alone")
    if not _fits(region, shape):
        parts = ", ".join(f"{part.start}–{part.stop - 1}" for part in region)
        raise InputError(f"{own} has no region [{parts}]: it is {shape_text(shape)}")
    return own


def check_id(program: Program, name: str, value: float) -> None:
    """Refuse a value that a step of IDs cannot have: what reads it has no such row."""
    limit = min(program.shape(reader.inputs[1])[0] for reader in program.readers(name))
    if not (0 <= value < limit and float(value).is_integer()):
        raise InputError(f"{name} holds whole numbers from 0 to {limit - 1}, not {value:g}")


def step_of_numbers(program: Program, name: str) -> Step:
    """The step of this name; one that holds whole numbers is refused."""
    step = program.step(name)
    if step.op.integer:
        raise InputError(f"{step.name} holds whole numbers: change the sentence instead")
    return step


def _fits(region: Region, shape: Shape) -> bool:
    return len(region) == len(shape) and all(
        0 <= part.start < part.stop <= size and part.step == 1 for part, size in zip(region, shape, strict=True)
    )
