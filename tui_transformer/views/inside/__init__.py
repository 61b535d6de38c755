"""The inside of a cell: its operation drawn with its operands, from the values that the trace holds.

Every operation has a function that says what is drawn; `INSIDES` is the table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from tui_transformer.engine import ops
from tui_transformer.engine.explanation import Explanation, Index
from tui_transformer.engine.trace import Trace
from tui_transformer.records import replace
from tui_transformer.views.inside import attention, rows
from tui_transformer.views.inside.cell import Cell, general
from tui_transformer.views.inside.parts import Inside, Note, Part
from tui_transformer.views.step_view import Labels

Draw = Callable[[Cell], Iterator[Part]]


def inside_of(trace: Trace, name: str, index: Index, labels: Labels, explanation: Explanation | None = None) -> Inside:
    """The inside of a cell of a step, or of a weight, which has none but its value; the index has no batch axis.

    `explanation` has the terms, where it is not the step itself that is explained but its gradient. InputError for a
    cell outside the step.
    """
    working = trace.explain_cell(name, index) if explanation is None else explanation
    name, program = trace.program.aliases.get(name, name), trace.program
    step = program.by_name.get(name)
    own = program.axes(name)
    if step is None or explanation is not None:
        return drawn(Cell(ops.Parameter(), index, working, (), (), own, labels), general)
    sources = tuple(trace.source(each) for each in step.inputs)
    return drawn(Cell(step.op, index, working, sources, tuple(map(program.axes, step.inputs)), own, labels))


def drawn(cell: Cell, draw: Draw | None = None) -> Inside:
    """The inside of a cell, by default drawn as `INSIDES` says; of any other operation, all that it explains."""
    return Inside(cell.explanation, cell.words, tuple((draw or INSIDES.get(type(cell.op), general))(cell)))


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


ACTIVATIONS: tuple[type[ops.Op], ...] = (
    *(ops.Gelu, ops.GeluTanh, ops.QuickGelu, ops.Relu, ops.ReluSquared),
    *(ops.Sigmoid, ops.Silu, ops.ClampedSwish, ops.SoftCap, ops.Tanh),
)
INSIDES: Mapping[type[ops.Op], Draw] = {
    **dict.fromkeys((ops.Add, ops.Changed, ops.Dropout, ops.Gate, ops.ClampedGate), rows.number_by_number),
    ops.Subtract: rows.number_by_number,
    **dict.fromkeys((ops.GatedRelu, ops.Jump, ops.JumpRelu, ops.Largest), rows.by_feature),
    **dict.fromkeys((ops.LayerNorm, ops.LayerNormByHead), rows.centred),
    **dict.fromkeys((ops.RmsNorm, ops.RmsNormOfHeads), rows.by_size),
    ops.UnitLength: rows.to_unit,
    **dict.fromkeys((ops.FromSize, ops.ToSize), rows.sized),
    ops.NormOfSum: rows.of_sum,
    **dict.fromkeys(ACTIVATIONS, rows.activation),
    ops.Embed: rows.embedded,
    ops.MergeHeads: rows.merged,
    **dict.fromkeys((ops.Extend, ops.Parameter, ops.Concat), rows.copied),
    ops.Given: rows.given,
    **dict.fromkeys((ops.Scores, ops.DistanceScores), attention.scores),
    **dict.fromkeys((ops.Linear, ops.Project, ops.Unembed), attention.with_weight),
    ops.Scale: attention.scaled,
    ops.Mask: attention.masked,
    **dict.fromkeys((ops.Softmax, ops.SoftmaxWithSink), attention.shares),
    ops.ExpertWeights: attention.routed,
    ops.Context: attention.context,
    ops.Pool: attention.pooled,
    ops.WeightedExperts: attention.mixed,
    ops.Sinusoid: attention.wave,
    ops.Rotate: attention.turned,
    **dict.fromkeys((ops.Disentangle, ops.DistanceBias, ops.RelativeBias), attention.by_distance),
    ops.OfExpert: of_expert,
}
"""What each operation is drawn by."""
