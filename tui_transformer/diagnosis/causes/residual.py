"""Sums around a sublayer that add something else than what enters it, or nothing (He et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tui_transformer.diagnosis.causes.cause import CPU, Cause, Function, changing, groups, instead, last
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Add
from tui_transformer.engine.program import Program, Step

NEAREST = 12
"""So many steps before a sum are tried in its place."""


def added_wrongly(segment: Segment) -> Iterator[Cause]:
    """Nothing, twice, or another step of the same shape in place of what enters the sublayer."""
    steps = [step for step in segment.steps if isinstance(step.op, Add) and last(step.name) == "residual"]
    for group in groups(steps):
        none = changing(instead(step, lambda *parts: sum(parts[2:], parts[1])) for step in group)
        yield Cause("residual-missing", none, "without the residual: add what enters the sublayer to what leaves it")
        twice = changing(instead(step, lambda *parts: sum(parts, parts[0])) for step in group)
        yield Cause("residual-twice", twice, "when what enters the sublayer is added twice: add it once")
        bare = changing(instead(step, lambda *parts: parts[0]) for step in group)
        yield Cause("sublayer-missing", bare, "when what the sublayer computes is not added: add it")
        yield from _from_elsewhere(segment.program, group)


def _from_elsewhere(program: Program, group: tuple[Step, ...]) -> Iterator[Cause]:
    """Sums that add a step before, the same number of steps back in all of them."""
    others = [_others(program, step) for step in group]
    for names in zip(*others, strict=False):
        steps = (replace(step, inputs=(name, *step.inputs[1:])) for step, name in zip(group, names, strict=True))
        says = f"when {names[0]} is added: add {group[0].inputs[0]}, which enters the sublayer"
        yield Cause("residual-place", changing(steps), says)


def _others(program: Program, step: Step) -> list[str]:
    """Steps before this of the same shape, nearest first, but for those that it adds already."""
    before = program.steps[: program.places[step.name]]
    names = [each.name for each in reversed(before) if each.axes == step.axes and each.name not in step.inputs]
    return names[:NEAREST]


def centred(segment: Segment) -> Iterator[Cause]:
    """Sums written to the residual stream, centred to mean 0: some tools do so when they load a model."""
    steps = [step for step in segment.steps if step.name == segment.target]
    if steps and steps[0].axes and steps[0].axes[-1].name == "dimension":
        change = changing([instead(steps[0], _without_mean(steps[0]))])
        says = "with the mean of each row taken off: load the model as it is (from_pretrained_no_processing)"
        yield Cause("residual-centred", change, says)


def _without_mean(step: Step) -> Function:
    def function(*inputs: Array) -> Array:
        result = step.op.forward(CPU, *inputs)
        return result - result.mean(axis=-1, keepdims=True)

    return function
