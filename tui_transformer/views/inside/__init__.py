"""The inside of a cell: its operation drawn with its operands, from the values that the trace holds.

Every operation has a function that says what is drawn; `INSIDES` is the table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from tui_transformer.engine import ops
from tui_transformer.engine.explanation import Explanation, Index
from tui_transformer.engine.trace import Trace
from tui_transformer.views.inside import attention, curves, lookups, norms, places, products, sums
from tui_transformer.views.inside.cell import Cell
from tui_transformer.views.inside.general import general
from tui_transformer.views.inside.parts import Inside, Note, Part
from tui_transformer.views.step_view import Labels

Draw = Callable[[Cell], Iterator[Part]]


def of_expert(cell: Cell) -> Iterator[Part]:
    """As the operation of the expert, where the token chose it."""
    op = cast(ops.OfExpert, cell.op)
    if not cell.sources[-1].cell(cell.index[0], op.expert):
        yield Note(f"The token did not choose expert {op.expert}: nothing is computed, the row is 0.")
        yield from general(cell)
        return
    yield Note(f"Only the tokens that chose expert {op.expert} are computed.")
    inner = replace(cell, op=op.op, sources=cell.sources[:-1], axes=cell.axes[:-1])
    yield from INSIDES[type(inner.op)](inner)


INSIDES: Mapping[type[ops.Op], Draw] = {
    ops.Add: sums.added,
    ops.ClampedGate: sums.gated,
    ops.ClampedSwish: curves.activation,
    ops.Context: attention.context,
    ops.Disentangle: places.by_distance,
    ops.DistanceBias: places.by_distance,
    ops.DistanceScores: products.scores,
    ops.Dropout: sums.dropped,
    ops.Embed: lookups.embedded,
    ops.ExpertWeights: attention.routed,
    ops.Extend: lookups.copied,
    ops.Gate: sums.gated,
    ops.Gelu: curves.activation,
    ops.GeluTanh: curves.activation,
    ops.Given: lookups.given,
    ops.LayerNorm: norms.centred,
    ops.LayerNormByHead: norms.centred,
    ops.Linear: products.with_weight,
    ops.Mask: attention.masked,
    ops.MergeHeads: lookups.merged,
    ops.NormOfSum: norms.of_sum,
    ops.OfExpert: of_expert,
    ops.Parameter: lookups.copied,
    ops.Pool: attention.pooled,
    ops.Project: products.with_weight,
    ops.QuickGelu: curves.activation,
    ops.RelativeBias: places.by_distance,
    ops.Relu: curves.activation,
    ops.ReluSquared: curves.activation,
    ops.RmsNorm: norms.by_size,
    ops.RmsNormOfHeads: norms.by_size,
    ops.Rotate: places.turned,
    ops.Scale: attention.scaled,
    ops.Scores: products.scores,
    ops.SideBySide: lookups.copied,
    ops.Sigmoid: curves.activation,
    ops.Silu: curves.activation,
    ops.Sinusoid: places.wave,
    ops.SoftCap: curves.activation,
    ops.Softmax: attention.shares,
    ops.SoftmaxWithSink: attention.shares,
    ops.Tanh: curves.activation,
    ops.Unembed: products.words,
    ops.UnitLength: norms.to_unit,
    ops.WeightedExperts: attention.mixed,
}
"""The parts that each operation is drawn with."""


def drawn(cell: Cell) -> Inside:
    """The inside of a cell; of an operation that is not in the table, all that it explains."""
    explanation = cell.explanation
    parts = tuple(INSIDES.get(type(cell.op), general)(cell))
    return _inside(explanation, cell.words, parts)


def inside_of(trace: Trace, name: str, index: Index, labels: Labels, explanation: Explanation | None = None) -> Inside:
    """The inside of a cell of a step.

    Args:
        trace: Its values.
        name: The step, or a weight, which has no inside but its value.
        index: The cell, without the batch axis.
        labels: Words for the indices.
        explanation: The terms, where it is not the step itself that is explained but its gradient.

    Raises:
        InputError: The cell is outside the step.
    """
    working = trace.explain_cell(name, index) if explanation is None else explanation
    name, program = trace.program.aliases.get(name, name), trace.program
    step = program.by_name.get(name)
    own = program.axes(name)
    if step is None or explanation is not None:
        cell = Cell(ops.Parameter(), index, working, (), (), own, labels)
        return _inside(working, cell.words, tuple(general(cell)))
    sources = tuple(trace.source(each) for each in step.inputs)
    return drawn(Cell(step.op, index, working, sources, tuple(map(program.axes, step.inputs)), own, labels))


def _inside(working: Explanation, words: str, parts: tuple[Part, ...]) -> Inside:
    return Inside(working.name, words, working.formula, parts, working.recomputed, working.stored, working.edited)
