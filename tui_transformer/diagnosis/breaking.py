"""Breaking a model on purpose: one thing computed otherwise, to see what it was good for.

`BREAKS` is the table of them; each is a change of the program, made of operations that explain their cells as all do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.diagnosis.causes.attention import score_scales, tiled
from tui_transformer.diagnosis.causes.cause import altered, passing_on, with_op
from tui_transformer.diagnosis.causes.norms import sublayers
from tui_transformer.diagnosis.causes.ops import DownColumns, MaskAround, NaiveSoftmax, Silent
from tui_transformer.diagnosis.causes.positions import paired_otherwise
from tui_transformer.engine.ops import (
    Context,
    Disentangle,
    DistanceBias,
    Mask,
    RelativeBias,
    Rotate,
    Scale,
    Scores,
    Softmax,
)
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.files import read_toml

Make = Callable[[Trace], Iterable[Step]]
"""The steps in the place of those of their names; new names are computed before what reads them."""


@dataclass(frozen=True)
class Break:
    """Something that is computed otherwise on purpose.

    Attributes:
        name: Its public name, as `no-scale`.
        title: What is done.
        lesson: What to look for: what it was good for.
        absent: What is said of a model in which there is nothing of the kind.
        make: The steps that take the place of others; none where there is nothing to break.
    """

    name: str
    title: str
    lesson: str
    absent: str
    make: Make


def broken(trace: Trace, names: Sequence[str]) -> Trace:
    """A trace of the same inputs in which these things are computed otherwise, one after the other."""
    for each in BREAKS:
        if each.name in names:
            program, steps = trace.program, {step.name: step for step in each.make(trace)}
            new = {name: step for name, step in steps.items() if name not in program.by_name}
            ordered: list[Step] = []
            for old in program.steps:
                step = steps.get(old.name, old)
                ordered += [new.pop(name) for name in step.inputs if name in new]  # right before what reads them first
                ordered.append(step)
            program = Program(tuple(ordered), program.aliases, program.weights, program.givens)
            trace = Trace(program, trace.weights, trace.givens, trace.budget)
    return trace


def fitting(trace: Trace) -> tuple[Break, ...]:
    """The breaks that a model can have."""
    return tuple(each for each in BREAKS if any(True for _ in each.make(trace)))


# What is broken


def _without_positions(trace: Trace) -> Iterator[Step]:
    for step in trace.program.steps:
        if step.name.rpartition(".")[2] == "positions":
            yield with_op(step, Silent(step.op))
        elif isinstance(step.op, Rotate):
            yield passing_on(step, "not turned")
        elif isinstance(step.op, RelativeBias | DistanceBias | Disentangle):
            yield passing_on(step, "nothing added", "score")


def _masks(trace: Trace) -> Iterator[tuple[Step, Mask]]:
    """The masks that hide something."""
    for step in trace.program.steps:
        if isinstance(step.op, Mask):
            padded = step.inputs[3] in trace.givens and not bool(trace.givens[step.inputs[3]].all())
            if step.op.causal or step.op.window is not None or padded:
                yield step, step.op


def _softmaxes(trace: Trace) -> Iterator[Step]:
    """Every softmax of a square of scores."""
    return (step for step in trace.program.steps if isinstance(step.op, Softmax) and step.square)


def _norms_moved(trace: Trace) -> Iterator[Step]:
    both = list(sublayers(trace.program))
    for each in sorted(both, key=lambda each: not each.is_after):
        yield from each.moved()


MAKES: Mapping[str, Make] = {
    "no-scale": lambda trace: (
        with_op(step, Scale(1.0, "(not divided)"))
        for step in score_scales(trace.program, trace.program.steps)
        if isinstance(step.op, Scale) and step.op.factor != 1
    ),
    "no-positions": _without_positions,
    "no-mask": lambda trace: (passing_on(step, "no mask", "score") for step, _ in _masks(trace)),
    "mask-around": lambda trace: (with_op(step, MaskAround(op.causal, op.window)) for step, op in _masks(trace)),
    "causal-mask": lambda trace: (
        altered(step, causal=True)
        for step in trace.program.steps
        if isinstance(step.op, Mask) and not step.op.causal and "cross_attention" not in step.name
    ),
    "norm-place": _norms_moved,
    "rotary-interleaved": lambda trace: (
        paired_otherwise(step) for step in trace.program.steps if isinstance(step.op, Rotate) and step.op.half > 1
    ),
    "keys-tiled": lambda trace: (
        tiled(step)
        for step in trace.program.steps
        if isinstance(step.op, Scores | Context) and 1 < step.op.share < step.shape[0]
    ),
    "softmax-axis": lambda trace: (with_op(step, DownColumns()) for step in _softmaxes(trace)),
    "naive-softmax": lambda trace: (with_op(step, NaiveSoftmax()) for step in _softmaxes(trace)),
}
BREAKS = tuple(
    Break(name, **words, make=MAKES[name])
    for name, words in read_toml(Path(__file__).with_name("breaking.toml"), 1 << 20).items()
)
"""In the order in which they are offered, and made where several are."""
