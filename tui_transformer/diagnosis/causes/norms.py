"""Norms with another ε or variance, or without γ or β (Ba et al. 2016; Zhang & Sennrich 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, Function, changing, groups, instead
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import LayerNorm, NormOfSum, RmsNorm
from tui_transformer.engine.program import Step

EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-3, 1e-9, 1e-10, 1e-4, 1e-2, 0.1, 0.0)
NORMS = (LayerNorm, RmsNorm, NormOfSum)


@dataclass(frozen=True)
class Recipe:
    """How a norm may be computed.

    Attributes:
        centred: The mean is taken off.
        degrees: What is taken off the number of columns that squares are divided by.
        outside: ε is added to the root, not under it.
        gamma: The result is multiplied by γ.
        beta: β is added.
        epsilon: In place of the right one.
        axis: The axes that mean and variance are taken over.
        power: Of the variance that is divided by: ½ is the standard deviation, 0 nothing.
        added: To γ.
        summed: The squares are added up, in place of their mean.
        exchanged: γ and β are in each other's place.
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


def normalised_otherwise(segment: Segment) -> Iterator[Cause]:
    """Another ε, variance with n − 1, γ or β left out, the mean not taken off or taken off."""
    steps = [step for step in segment.steps if isinstance(step.op, NORMS)]
    for group in groups(steps):
        epsilon = getattr(group[0].op, "epsilon", 0.0)
        for other in EPSILONS:
            if other != epsilon:
                says = f"with ε = {other:g}: this model has ε = {epsilon:g}"
                yield _cause("norm-epsilon", group, Recipe(epsilon=other), says)
        says = "when ε is added to the standard deviation: add it to the variance, under the root"
        yield _cause("norm-epsilon", group, Recipe(outside=True), says)
        says = "when the variance is divided by n − 1: divide by n"
        yield _cause("norm-variance", group, Recipe(degrees=1), says)
        yield _cause("norm-gamma-missing", group, Recipe(gamma=False), "without γ: multiply by the norm's weight")
        if any(not isinstance(step.op, RmsNorm) for step in group):
            yield _cause("norm-beta-missing", group, Recipe(beta=False), "without β: add the norm's bias")
            says = "without γ and β: multiply by the norm's weight and add its bias"
            yield _cause("norm-gamma-missing", group, Recipe(gamma=False, beta=False), says)
            says = "when γ and β are exchanged: multiply by the norm's weight, then add its bias"
            yield _cause("norm-exchanged", group, Recipe(exchanged=True), says)
            says = "when the mean is not taken off: this is a layer norm, not an RMS norm"
            yield _cause("norm-kind", group, Recipe(centred=False), says)
        else:
            says = "when the mean is taken off: this is an RMS norm, not a layer norm"
            yield _cause("norm-kind", group, Recipe(centred=True), says)
        says = "when mean and variance are taken over the tokens: take them over the columns of each token"
        yield _cause("norm-axis", group, Recipe(axis=-2), says)
        says = "when mean and variance are taken over the whole matrix: take them over the columns of each token"
        yield _cause("norm-axis", group, Recipe(axis=(-2, -1)), says)
        yield from _divided_otherwise(group)
        says = "without the norm: normalise here"
        yield Cause("norm-missing", changing(instead(step, _sum(step)) for step in group), says)


def _divided_otherwise(group: tuple[Step, ...]) -> Iterator[Cause]:
    """Divided by the variance, by nothing, by the root of a sum; γ one more or one less."""
    says = "when divided by the variance: divide by its root, the standard deviation"
    yield _cause("norm-variance-divided", group, Recipe(power=1.0), says)
    says = "when only the mean is taken off: divide by the standard deviation too"
    if isinstance(group[0].op, RmsNorm):
        says = "without the division: divide by the root of the mean square"
    yield _cause("norm-division-missing", group, Recipe(power=0.0), says)
    says = "when divided by the root of the sum of squares: take the root of their mean"
    yield _cause("norm-sum", group, Recipe(summed=True), says)
    for by, says in ((1.0, "when multiplied by 1 + γ: multiply by γ"), (-1.0, "when multiplied by w: γ is 1 + w here")):
        yield _cause("norm-gamma-offset", group, Recipe(added=by), says)


def _cause(name: str, group: tuple[Step, ...], recipe: Recipe, says: str) -> Cause:
    steps = (instead(step, _norm(step, _for(step, recipe, name))) for step in group)
    return Cause(name, changing(steps), says)


def _for(step: Step, recipe: Recipe, name: str) -> Recipe:
    """The recipe of a step: an RMS norm does not take the mean off, unless that is the cause."""
    if isinstance(step.op, RmsNorm) and name != "norm-kind":
        return replace(recipe, centred=False)
    return recipe


def _parts(step: Step) -> int:
    return step.op.parts if isinstance(step.op, NormOfSum) else 1


def _sum(step: Step) -> Function:
    return lambda *inputs: sum(inputs[1 : _parts(step)], inputs[0])


def _norm(step: Step, recipe: Recipe) -> Function:
    epsilon = getattr(step.op, "epsilon", 0.0) if recipe.epsilon is None else recipe.epsilon
    parts = _parts(step)

    def function(*inputs: Array) -> Array:
        x: Array = sum(inputs[1:parts], inputs[0])
        weights = inputs[parts:][:: -1 if recipe.exchanged else 1]
        if recipe.centred:
            x = x - x.mean(axis=recipe.axis, keepdims=True)
        squares = (x**2).sum(axis=recipe.axis, keepdims=True)
        variance = squares / ((1 if recipe.summed else x.size // squares.size) - recipe.degrees)
        normal = x / (np.sqrt(variance) + epsilon if recipe.outside else (variance + epsilon) ** recipe.power)
        gamma = getattr(step.op, "offset", 0.0) + weights[0] + recipe.added if recipe.gamma and weights else 1.0
        beta = weights[1] if recipe.beta and len(weights) > 1 else 0.0
        return normal * gamma + beta

    return function
