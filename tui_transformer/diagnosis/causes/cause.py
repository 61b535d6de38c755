"""A cause: a change of the program that somebody may have made by mistake, and how it is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tui_transformer.diagnosis.evaluation import Change, Segment
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend, Host, choose_backend
from tui_transformer.engine.explanation import Index, Source, Working
from tui_transformer.engine.ops import Op
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.program import Step

MOST_ALONE = 8
"""So many steps of a kind are tried one at a time; more, only together."""


@dataclass(frozen=True)
class Cause:
    """A mistake that may have been made.

    Attributes:
        name: Its public name, as `scale-d_model`.
        change: What it makes of the program.
        says: When a step matches with it, and what to mend: the end of a sentence that begins with "It matches".
    """

    name: str
    change: Change
    says: str


Function = Callable[..., Array]
"""A result from the inputs of a step, with batch axes; weights have none."""

CPU = choose_backend("cpu", "float64", small=True)
"""Where causes are tried."""

Causes = Callable[[Segment], Iterable[Cause]]
"""The causes of a kind that the steps of a segment may have."""


@dataclass(frozen=True)
class Instead(Op):
    """An operation that was put in the place of another; computed forward alone.

    Attributes:
        of: What it stands for; the axes are those of that.
        function: The result from the inputs (arrays with a batch axis).
        count: So many inputs are those of the right operation.
    """

    of: Op
    function: Function = field(compare=False)
    count: int | None = None

    @property
    def formula(self) -> str:
        """That of the right operation."""
        return self.of.formula

    def axes(self, *inputs: Axes) -> Axes:
        """Those of the right operation."""
        return self.of.axes(*inputs[: self.count])

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        """The result of the function."""
        del backend, out
        return self.function(*inputs)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """A mistake is not learned from."""
        raise NotImplementedError

    def explain(self, index: Index, *sources: Source) -> Working:
        """The right operation is explained, not this."""
        raise NotImplementedError


def with_op(step: Step, op: Op) -> Step:
    """The step with another operation on the same inputs."""
    return replace(step, op=op)


def instead(step: Step, function: Function) -> Step:
    """The step, computed by a function of the same inputs."""
    return replace(step, op=Instead(step.op, function))


def around(step: Step, function: Callable[..., tuple[Array, ...]]) -> Step:
    """The step on other values of its inputs, which a function makes of them."""
    return instead(step, lambda *inputs: step.op.forward(CPU, *function(*inputs)))


def changing(steps: Iterable[Step]) -> Change:
    """Steps in the place of those of their names."""
    return Change({step.name: step for step in steps})


def kind(name: str) -> str:
    """The name without the number of its layer: steps of one kind come from one line of code."""
    return re.sub(r"\.\d+\.", ".*.", name)


def groups(steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """Steps that one mistake in the code reaches: all, those of the layers, those of each kind, each alone."""
    seen: set[tuple[str, ...]] = set()
    kinds = dict.fromkeys(kind(step.name) for step in steps)
    alone = [(step,) for step in steps] if len(steps) <= MOST_ALONE else []
    layers = tuple(step for step in steps if kind(step.name) != step.name)
    for group in (tuple(steps), layers, *(tuple(s for s in steps if kind(s.name) == each) for each in kinds), *alone):
        names = tuple(step.name for step in group)
        if group and names not in seen:
            seen.add(names)
            yield group


def transposed(weight: Host) -> Host:
    """A matrix that lies out × in and is taken for in × out, or the other way round."""
    turned: Host = weight.T.reshape(weight.shape)
    return turned


def last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]
