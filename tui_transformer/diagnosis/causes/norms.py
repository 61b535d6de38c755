"""Norms that are computed or placed otherwise, and sums around a sublayer that add something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    CPU,
    Cause,
    Function,
    Segment,
    changing,
    computed,
    computed_of,
    groups,
    instead,
    kind,
    last,
)
from tui_transformer.diagnosis.causes.heads import earlier_like
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Add, LayerNorm, NormOfSum, RmsNorm
from tui_transformer.engine.program import Program, Step

EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-3, 1e-9, 1e-10, 1e-4, 1e-2, 0.1, 0.0)


@dataclass(frozen=True)
class Recipe:
    """How a norm may be computed (Ba et al. 2016; Zhang & Sennrich 2019).

    Attributes:
        centred: The mean is taken off.
        degrees: What is taken off the number of columns that squares are divided by.
        outside: ε is added to the root, not under it.
        gamma: The result is multiplied by γ.
        beta: β is added.
        epsilon: In place of the right one.
        axis: The axes that mean and variance are taken over.
        exchanged: γ and β are in each other's place.
        power: Of the variance that is divided by: ½ is the standard deviation, 0 nothing.
        added: To γ.
        summed: The squares are added up, in place of their mean.
    """

    centred: bool = True
    degrees: int = 0
    outside: bool = False
    gamma: bool = True
    beta: bool = True
    epsilon: float | None = None
    axis: int | tuple[int, int] = -1
    exchanged: bool = False
    power: float = 0.5
    added: float = 0.0
    summed: bool = False


def norm_causes(segment: Segment) -> Iterator[Cause]:
    """Another ε, variance with n − 1, γ or β left out, the mean not taken off or taken off."""
    for group in groups(segment.of(LayerNorm, RmsNorm, NormOfSum)):
        for name, recipe, says in _recipes(group):
            yield Cause(name, changing(instead(step, _norm(step, recipe, name)) for step in group), says)
        yield computed_of("norm-missing", group, _sum, "without the norm: normalise here")


def _recipes(group: Sequence[Step]) -> Iterator[tuple[str, Recipe, str]]:
    """The name of a cause, how it computes norms, and what is said of it."""
    epsilon = getattr(group[0].op, "epsilon", 0.0)
    for other in EPSILONS:
        if other != epsilon:
            yield "norm-epsilon", Recipe(epsilon=other), f"with ε = {other:g}: this model has ε = {epsilon:g}"
    says = "when ε is added to the standard deviation: add it to the variance, under the root"
    yield "norm-epsilon", Recipe(outside=True), says
    yield "norm-variance", Recipe(degrees=1), "when the variance is divided by n − 1: divide by n"
    yield "norm-gamma-missing", Recipe(gamma=False), "without γ: multiply by the norm's weight"
    if any(not isinstance(step.op, RmsNorm) for step in group):
        yield "norm-beta-missing", Recipe(beta=False), "without β: add the norm's bias"
        says = "without γ and β: multiply by the norm's weight and add its bias"
        yield "norm-gamma-missing", Recipe(gamma=False, beta=False), says
        says = "when γ and β are exchanged: multiply by the norm's weight, then add its bias"
        yield "norm-exchanged", Recipe(exchanged=True), says
        says = "when the mean is not taken off: this is a layer norm, not an RMS norm"
        yield "norm-kind", Recipe(centred=False), says
    else:
        yield "norm-kind", Recipe(), "when the mean is taken off: this is an RMS norm, not a layer norm"
    for axis, words in ((-2, "the tokens"), ((-2, -1), "the whole matrix")):
        says = f"when mean and variance are taken over {words}: take them over the columns of each token"
        yield "norm-axis", Recipe(axis=axis), says
    says = "when divided by the variance: divide by its root, the standard deviation"
    yield "norm-variance-divided", Recipe(power=1.0), says
    says = "when only the mean is taken off: divide by the standard deviation too"
    if isinstance(group[0].op, RmsNorm):
        says = "without the division: divide by the root of the mean square"
    yield "norm-division-missing", Recipe(power=0.0), says
    says = "when divided by the root of the sum of squares: take the root of their mean"
    yield "norm-sum", Recipe(summed=True), says
    yield "norm-gamma-offset", Recipe(added=1.0), "when multiplied by 1 + γ: multiply by γ"
    yield "norm-gamma-offset", Recipe(added=-1.0), "when multiplied by w: γ is 1 + w here"


def _sum(step: Step, *inputs: Array) -> Array:
    """The sum of what a step normalises, which may be the sum of several inputs."""
    return sum(inputs[1 : step.op.parts if isinstance(step.op, NormOfSum) else 1], inputs[0])


def _norm(step: Step, recipe: Recipe, name: str) -> Function:
    epsilon = getattr(step.op, "epsilon", 0.0) if recipe.epsilon is None else recipe.epsilon
    parts = step.op.parts if isinstance(step.op, NormOfSum) else 1
    is_centred = recipe.centred and (name == "norm-kind" or not isinstance(step.op, RmsNorm))

    def function(*inputs: Array) -> Array:
        x = _sum(step, *inputs)
        weights = inputs[parts:][:: -1 if recipe.exchanged else 1]
        if is_centred:
            x = x - x.mean(axis=recipe.axis, keepdims=True)
        squares = (x**2).sum(axis=recipe.axis, keepdims=True)
        variance = squares / ((1 if recipe.summed else x.size // squares.size) - recipe.degrees)
        normal = x / (np.sqrt(variance) + epsilon if recipe.outside else (variance + epsilon) ** recipe.power)
        gamma = getattr(step.op, "offset", 0.0) + weights[0] + recipe.added if recipe.gamma and weights else 1.0
        beta = weights[1] if recipe.beta and len(weights) > 1 else 0.0
        return normal * gamma + beta

    return function


# Norms before a sublayer in place of after it, and the other way round (Xiong et al. 2020, figure 1)

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

    def with_norm_in_front(self, ending: str = ".before") -> Iterator[Step]:
        """norm(x + f(x)) as x + f(norm(x)): the new norm and those that read it, but not what was the norm."""
        front = replace(self.norm, name=f"{self.norm.name}{ending}", inputs=(self.x, *self.norm.inputs[1:]))
        yield front
        for step in self.readers:
            yield replace(step, inputs=tuple(front.name if name == self.x else name for name in step.inputs))


def norm_place_causes(segment: Segment) -> Iterator[Cause]:
    """Every sublayer of the segment with its norm on the other side, the kinds of them, each alone."""
    before, after = normed_before(segment), normed_after(segment)
    for sublayer in before:
        if sublayer.norm.name == segment.target:
            yield Cause("norm-place", changing(_normed_late(segment.program, sublayer)), BACK)
    for sublayers, move, says in ((after, _to_front, FRONT), (before, _to_back, BACK)):
        kinds = dict.fromkeys(kind(each.norm.name) for each in sublayers)
        of_kinds = [[each for each in sublayers if kind(each.norm.name) == name] for name in kinds]
        alone = [[each] for each in sublayers] if 1 < len(sublayers) < 5 else []
        for group in (sublayers, *(of_kinds if len(kinds) > 1 else ()), *alone) if sublayers else ():
            yield Cause("norm-place", changing(step for each in group for step in move(each)), says)


def normed_after(segment: Segment) -> list[Sublayer]:
    """Sublayers whose norm reads their sum."""
    program, sublayers = segment.program, []
    for norm in program.steps:
        residual = program.by_name.get(norm.inputs[0]) if isinstance(norm.op, LayerNorm | RmsNorm) else None
        if residual is None or not isinstance(residual.op, Add) or residual.sublayer != norm.sublayer:
            continue
        readers = _readers(program, residual.inputs[0], residual)
        if any(step in segment.steps for step in readers):
            sublayers.append(Sublayer(norm, residual, residual.inputs[0], readers))
    return sublayers


def normed_before(segment: Segment) -> list[Sublayer]:
    """Sublayers whose norm reads what their sum adds."""
    program, sublayers = segment.program, []
    for norm in program.steps:
        if not isinstance(norm.op, LayerNorm | RmsNorm):
            continue
        x = norm.inputs[0]
        residual = next((s for s in program.readers(x) if isinstance(s.op, Add) and s.sublayer == norm.sublayer), None)
        readers = _readers(program, norm.name, residual) if residual else ()
        if residual is None or not readers:
            continue
        if norm.name == segment.target or any(step in segment.steps for step in (*readers, residual)):
            sublayers.append(Sublayer(norm, residual, x, readers))
    return sublayers


def _readers(program: Program, name: str, residual: Step) -> tuple[Step, ...]:
    """The steps of a sublayer besides its sum that read a step."""
    steps = (step for step in program.readers(name) if step.sublayer == residual.sublayer)
    return tuple(step for step in steps if step.name != residual.name)


def _normed_late(program: Program, sublayer: Sublayer) -> Iterator[Step]:
    """A norm before the sum, moved after it: the sublayer works on x, and its sum is normalised."""
    norm = sublayer.norm
    inner = [step for step in program.steps if step.sublayer == norm.sublayer and step.name != norm.name]
    late = {step.name: f"{step.name}.late" for step in inner}
    names = {**late, norm.name: sublayer.x}
    for step in inner:
        yield replace(step, name=late[step.name], inputs=tuple(names.get(name, name) for name in step.inputs))
    yield replace(norm, inputs=(late[sublayer.residual.name], *norm.inputs[1:]))


def _to_front(sublayer: Sublayer) -> Iterator[Step]:
    yield from sublayer.with_norm_in_front()
    yield instead(sublayer.norm, lambda x, *_: x)


def _to_back(sublayer: Sublayer) -> Iterator[Step]:
    """X + f(norm(x)) as norm(x + f(x))."""
    norm, residual = sublayer.norm, sublayer.residual
    parts = len(residual.inputs)

    def normalised(*inputs: Array) -> Array:
        return norm.op.forward(CPU, sum(inputs[1:parts], inputs[0]), *inputs[parts:])

    yield instead(norm, lambda x, *_: x)
    yield replace(instead(residual, normalised), inputs=(*residual.inputs, *norm.inputs[1:]))


# Sums around a sublayer (He et al. 2016)


def residual_causes(segment: Segment) -> Iterator[Cause]:
    """Nothing, twice, or another step of the same shape in place of what enters the sublayer."""
    for group in groups(step for step in segment.of(Add) if last(step.name) == "residual"):
        says = "without the residual: add what enters the sublayer to what leaves it"
        yield computed("residual-missing", group, lambda *parts: sum(parts[2:], parts[1]), says)
        says = "when what enters the sublayer is added twice: add it once"
        yield computed("residual-twice", group, lambda *parts: sum(parts, parts[0]), says)
        says = "when what the sublayer computes is not added: add it"
        yield computed("sublayer-missing", group, lambda *parts: parts[0], says)
        # a step before is added, the same number of steps back in all sums
        for names in zip(*(earlier_like(segment, step, step.inputs) for step in group), strict=False):
            steps = (replace(step, inputs=(name, *step.inputs[1:])) for step, name in zip(group, names, strict=True))
            says = f"when {names[0]} is added: add {group[0].inputs[0]}, which enters the sublayer"
            yield Cause("residual-place", changing(steps), says)


def centred_causes(segment: Segment) -> Iterator[Cause]:
    """Sums written to the residual stream, centred to mean 0: some tools do so when they load a model."""
    steps = [step for step in segment.steps if step.name == segment.target]
    if steps and steps[0].axes and steps[0].axes[-1].name == "dimension":
        says = "with the mean of each row taken off: load the model as it is (from_pretrained_no_processing)"
        yield computed_of("residual-centred", steps[:1], _without_mean, says)


def _without_mean(step: Step, *inputs: Array) -> Array:
    result = step.op.forward(CPU, *inputs)
    return result - result.mean(axis=-1, keepdims=True)
