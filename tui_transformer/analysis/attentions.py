"""Attentions: the attention steps of a program, by stack, kind and layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Softmax, SoftmaxWithSink
from tui_transformer.engine.program import Program, Step
from tui_transformer.errors import InputError

SELF = "self_attention"


@dataclass(frozen=True)
class Attention:
    """One attention step.

    Attributes:
        name: Of the step of weights, heads × queries × keys.
        stack: `encoder` or `decoder`.
        kind: `self_attention` or `cross_attention`.
        layer: Counted from 0.
    """

    name: str
    stack: str
    kind: str
    layer: int
    heads: int
    queries: Axis
    keys: Axis

    @property
    def group(self) -> str:
        """Name that the layers of one stack share: `encoder self-attention`."""
        return f"{self.stack} {self.kind.replace('_', '-')}"

    @property
    def own(self) -> bool:
        """Whether queries and keys are the same sequence; the last keys are then the queries' own tokens."""
        return self.kind == SELF


def is_attention(step: Step | None) -> bool:
    """Whether a step holds attention weights; with a sink, its rows sum to less than 1."""
    return step is not None and step.square and isinstance(step.op, Softmax | SoftmaxWithSink)


def attentions(program: Program, group: str | None = None) -> tuple[Attention, ...]:
    """The attention steps in order of computation; with a group, only those of that stack and kind."""
    steps = (_attention(step) for step in program.steps if is_attention(step))
    return tuple(each for each in steps if group in (None, each.group))


def groups(program: Program) -> tuple[str, ...]:
    """The stacks and kinds of attention that there are, in order."""
    return tuple(dict.fromkeys(each.group for each in attentions(program)))


def chosen_group(program: Program, wanted: str | None) -> str:
    """The group whose name holds all the words of `wanted`; the first one where nothing is wanted.

    Raises:
        InputError: There is no such group, or no attention at all.
    """
    known = groups(program)
    if not known:
        raise InputError("this model has no attention")
    words = (wanted or "").lower().replace("_", "-").replace("-", " ").split()
    fitting = [group for group in known if set(words) <= set(group.replace("-", " ").split())]
    if not fitting:
        raise InputError(f"there is no {wanted} here: choose {' or '.join(known)}")
    return fitting[0]


def in_layer(steps: Sequence[Attention], layer: int | None) -> tuple[Attention, ...]:
    """The steps of one layer, or all where none is named.

    Raises:
        InputError: There is no such layer.
    """
    chosen = tuple(each for each in steps if layer in (None, each.layer))
    if not chosen:
        raise InputError(f"there is no layer {layer}: layers are 0 to {steps[-1].layer}")
    return chosen


def _attention(step: Step) -> Attention:
    stack, layer, kind = step.sublayer.split(".")[:3]
    heads, queries, keys = step.axes
    return Attention(step.name, stack, kind, int(layer), heads.size, queries, keys)
