"""Matrices that are read the wrong way round, and biases that are left out or added twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from tui_transformer.diagnosis.causes.cause import (
    MOST_ALONE,
    Cause,
    around,
    changing,
    groups,
    instead,
    kind,
    last,
    transposed,
)
from tui_transformer.diagnosis.evaluation import Change, Segment
from tui_transformer.engine.ops import LayerNorm, Linear, Project, RmsNorm, Unembed
from tui_transformer.engine.program import Program, Step

MATRIX, BIAS = 1, 2
"""Places among the inputs of a linear step."""

NORMS = (LayerNorm, RmsNorm)


def read_wrongly(segment: Segment) -> Iterator[Cause]:
    """Every matrix of a segment transposed, one kind of them, one alone."""
    steps = _linear(segment)
    for group in groups(steps):
        change = Change(weights={step.inputs[MATRIX]: transposed for step in group})
        says = f"when {_named(group, 'weight')} transposed: multiply x by the weight as in × out (x Wᵀ where out × in)"
        yield Cause("weight-transposed", change, says)


def biased_wrongly(segment: Segment) -> Iterator[Cause]:
    """Without biases, or with every bias added twice."""
    steps = [step for step in _linear(segment) if len(step.inputs) > BIAS]
    for group in groups(steps):
        names = _named(group, "bias")
        without = changing(replace(step, inputs=step.inputs[:BIAS]) for step in group)
        yield Cause("bias-missing", without, f"when {names} left out: add it after the product")
        twice = changing(around(step, lambda x, w, b: (x, w, 2 * b)) for step in group)
        yield Cause("bias-twice", twice, f"when {names} added twice: add it once")


def exchanged(segment: Segment) -> Iterator[Cause]:
    """Matrices in the place of others: of the same sublayer, of another layer; none at all."""
    steps = [step for step in segment.steps if isinstance(step.op, Project)]
    if len(steps) > 3 * MOST_ALONE:
        return
    for first in steps:
        for second in segment.program.steps:
            if first.name == second.name or not isinstance(second.op, Project) or second.sublayer != first.sublayer:
                continue
            if first.shape == second.shape and len(first.inputs) == len(second.inputs):
                step = replace(first, inputs=(first.inputs[0], *second.inputs[1:]))
                says = f"with the weights of the {last(second.name)}: take those of the {last(first.name)}"
                yield Cause("weight-exchanged", changing([step]), says)

    yield from _both_ways(segment)
    yield from _norms(segment)
    yield from _of_another_layer(segment)
    yield from _left_out(segment)


def _both_ways(segment: Segment) -> Iterator[Cause]:
    """Two matrices of every attention that took each other's place, where neither product is in the dump."""
    pairs: dict[tuple[str, str], list[Step]] = {}
    for first, second in combinations([step for step in segment.steps if isinstance(step.op, Project)], 2):
        if first.sublayer == second.sublayer and first.shape == second.shape and first.inputs[0] == second.inputs[0]:
            swapped = replace(first, inputs=second.inputs), replace(second, inputs=first.inputs)
            pairs.setdefault((last(first.name), last(second.name)), []).extend(swapped)
    for (one, other), steps in pairs.items():
        says = f"when {one} and {other} have each other's weights: exchange them"
        yield Cause("weight-exchanged", changing(steps), says)


def _norms(segment: Segment) -> Iterator[Cause]:
    """Norms with the weights of the other norm of their layer."""
    of = {step.name: step for step in segment.program.steps if isinstance(step.op, NORMS)}
    for group in groups([step for step in segment.steps if step.name in of]):
        steps = []
        for step in group:
            others = [each for each in of.values() if each.layer == step.layer and each.name != step.name]
            if len(others) == 1 and len(others[0].inputs) == len(step.inputs):
                steps.append(replace(step, inputs=(step.inputs[0], *others[0].inputs[1:])))
        if steps:
            says = "with the weights of the other norm of the layer: every norm has its own"
            yield Cause("weight-exchanged", changing(steps), says)


def _of_another_layer(segment: Segment) -> Iterator[Cause]:
    """The weights of the first layer in all of them."""
    weights = segment.program.weights
    inputs = {name: other for name in segment.weights if (other := _first_layer(name)) != name and other in weights}
    if inputs:
        changed = [replace(s, inputs=tuple(inputs.get(name, name) for name in s.inputs)) for s in segment.steps]
        says = "with the weights of layer 0: every layer has its own"
        yield Cause("layer-repeated", changing(s for s in changed if s not in segment.steps), says)


def one_layer_short(segment: Segment) -> Iterator[Cause]:
    """What is after the layers reads the last but one."""
    program, changed = segment.program, []
    for step in segment.steps:
        inputs = tuple(name if kind(step.name) != step.name else _layer_before(program, name) for name in step.inputs)
        changed += [replace(step, inputs=inputs)] if inputs != step.inputs else []
    if changed:
        yield Cause("layer-missing", changing(changed), "without the last layer: let the loop run one further")


def _layer_before(program: Program, name: str) -> str:
    at = re.fullmatch(r"(\w+)\.(\d+)\.(.+)", name)
    earlier = f"{at[1]}.{int(at[2]) - 1}.{at[3]}" if at else name
    return earlier if earlier in program.by_name else name


def _first_layer(name: str) -> str:
    return re.sub(r"^(encoder|decoder)\.\d+\.", r"\1.0.", name)


def _left_out(segment: Segment) -> Iterator[Cause]:
    """The projection of the joined heads, which has the width that they have."""
    steps = [step for step in segment.steps if isinstance(step.op, Linear) and step.name.endswith("attention.output")]
    square = [step for step in steps if len({axis.size for axis in segment.program.weights[step.inputs[MATRIX]]}) == 1]
    for group in groups(square):
        bare = changing(instead(step, lambda x, *_: x) for step in group)
        yield Cause("projection-missing", bare, "without the output projection: multiply the joined heads by W_O")


def _linear(segment: Segment) -> list[Step]:
    kinds = (Linear, Project)
    return [step for step in segment.steps if isinstance(step.op, kinds) and not isinstance(step.op, Unembed)]


def _named(group: tuple[Step, ...], part: str) -> str:
    """The weight or bias that is meant."""
    kinds = list(dict.fromkeys(last(step.name) for step in group))
    names = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} and {kinds[-1]}" if len(kinds) < 4 else "every"
    layers = len({kind(step.name) for step in group}) < len(group)
    return f"the {part} of {names} is" if names != "every" else f"every {part} is" + (" (of all layers)" * layers)
