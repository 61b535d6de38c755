"""How one cell of a gradient was made: the chain rule written out, one term for every step that reads the value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tui_transformer.engine.axis import Region, slices, whole, within
from tui_transformer.engine.backend import Host
from tui_transformer.engine.edits import Change, changes_of, widened
from tui_transformer.engine.explanation import Explanation, Index, Item, Source, Sum, Value, Working
from tui_transformer.engine.gradient import NOT_COUNTED, Gradients
from tui_transformer.engine.number_format import bracketed, equation_of, spoken
from tui_transformer.engine.ops.base import EXACT
from tui_transformer.engine.program import Step, check_index
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError

GRADIENT = "gradient/"
"""Prefix of the name of a step or weight that means its gradient."""

AT_LOGITS = "(p − 1 at the target) ÷ counted positions"
SEVERAL = "Σ over the steps that read it"


@np.errstate(all="ignore")
def explain_gradient(
    trace: Trace, gradients: Gradients, targets: Sequence[int], name: str, index: Index, item: int = 0
) -> Explanation:
    """The terms of one cell of ∂loss/∂name, worked out again in float64 from the values and gradients that are held.

    Args:
        trace: The forward pass.
        gradients: Its gradients.
        targets: The token ID that is right at every position, of this item of the batch; −1 = not counted. Of another
            scalar than the loss they do not matter.
        name: A step or weight that has a gradient.
        index: Its cell, without a batch axis.
        item: Which sentence of the batch. A weight collects the gradients of all of them.

    Raises:
        InputError: There is no such gradient or cell.
    """
    name = trace.program.named(name)
    if name not in gradients.values:
        raise InputError(f"{name} has no gradient: the loss does not depend on it, or it depends on no weight")
    check_index(trace.program, name, index)
    shared = name in trace.program.weights
    stored = float(_item(trace, name, gradients.values[name], item)[index])
    if gradients.start is not None and name == trace.program.step(gradients.start.name).name:
        slope = float(gradients.start.slope[index])
        working, formula = (
            Working((Value("∂", slope, note=f"of {gradients.start.description}"),), slope),
            gradients.start.formula,
        )
    elif gradients.start is None and name == trace.program.logits:
        working, formula = _from_loss(trace, targets, gradients.counted, index, item), AT_LOGITS
    else:
        items = range(trace.batch) if shared else (item,)
        terms = [
            (step, toward, _through(trace, gradients.values, step, toward, index, each))
            for each in items
            for step, toward in _readers(trace, gradients.values, name)
        ]
        working, formula = _together(terms)
    return Explanation(
        f"{GRADIENT}{name}", index, formula, working.items, working.result, stored, equation=equation_of(working)
    )


def _from_loss(trace: Trace, targets: Sequence[int], count: int, index: Index, item: int) -> Working:
    """The loss is the mean of −log p of the targets: its gradient is the share less 1 at the target, over the count."""
    row, column = index
    target = targets[row]
    if target == NOT_COUNTED:
        return Working((Value("target", target, note="−1: this position is not counted"),), 0.0)
    line = trace.source(trace.program.logits, item, math.inf).factor(row, None)
    top = float(line.values.max())
    total = Sum("Σ e^(z − max)", (line,), np.exp(line.values - top), "e^(z−max)")
    share = float(total.contributions[column]) / total.total
    here = float(column == target)
    items = (
        total,
        Value("p", share, line.operand(column), "e^(z − max) ÷ Σ"),
        Value("− target", here, note="1: this is the target" if here else f"0: the target is {target}"),
        Value("÷ counted", count, note="positions in the mean"),
    )
    return Working(items, (share - here) / count, equation=f"({spoken(share)} − {spoken(here)}) ÷ {count}")


def gradient_formula(trace: Trace, gradients: Gradients, name: str) -> str:
    """How the gradient of a step or weight is made from those of the steps that read it."""
    name = trace.program.named(name)
    if gradients.start is not None and name == trace.program.step(gradients.start.name).name:
        return gradients.start.formula
    if gradients.start is None and name == trace.program.logits:
        return AT_LOGITS
    formulas = [step.op.gradient_formula(toward) for step, toward in _readers(trace, gradients.values, name)]
    return formulas[0] if len(formulas) == 1 else SEVERAL if formulas else "0"


def _readers(trace: Trace, values: Mapping[str, Host], name: str) -> Iterator[tuple[Step, int]]:
    """The steps that read a value and that the loss depends on, and as which of their inputs they do."""
    for step in trace.program.readers(name):
        if step.name in values:
            inputs = step.inputs[:-1] if step.op.sparse else step.inputs  # the last only chooses rows
            yield from ((step, toward) for toward, source in enumerate(inputs) if source == name)


Term = tuple[Step, int, Working]
"""A step that reads the value, as which of its inputs, and what it adds to the gradient."""


def _together(terms: Sequence[Term]) -> tuple[Working, str]:
    """The sum of the terms; where there are several, each begins with a line of its own."""
    if not terms:
        return Working((Value("", 0.0, note="no step that the loss depends on reads it: 0"),), 0.0), "0"
    if len(terms) == 1:
        step, toward, working = terms[0]
        return working, step.op.gradient_formula(toward)
    items: list[Item] = []
    for step, toward, working in terms:
        items += [Value("+", working.result, note=f"via {step.name}: {step.op.gradient_formula(toward)}")]
        items += working.items
    results = [working.result for _, _, working in terms]
    equation = " + ".join([spoken(results[0]), *map(bracketed, results[1:])])
    return Working(tuple(items), sum(results), equation=equation), SEVERAL


def _through(trace: Trace, values: Mapping[str, Host], step: Step, toward: int, index: Index, item: int) -> Working:
    """Gradient that reaches a cell through one step; cells of it that were set by hand pass nothing on."""
    before, by_hand, at = trace, list[Change](), item
    if any(change.name == step.name for change in trace.edits):
        alone, at = trace.sentence(item), 0
        by_hand = [change for change in alone.edits if change.name == step.name]
        before = (alone.base or alone).edited([change for change in alone.edits if change not in by_hand])
    array = _item(trace, step.name, values[step.name], item)

    def read(region: Region) -> Host:
        wide = widened(by_hand, step.name, region)
        part = array[slices(wide)[1:]].astype(np.float64)
        for change in reversed(changes_of(by_hand, step.name, wide)):
            change.pass_back(EXACT, part, wide)
        return part[within(region, wide)[1:]]

    gradient = Source(f"{GRADIENT}{step.name}", array.shape, read)
    output = before.source(step.name, at, math.inf)
    sources = [trace.source(source, item, math.inf) for source in step.inputs]
    working = step.op.explain_backward(index, toward, gradient, output, *sources)
    if working is not None:
        return working
    # The operation does not write its terms out: by the backward pass itself.
    names, weights = (step.name, *step.inputs), trace.program.weights
    arrays = zip(names, before.arrays(names), strict=True)
    made, *inputs = (array if name in weights else array[at : at + 1] for name, array in arrays)
    start = trace.backend.floats(gradient.read(whole(gradient.shape)))[None]
    toward_input = step.op.backward(trace.backend, start, made, *inputs)[toward]
    if toward_input is None:
        raise ValueError(f"{step.name} passes no gradient to {step.inputs[toward]}")
    cell = float(toward_input[index if step.inputs[toward] in weights else (0, *index)])
    return Working((Value("∂", cell, note=f"by {step.name}"),), cell)


def _item(trace: Trace, name: str, array: Host, item: int) -> Host:
    return array if name in trace.program.weights or trace.batch == 1 else array[item]


def has_gradient(trace: Trace) -> tuple[str, ...]:
    """The names of everything that the loss depends on and that depends on a weight, in the order of backward steps."""
    program = trace.program
    if not program.logits:
        return ()
    learned, wanted, names = program.downstream(program.weights), {program.logits}, []
    for step in reversed(program.steps[: program.places[program.logits] + 1]):
        if step.name in wanted:
            names.append(step.name)
            wanted.update(source for source in step.inputs if source in learned)
    return (*names, *(name for name in program.weights if name in wanted))
