"""Weights read, exchanged or left out wrongly, other factors, caps, activations, gates and experts, shifted labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from tui_transformer.diagnosis.causes.attention import factor_of, hidden_as
from tui_transformer.diagnosis.causes.cause import (
    MOST_ALONE,
    Cause,
    Change,
    Function,
    Segment,
    altered,
    as_it_is,
    cause,
    computed,
    groups,
    instead,
    result_of,
    transposed,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import Times
from tui_transformer.diagnosis.naming.words import kind, last
from tui_transformer.diagnosis.reference_values import CrossEntropy
from tui_transformer.engine import ops
from tui_transformer.engine.backend import Array
from tui_transformer.engine.program import Step
from tui_transformer.generation.sampling import softmax
from tui_transformer.records import replace

MATRIX, BIAS = 1, 2
"""Places among the inputs of a linear step."""


def linear_causes(segment: Segment) -> Iterator[Cause]:
    """Without biases, or with every bias added twice; every matrix of a segment transposed, one kind, one alone."""
    linear = segment.of(ops.Linear, ops.Project)
    biased = (step for step in segment.of(ops.Linear, ops.Project, ops.Unembed) if len(step.inputs) > BIAS)
    for group in groups(biased):
        names = _named(group, "bias")
        yield cause("bias-missing", (replace(step, inputs=step.inputs[:BIAS]) for step in group), names=names)
        yield computed("bias-twice", group, lambda step, x, w, b: result_of(step, x, w, 2 * b), names=names)
    for group in groups(linear):
        change = Change(weights={step.inputs[MATRIX]: transposed for step in group})
        yield cause("weight-transposed", change, names=_named(group, "weight"))


def _named(group: tuple[Step, ...], part: str) -> str:
    kinds = list(dict.fromkeys(last(step.name) for step in group))
    if len(kinds) > 3:
        layers = len({kind(step.name) for step in group}) < len(group)
        return f"every {part} is" + (" (of all layers)" * layers)
    names = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} and {kinds[-1]}"
    return f"the {part} of {names} is"


def exchange_causes(segment: Segment) -> Iterator[Cause]:
    """Matrices in the place of others: of the same sublayer, of another layer; none at all."""
    program, steps = segment.program, segment.of(ops.Project)
    if len(steps) > 3 * MOST_ALONE:
        return
    for first in (*steps, *(step for step in segment.of(ops.Linear) if step.name == segment.target)):
        for second in program.steps:
            beside = second.sublayer == first.sublayer and second.name != first.name
            alike = type(second.op) is type(first.op) and second.shape == first.shape
            if not (beside and alike and len(first.inputs) == len(second.inputs)):
                continue
            if isinstance(first.op, ops.Project) or first.inputs[0] == second.inputs[0]:
                words = {"other": last(second.name), "own": last(first.name)}
                yield cause("weight-exchanged", [_weighted_as(first, second)], **words)
    # two matrices of every attention that took each other's place, where neither product is in the dump
    pairs: dict[tuple[str, str], list[Step]] = {}
    for first, second in combinations(steps, 2):
        if first.sublayer == second.sublayer and first.shape == second.shape and first.inputs[0] == second.inputs[0]:
            swapped = _weighted_as(first, second), _weighted_as(second, first)
            pairs.setdefault((last(first.name), last(second.name)), []).extend(swapped)
    for (one, other), both in pairs.items():
        yield cause("weight-exchanged/pair", both, one=one, other=other)
    first_layer = {name: re.sub(r"^(encoder|decoder)\.\d+\.", r"\1.0.", name) for name in segment.weights}
    repeated = {name: other for name, other in first_layer.items() if other != name and other in program.weights}
    if repeated:
        every = [replace(s, inputs=tuple(repeated.get(name, name) for name in s.inputs)) for s in segment.steps]
        yield cause("layer-repeated", (s for s in every if s not in segment.steps))
    # the projection of the joined heads, which has the width that they have
    outputs = [step for step in segment.of(ops.Linear) if step.name.endswith("attention.output")]
    sizes = {step.name: {axis.size for axis in program.weights[step.inputs[MATRIX]]} for step in outputs}
    for group in groups(step for step in outputs if len(sizes[step.name]) == 1):
        yield computed("projection-missing", group, as_it_is)


def norm_exchange_causes(segment: Segment) -> Iterator[Cause]:
    """The weights of another norm of the layer; of which, is said where there are several."""
    program = segment.program
    norms = [step for step in program.steps if isinstance(step.op, ops.LayerNorm | ops.RmsNorm)]
    fitting: dict[str, list[Step]] = {}
    for step in segment.of(ops.LayerNorm, ops.RmsNorm):
        others = [each for each in norms if each.layer == step.layer and each.name != step.name]
        shapes = [program.shape(name) for name in step.inputs[1:]]
        fitting[step.name] = [each for each in others if [program.shape(name) for name in each.inputs[1:]] == shapes]
    for group in groups(segment.of(ops.LayerNorm, ops.RmsNorm)):
        if only := [step for step in group if len(fitting[step.name]) == 1]:
            yield cause("weight-exchanged/norm", [_weighted_as(step, fitting[step.name][0]) for step in only])
        alike = len({kind(step.name) for step in group}) == 1 and len(only) < len(group)
        for each in zip(*(fitting[step.name] for step in group), strict=False) if alike else ():
            own, other = (step.name.removeprefix(f"{step.layer}.") for step in (group[0], each[0]))
            changed = [_weighted_as(*pair) for pair in zip(group, each, strict=True)]
            yield cause("weight-exchanged", changed, other=other, own=own)


def _weighted_as(step: Step, other: Step) -> Step:
    return replace(step, inputs=(step.inputs[0], *other.inputs[1:]))


def layer_causes(segment: Segment) -> Iterator[Cause]:
    """The steps after the layers read the last layer but one."""

    def before(name: str) -> str:
        at = re.fullmatch(r"(\w+)\.(\d+)\.(.+)", name)
        earlier = f"{at[1]}.{int(at[2]) - 1}.{at[3]}" if at else name
        return earlier if earlier in segment.program.by_name else name

    after = [step for step in segment.steps if kind(step.name) == step.name]
    changed = [replace(step, inputs=tuple(map(before, step.inputs))) for step in after]
    if changed != after:
        yield cause("layer-missing", (step for step in changed if step not in after))


# Queries, keys and values that one matrix makes, cut otherwise


def fused_causes(segment: Segment) -> Iterator[Cause]:
    """Cut into thirds where every head has its own three, or the other way round."""
    program, sublayers = segment.program, dict.fromkeys(step.sublayer for step in segment.steps)
    every = [[program.by_name.get(f"{at}.{part}") for part in ("query", "key", "value")] for at in sublayers]
    for by_heads in (False, True):
        changed: list[Step] = []
        for three in ([step for step in parts if step is not None] for parts in every):
            if len(three) == 3 and len({step.inputs[0] for step in three}) == 1:
                whole = [replace(step, name=f"{step.name}.uncut") for step in three]
                columns = _columns_of(three, by_heads=by_heads)
                cut = (replace(s, inputs=tuple(each.name for each in whole)) for s in three)
                changed += [*whole, *(instead(s, partial(_cut, c)) for s, c in zip(cut, columns, strict=True))]
        yield cause(f"qkv-cut/{'heads' if by_heads else 'thirds'}", changed)


def _columns_of(three: Sequence[Step], *, by_heads: bool) -> list[Array]:
    """Of query, key and value, the columns that are read, where each part lies whole, one after the other."""
    counts, width = [step.shape[0] for step in three], three[0].shape[-1]
    ends = np.cumsum(counts)[:-1]
    heads = [part.reshape(counts[1], -1) for part in np.split(np.arange(sum(counts)), ends)]  # with each key, its own
    order = np.concatenate(heads, axis=1).ravel()
    order = np.argsort(order) if by_heads else order
    return np.split(np.add.outer(order * width, np.arange(width)).ravel(), ends * width)


def _cut(columns: Array, _: Step, *whole: Array) -> Array:
    batch, _, rows, width = whole[0].shape
    side_by_side = np.concatenate([each.swapaxes(1, 2).reshape(batch, rows, -1) for each in whole], axis=-1)
    return side_by_side[..., columns].reshape(batch, rows, -1, width).swapaxes(1, 2)


# Factors of a family: of what a sublayer adds, and of the logits


def multiplier_causes(segment: Segment) -> Iterator[Cause]:
    """Not multiplied, or divided."""
    for name, what in (("output_scaled", "what a sublayer adds"), ("scaled", "the logits"), ("logits", "the logits")):
        steps = [step for step in segment.of(ops.Scale, ops.Unembed) if last(step.name) == name]
        for group in groups(step for step in steps if name == "output_scaled" or step.name.startswith("output.")):
            factor = getattr(group[0].op, "factor", 1.0) * getattr(group[0].op, "scale", 1.0)
            for key, power in (("multiplier-missing", 1), ("multiplier-divided", 2)) if factor != 1.0 else ():
                changed = (with_op(step, Times(step.op, factor**-power)) for step in group)
                yield cause(key, changed, what=what, factor=factor)


CAPS = (30.0, 50.0)
"""Those of Gemma 2: of its logits, and of its scores."""


def cap_causes(segment: Segment) -> Iterator[Cause]:
    """Scores or logits as they are, in place of c · tanh(x ÷ c) (Gemma Team 2024, §2); another c, another place."""
    for group in groups(segment.of(ops.SoftCap)):
        yield computed("cap-missing", group, as_it_is)
        cap = getattr(group[0].op, "cap", 1.0)
        yield computed("cap-factor-missing", group, lambda step, x, cap=cap: result_of(step, x) / cap, cap=cap)
        others = dict.fromkeys((*CAPS, *(s.op.cap for s in segment.program.steps if isinstance(s.op, ops.SoftCap))))
        for other in (other for other in others if other != cap):
            yield cause("cap-other", (altered(step, cap=other) for step in group), other=other, cap=cap)
        factor = factor_of(segment, group[0])
        if factor != 1.0:
            early = partial(lambda by, step, x: by * result_of(step, x / by), factor)
            yield computed("cap-place/scaled", group, early)
        masks = [step for step in segment.of(ops.Mask) if step.inputs[0] in {each.name for each in group}]
        late = [instead(step, partial(_capped_late, segment.program.step(step.inputs[0]))) for step in masks]
        if late:
            yield cause("cap-place/masked", (*(instead(step, as_it_is) for step in group), *late))


def _capped_late(cap: Step, mask: Step, scores: Array, *rest: Array) -> Array:
    return result_of(cap, hidden_as(-np.inf, 0, mask, scores, *rest))


# Activations and gates

ACTIVATIONS: Mapping[str, tuple[str, ops.Op]] = {
    "gelu-tanh": ("GELU by tanh", ops.GeluTanh()),
    "gelu-erf": ("GELU by erf", ops.Gelu()),
    "relu": ("ReLU", ops.Relu()),
    "silu": ("SiLU", ops.Silu()),
}
OTHERS: Mapping[str, Function] = {
    "x · sigmoid(1.702 x), the quick GELU": lambda _, x: x / (1.0 + np.exp(-1.702 * x)),
    "sigmoid": lambda _, x: 1.0 / (1.0 + np.exp(-x)),
    "tanh": lambda _, x: np.tanh(x),
    "leaky ReLU (0.01)": lambda _, x: np.where(x > 0, x, 0.01 * x),
    "no activation": as_it_is,
}


def activation_causes(segment: Segment) -> Iterator[Cause]:
    """GELU by the other formula, another function, none; the activation once more after the second product."""
    kinds = tuple(type(op) for _, op in ACTIVATIONS.values())
    for group in groups(segment.of(*kinds)):
        own = type(group[0].op)
        wanted = next(words for words, op in ACTIVATIONS.values() if type(op) is own)
        for name, (words, op) in ACTIVATIONS.items():
            if type(op) is not own:
                both = {type(op), own} == {ops.Gelu, ops.GeluTanh}
                other = (with_op(step, op) for step in group)
                yield cause(name if both else "activation", other, words=words, wanted=wanted)
        for words, function in OTHERS.items():
            yield computed("activation", group, function, words=words, wanted=wanted)
    for group in groups(step for step in segment.steps if step.name.endswith("feed_forward.output")):
        active = segment.program.by_name.get(group[0].name.replace(".output", ".activation"))
        if active is not None and isinstance(active.op, kinds):
            for op in dict.fromkeys((active.op, ops.Relu())):
                yield computed(
                    "activation-last", group, lambda s, *x, op=op: result_of(with_op(s, op), result_of(s, *x))
                )


def gate_causes(segment: Segment) -> Iterator[Cause]:
    """The activation of the product that is to be gated, in place of that of the gate."""
    program, target = segment.program, segment.steps[-1]
    for gate in program.readers(target.name):  # the activation itself, where it is in the dump
        if isinstance(gate.op, ops.Gate) and len(gate.inputs) == 2 and gate.inputs[0] == target.name:
            yield cause("gate-swapped", [replace(target, inputs=(gate.inputs[1],))])
    for group in groups(segment.of(ops.Gate)):
        changed = []
        for step in group:
            active = program.by_name.get(step.inputs[0])
            if active is None or len(step.inputs) != 2:
                return
            swapped = instead(step, lambda _, gate, up, active=active: gate * result_of(active, up))
            changed.append(replace(swapped, inputs=(active.inputs[0], step.inputs[1])))
        yield cause("gate-swapped", changed)
        yield computed("gate-missing", group, as_it_is)


# Experts: how many a token chooses, and what their shares add up to (Shazeer et al. 2017, §2.1)


def expert_causes(segment: Segment) -> Iterator[Cause]:
    """Shares over all experts or the chosen, more or fewer of them, the smallest instead of the largest."""
    for group in groups(segment.of(ops.ExpertWeights)):
        count, op = group[0].shape[-1], group[0].op
        chosen, among = getattr(op, "chosen", 0), getattr(op, "among_chosen", False)
        other = (altered(step, among_chosen=not among) for step in group)
        yield cause(f"experts-shares/{'chosen' if among else 'all'}", other)
        for number in (each for each in (count, chosen - 1, chosen + 1) if 0 < each <= count and each != chosen):
            yield cause("experts-count", (altered(s, chosen=number) for s in group), number=number, chosen=chosen)
        for words, function in SHARES.items():
            yield computed("experts-gate", group, function, words=words)
        yield computed("experts-smallest", group, _of_smallest)
        yield computed("experts-smallest", group, lambda step, logits: result_of(step, -logits))

    shared = [step for step in segment.steps if last(step.name) == "weighted"]
    for group in groups(step for step in segment.of(ops.Add) if {s.name for s in shared} & {*step.inputs}):
        yield computed("experts-shared-missing", group, as_it_is)
    for group in groups(shared):
        yield computed("experts-shared-gate-missing", group, lambda _, __, output: output)


def _chosen(step: Step, logits: Array, shares: Array, *, among: bool) -> Array:
    """Shares of the chosen, which add up to 1 or not; of the others 0."""
    kept = np.where(result_of(step, logits) != 0.0, shares, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True) if among else kept


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


SHARES: Mapping[str, Function] = {
    "sigmoids that add up to 1": lambda s, x: _chosen(s, x, _sigmoid(x), among=True),
    "sigmoids of their logits": lambda s, x: _chosen(s, x, _sigmoid(x), among=False),
    "all equal": lambda s, x: _chosen(s, x, np.ones_like(x), among=True),
    "their logits": lambda s, x: _chosen(s, x, x, among=False),
    "a softmax of a softmax": lambda s, x: _chosen(s, x, np.exp(softmax(x)), among=True),
}


def _of_smallest(step: Step, logits: Array) -> Array:
    chosen, among = getattr(step.op, "chosen", 0), getattr(step.op, "among_chosen", False)
    taken = np.zeros_like(logits)
    np.put_along_axis(taken, np.argsort(logits, axis=-1)[..., :chosen], 1.0, axis=-1)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers * taken / (powers * taken if among else powers).sum(axis=-1, keepdims=True)


# Logits that are divided, and labels that are shifted once too often, or not at all


def logits_causes(segment: Segment) -> Iterator[Cause]:
    """Divided as scores are, by √d_k, or by √d_model."""
    sizes = {axis.name: axis.size for step in segment.program.steps for axis in step.axes}
    for step in (step for step in segment.steps if step.name == segment.program.logits):
        for name, axis in (("d_model", "dimension"), ("d_k", "head width")):
            if (size := sizes.get(axis, 1)) != 1:
                yield cause("logits-scaled", [with_op(step, Times(step.op, size**-0.5))], by=f"√{name} = √{size}")


def label_causes(segment: Segment) -> Iterator[Cause]:
    """The loss with labels shifted otherwise."""
    for step in segment.steps:
        for shift in (0, 1, 2, -1) if isinstance(step.op, CrossEntropy) else ():
            if CrossEntropy(shift) != step.op:
                yield cause(f"label-shift/{shift}", [with_op(step, CrossEntropy(shift))])
