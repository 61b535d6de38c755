"""Norms before a sublayer in place of after it, and the other way round (Xiong et al. 2020, figure 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, changing, instead, kind
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Add, LayerNorm, RmsNorm
from tui_transformer.engine.program import Program, Step

FRONT = "when the norm comes before the sublayer: here it comes after the sum, norm(x + f(x))"
BACK = "when the norm comes after the sum: here it comes before the sublayer, x + f(norm(x))"


@dataclass(frozen=True)
class Sublayer:
    """A sum of x and what a sublayer makes of it, and the norm before or after.

    Attributes:
        norm: The norm.
        residual: The sum.
        x: What enters the sublayer.
        readers: The steps of the sublayer that read what it works on.
    """

    norm: Step
    residual: Step
    x: str
    readers: tuple[Step, ...]


def placed_wrongly(segment: Segment) -> Iterator[Cause]:
    """Every sublayer of the segment with its norm on the other side, the kinds of them, each alone."""
    before, after = normed_before(segment), normed_after(segment)
    yield from _normed_late(segment, before)
    for sublayers, move, says in ((after, _to_front, FRONT), (before, _to_back, BACK)):
        for group in _grouped(sublayers):
            steps = [step for sublayer in group for step in move(sublayer)]
            yield Cause("norm-place", changing(steps), says)


def _normed_late(segment: Segment, sublayers: list[Sublayer]) -> Iterator[Cause]:
    """Norms before the sum, moved after it: the sublayer works on x, and its sum is normalised."""
    for sublayer in sublayers:
        if sublayer.norm.name == segment.target:
            inner = [step for step in segment.program.steps if step.sublayer == sublayer.norm.sublayer]
            late = {step.name: f"{step.name}.late" for step in inner if step.name != sublayer.norm.name}
            names = {**late, sublayer.norm.name: sublayer.x}
            steps = [
                replace(step, name=late[step.name], inputs=tuple(names.get(name, name) for name in step.inputs))
                for step in inner
                if step.name in late
            ]
            norm = replace(sublayer.norm, inputs=(late[sublayer.residual.name], *sublayer.norm.inputs[1:]))
            yield Cause("norm-place", changing([*steps, norm]), BACK)


def _grouped(sublayers: list[Sublayer]) -> Iterator[list[Sublayer]]:
    if sublayers:
        yield sublayers
    kinds = dict.fromkeys(kind(each.norm.name) for each in sublayers)
    if len(kinds) > 1:
        for name in kinds:
            yield [each for each in sublayers if kind(each.norm.name) == name]
    if 1 < len(sublayers) < 5:
        yield from ([each] for each in sublayers)


def normed_after(segment: Segment) -> list[Sublayer]:
    """Sublayers whose norm reads their sum."""
    program, sublayers = segment.program, []
    for norm in program.steps:
        residual = program.by_name.get(norm.inputs[0]) if isinstance(norm.op, LayerNorm | RmsNorm) else None
        if residual is None or not isinstance(residual.op, Add) or residual.sublayer != norm.sublayer:
            continue
        x, readers = residual.inputs[0], _readers(program, residual.inputs[0], norm.sublayer, residual)
        if any(step in segment.steps for step in readers):
            sublayers.append(Sublayer(norm, residual, x, readers))
    return sublayers


def normed_before(segment: Segment) -> list[Sublayer]:
    """Sublayers whose norm reads what their sum adds."""
    program, sublayers = segment.program, []
    for norm in program.steps:
        if not isinstance(norm.op, LayerNorm | RmsNorm):
            continue
        x = norm.inputs[0]
        residual = next((s for s in program.readers(x) if isinstance(s.op, Add) and s.sublayer == norm.sublayer), None)
        readers = _readers(program, norm.name, norm.sublayer, residual)
        if residual is None or not readers:
            continue
        if norm.name == segment.target or any(step in segment.steps for step in (*readers, residual)):
            sublayers.append(Sublayer(norm, residual, x, readers))
    return sublayers


def _readers(program: Program, name: str, sublayer: str, residual: Step | None) -> tuple[Step, ...]:
    steps = (step for step in program.readers(name) if step.sublayer == sublayer)
    return tuple(step for step in steps if residual is None or step.name != residual.name)


def _to_front(sublayer: Sublayer) -> Iterator[Step]:
    """norm(x + f(x)) as x + f(norm(x))."""
    norm = sublayer.norm
    front = replace(norm, name=f"{norm.name}.before", inputs=(sublayer.x, *norm.inputs[1:]))
    yield front
    for step in sublayer.readers:
        yield replace(step, inputs=tuple(front.name if name == sublayer.x else name for name in step.inputs))
    yield instead(norm, lambda x, *_: x)


def _to_back(sublayer: Sublayer) -> Iterator[Step]:
    """X + f(norm(x)) as norm(x + f(x))."""
    norm, residual = sublayer.norm, sublayer.residual
    yield instead(norm, lambda x, *_: x)
    weights = norm.inputs[1:]
    yield replace(instead(residual, _normalised(norm, len(residual.inputs))), inputs=(*residual.inputs, *weights))


def _normalised(norm: Step, parts: int) -> Function:
    def function(*inputs: Array) -> Array:
        return norm.op.forward(CPU, sum(inputs[1:parts], inputs[0]), *inputs[parts:])

    return function
