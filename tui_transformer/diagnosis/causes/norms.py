"""Norms that are computed or placed otherwise, and steps that read another step: sums, and a cross-attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Segment,
    as_it_is,
    cause,
    computed,
    earlier_like,
    groups,
    instead,
    passing_on,
    reading,
    result_of,
)
from tui_transformer.diagnosis.naming.words import kind, last
from tui_transformer.engine.backend import Array
from tui_transformer.engine.ops import Add, LayerNorm, Mask, NormOfSum, Project, RmsNorm, RmsNormOfHeads, Rotate
from tui_transformer.engine.program import Program, Step
from tui_transformer.records import dataclass, replace

EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-3, 1e-9, 1e-10, 1e-4, 1e-2, 0.1, 0.0)


@dataclass(frozen=True)
class Recipe:
    """How a norm may be computed (Ba et al. 2016; Zhang & Sennrich 2019).

    Attributes:
        centred: The mean is taken off; None where the norm itself does so.
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

    centred: bool | None = None
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


RECIPES: Mapping[str, Recipe] = {
    "norm-epsilon/outside": Recipe(outside=True),
    "norm-variance": Recipe(degrees=1),
    "norm-gamma-missing": Recipe(gamma=False),
    "norm-beta-missing": Recipe(beta=False),
    "norm-gamma-missing/both": Recipe(gamma=False, beta=False),
    "norm-exchanged": Recipe(exchanged=True),
    "norm-kind/layer": Recipe(centred=False),
    "norm-kind/rms": Recipe(centred=True),
    "norm-axis/tokens": Recipe(axis=-2),
    "norm-axis/all": Recipe(axis=(-2, -1)),
    "norm-variance-divided": Recipe(power=1.0),
    "norm-division-missing/layer": Recipe(power=0.0),
    "norm-division-missing/rms": Recipe(power=0.0),
    "norm-sum": Recipe(summed=True),
    "norm-gamma-offset/more": Recipe(added=1.0),
    "norm-gamma-offset/less": Recipe(added=-1.0),
}
OF_LAYER_NORMS = ("norm-beta-missing", "norm-gamma-missing/both", "norm-exchanged", "norm-kind/layer")


def norm_causes(segment: Segment) -> Iterator[Cause]:
    """Another ε, variance with n − 1, γ or β left out, the mean not taken off or taken off."""
    for group in groups(segment.of(LayerNorm, RmsNorm, NormOfSum)):
        epsilon = getattr(group[0].op, "epsilon", 0.0)
        for other in (other for other in EPSILONS if other != epsilon):
            norm = partial(_norm, Recipe(epsilon=other))
            yield computed("norm-epsilon", group, norm, other=other, epsilon=epsilon)
        is_rms, first = all(isinstance(step.op, RmsNorm) for step in group), isinstance(group[0].op, RmsNorm)
        division = "norm-division-missing/layer" if first else "norm-division-missing/rms"
        others = (*(OF_LAYER_NORMS if is_rms else ("norm-kind/rms",)), division)
        for key, recipe in RECIPES.items():
            if key not in others:
                yield computed(key, group, partial(_norm, recipe))
        yield computed("norm-missing", group, lambda step, *inputs: _parts(step, inputs)[0])


def _parts(step: Step, inputs: Sequence[Array]) -> tuple[Array, Sequence[Array]]:
    """What a step normalises, which may be the sum of several inputs, and its weights."""
    count = step.op.parts if isinstance(step.op, NormOfSum) else 1
    return sum(inputs[1:count], inputs[0]), inputs[count:]


def _norm(recipe: Recipe, step: Step, *inputs: Array) -> Array:
    epsilon = getattr(step.op, "epsilon", 0.0) if recipe.epsilon is None else recipe.epsilon
    x, weights = _parts(step, inputs)
    if isinstance(step.op, RmsNormOfHeads) and x.ndim == 4 and weights[0].ndim == 1:  # of all heads side by side
        heads, width = x.shape[1], x.shape[-1]
        rows = _norm(recipe, step, x.swapaxes(1, 2).reshape(len(x), -1, heads * width), *weights)
        return rows.reshape(len(x), -1, heads, width).swapaxes(1, 2)
    weights = weights[::-1] if recipe.exchanged else weights
    if recipe.centred or (recipe.centred is None and not isinstance(step.op, RmsNorm)):
        x = x - x.mean(axis=recipe.axis, keepdims=True)
    squares = (x**2).sum(axis=recipe.axis, keepdims=True)
    variance = squares / ((1 if recipe.summed else x.size // squares.size) - recipe.degrees)
    normal = x / (np.sqrt(variance) + epsilon if recipe.outside else (variance + epsilon) ** recipe.power)
    gamma = getattr(step.op, "offset", 0.0) + weights[0] + recipe.added if recipe.gamma and weights else 1.0
    beta = weights[1] if recipe.beta and len(weights) > 1 else 0.0
    return normal * gamma + beta


# Norms before a sublayer in place of after it, and the other way round (Xiong et al. 2020, figure 1)


@dataclass(frozen=True)
class Sublayer:
    """A sum of x and what a sublayer makes of it, and the norm before or after.

    Attributes:
        norm: The norm.
        residual: The sum.
        x: What enters the sublayer.
        readers: The steps of the sublayer that read what it works on.
        is_after: The norm reads the sum.
    """

    norm: Step
    residual: Step
    x: str
    readers: tuple[Step, ...]
    is_after: bool

    def moved(self) -> Iterator[Step]:
        """norm(x + f(x)) as x + f(norm(x)), or the other way round; what was the norm passes its input on."""
        yield passing_on(self.norm, "not normed here")
        if self.is_after:
            front = replace(self.norm, name=f"{self.norm.name}_before", inputs=(self.x, *self.norm.inputs[1:]))
            yield front
            for step in self.readers:
                yield replace(step, inputs=tuple(front.name if name == self.x else name for name in step.inputs))
        else:
            total = replace(self.residual, name=f"{self.residual.name}_before_norm")
            yield total
            yield replace(self.residual, op=self.norm.op, inputs=(total.name, *self.norm.inputs[1:]), role="norm")


def sublayers(program: Program) -> Iterator[Sublayer]:
    """The sublayers that have a norm, in order."""
    for norm in program.steps:
        if not isinstance(norm.op, LayerNorm | RmsNorm):
            continue
        x, source = norm.inputs[0], program.by_name.get(norm.inputs[0])
        is_after = source is not None and isinstance(source.op, Add) and source.sublayer == norm.sublayer
        sums = (step for step in program.readers(x) if isinstance(step.op, Add) and step.sublayer == norm.sublayer)
        residual = source if is_after else next(sums, None)
        if residual is not None:
            x = residual.inputs[0] if is_after else x
            inside = (s for s in program.readers(x if is_after else norm.name) if s.sublayer == residual.sublayer)
            if readers := tuple(step for step in inside if step.name != residual.name):
                yield Sublayer(norm, residual, x, readers, is_after)


def norm_place_causes(segment: Segment) -> Iterator[Cause]:
    """Every sublayer of the segment with its norm on the other side, the kinds of them, each alone."""
    inside = {step.name for step in segment.steps}
    before, after = [], []
    for each in sublayers(segment.program):
        within = any(step.name in inside for step in (*each.readers, *(() if each.is_after else (each.residual,))))
        if each.is_after and within:
            after.append(each)
        elif not each.is_after and (within or each.norm.name == segment.target):
            before.append(each)
    for each in before:
        if each.norm.name == segment.target:  # the sublayer works on x, and its sum is normalised
            norm = each.norm
            inner = [step for step in segment.program.steps if step.sublayer == norm.sublayer and step is not norm]
            late = {step.name: f"{step.name}.late" for step in inner}
            names = {**late, norm.name: each.x}
            changed = [replace(s, name=late[s.name], inputs=tuple(names.get(n, n) for n in s.inputs)) for s in inner]
            total = late[each.residual.name]
            yield cause("norm-place/back", (*changed, replace(norm, inputs=(total, *norm.inputs[1:]))))
    for every, key in ((after, "norm-place/front"), (before, "norm-place/back")):
        kinds = dict.fromkeys(kind(each.norm.name) for each in every)
        of_kinds = [[each for each in every if kind(each.norm.name) == name] for name in kinds]
        alone = [[each] for each in every] if 1 < len(every) < 5 else []
        for group in (every, *(of_kinds if len(kinds) > 1 else ()), *alone) if every else ():
            yield cause(key, chain.from_iterable(each.moved() for each in group))


# Norms of queries and keys (Dehghani et al. 2023, §2)


def head_norm_causes(segment: Segment) -> Iterator[Cause]:
    """Queries and keys both not normalised, or turned first; heads each normalised alone."""
    program = segment.program
    norms = [step for step in segment.of(RmsNorm, LayerNorm) if last(step.name) in ("query_norm", "key_norm")]
    for group in groups(norms):
        yield computed("norm-missing", group, lambda _, x, *__: x)
        if any(isinstance(step.op, RmsNormOfHeads) for step in group):
            yield computed(
                "norm-axis/head",
                group,
                lambda step, x, *weights: _norm(Recipe(), step, x, *(w.reshape(x.shape[1], 1, -1) for w in weights)),
            )
    late: list[Step] = []
    for name in dict.fromkeys(s.name for s in program.steps if last(s.name) in ("query_norm", "key_norm")):
        norm = program.step(name)
        for turned in (step for step in program.readers(name) if isinstance(step.op, Rotate)):
            early = replace(turned, name=f"{turned.name}.early", inputs=(norm.inputs[0], *turned.inputs[1:]))
            late += [early, reading(norm, early.name), reading(turned, norm.inputs[0])]
            for scores in program.readers(turned.name):
                own = next((step for step in late if step.name == scores.name), scores)
                late = [step for step in late if step.name != scores.name]
                late.append(reading(own, name, scores.inputs.index(turned.name)))
    yield from _reaching(segment, "norm-place/turned", late)


def _reaching(segment: Segment, key: str, changed: Sequence[Step]) -> Iterator[Cause]:
    """The cause that steps are changed, where the target is computed of any of them."""
    names = {step.name for step in segment.steps}
    if any(step.name in names for step in changed):
        yield cause(key, changed)


# Both sublayers of x (Wang & Komatsuzaki 2021), or one after the other


def parallel_causes(segment: Segment) -> Iterator[Cause]:
    """The feed-forward layer reads x alone, or what the attention has been added to."""
    program, summed = segment.program, {step.name for step in segment.steps}
    is_last = all(program.places.get(name, 0) < program.places[segment.target] for name in segment.given)
    sequence: list[Step] = []
    parallel: list[Step] = []
    for total in (step for step in program.steps if isinstance(step.op, Add) and last(step.name) == "residual"):
        before = program.by_name.get(total.inputs[0])
        if len(total.inputs) == 3:
            between = replace(total, name=f"{total.name}.between", inputs=total.inputs[:2])
            sequence += [between, *_reading_sum(program, total, between)]
        elif total.sublayer.endswith("feed_forward") and before is not None and isinstance(before.op, Add):
            alone = segment.target if before.name in summed and is_last else ""  # then the sum may be what is wrong
            norms = (step for step in program.readers(before.name) if isinstance(step.op, LayerNorm | RmsNorm))
            norms = (step for step in norms if step.name != alone)
            parallel += [reading(step, before.inputs[0]) for step in norms if step.sublayer == total.sublayer]
    yield from _reaching(segment, "sublayers-in-sequence", sequence)
    yield from _reaching(segment, "sublayers-parallel", parallel)


def _reading_sum(program: Program, total: Step, between: Step) -> Iterator[Step]:
    """The feed-forward layer of the sum with the attention, normalised by its own norm or by that of both."""
    for norm in program.readers(between.inputs[0]):
        if isinstance(norm.op, LayerNorm | RmsNorm) and norm.layer == total.layer:
            inside = [step for step in program.readers(norm.name) if step.sublayer == total.sublayer]
            if norm.sublayer == total.sublayer:
                yield reading(norm, between.name)
            elif inside:
                yield replace(norm, name=f"{norm.name}.again", inputs=(between.name, *norm.inputs[1:]))
                yield from (reading(step, f"{norm.name}.again") for step in inside)


# Sums around a sublayer (He et al. 2016)


def residual_causes(segment: Segment) -> Iterator[Cause]:
    """Nothing, twice, or another step of the same shape in place of what enters the sublayer."""
    for group in groups(step for step in segment.of(Add) if last(step.name) == "residual"):
        yield computed("residual-missing", group, lambda _, __, *parts: sum(parts[1:], parts[0]))
        yield computed("residual-twice", group, lambda _, *parts: sum(parts, parts[0]))
        yield computed("sublayer-missing", group, as_it_is)
        # a step before is added, the same number of steps back in all sums
        for names in zip(*(earlier_like(segment.program, step, step.inputs) for step in group), strict=False):
            yield cause("residual-place", map(reading, group, names), name=names[0], right=group[0].inputs[0])


def centred_causes(segment: Segment) -> Iterator[Cause]:
    """Sums written to the residual stream, centred to mean 0: some tools do so when they load a model."""

    def centred(step: Step, *inputs: Array) -> Array:
        result = result_of(step, *inputs)
        return result - result.mean(axis=-1, keepdims=True)

    step = segment.steps[-1]
    if step.axes and step.axes[-1].name == "dimension":
        yield computed("residual-centred", [step], centred)


# A cross-attention whose keys and values are not of the encoder's output (Vaswani et al. 2017, §3.2.3)


def cross_causes(segment: Segment) -> Iterator[Cause]:
    """Keys and values of the decoder itself, or of an earlier step of the encoder."""
    program = segment.program
    steps = [step for step in segment.of(Project) if step.sublayer.endswith("cross_attention")]
    for group in groups(step for step in steps if last(step.name) in ("key", "value")):
        own = [reading(step, program.step(f"{step.sublayer}.query").inputs[0]) for step in group]
        sublayers = {step.sublayer for step in group}
        masks = (step for step in segment.of(Mask) if step.sublayer in sublayers)  # of the encoder, which has no part
        yield cause("cross-source", (*own, *(instead(step, as_it_is) for step in masks)))
        memory = group[0].inputs[0]
        for name in earlier_like(program, program.step(memory)):
            yield cause("cross-source/earlier", (reading(step, name) for step in group), name=name, memory=memory)
