"""The cache of keys and values: what an attention needs of the tokens before, kept instead of computed again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tui_transformer.engine.backend import Array
from tui_transformer.engine.computation import Watch
from tui_transformer.engine.edits import changed
from tui_transformer.engine.ops import Context, Mask, Op, Scores
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field

KEY, VALUE = "key_kept", "value_kept"
LOGITS = "output.logits"


@dataclass(frozen=True, eq=False)
class Cache:
    """Keys and values of the first `length` tokens (Pope et al. 2022, §3.1). Never changed, only replaced.

    `arrays`: `<attention>.key_kept` and `.value_kept` → B × g × tokens × d_k, on the device.
    """

    arrays: Mapping[str, Array] = field(default_factory=dict)
    length: int = 0

    @property
    def bytes(self) -> int:
        """Bytes that it takes."""
        return sum(int(array.nbytes) for array in self.arrays.values())

    def cut(self, length: int) -> Cache:
        """Of the first `length` tokens only; what is kept of an encoder's output stays."""
        if length >= self.length:
            return self
        if length <= 0:
            return Cache()
        arrays = {name: array if is_cross(name) else array[:, :, :length].copy() for name, array in self.arrays.items()}
        return Cache(arrays, length)


def is_cross(name: str) -> bool:
    """True if keys or values are those of an encoder's output, which do not grow."""
    return ".cross_attention." in name


@by_program
def writes(program: Program) -> bool:
    """True if a model can write on: an attention of it is causal, and it has logits for the next token."""
    causal = any(isinstance(step.op, Mask) and step.op.causal for step in program.steps)
    return causal and LOGITS in program.by_name


def kept_steps(program: Program) -> dict[str, str]:
    """Arrays that have to be kept for the next token → the step or input that it is in.

    The attention of every layer that writes: causal self-attention, and attention to an encoder's output. InputError
    where none is causal, so that the model cannot write on, or it has no logits.
    """
    if not writes(program):
        raise InputError("this model does not write: only a decoder, with logits for the next token, does")
    kept, causal = {}, {step.sublayer for step in program.steps if isinstance(step.op, Mask) and step.op.causal}
    kinds: dict[type[Op], str] = {Scores: KEY, Context: VALUE}
    for step in program.steps:
        kind = kinds.get(type(step.op))
        if kind is not None and (step.sublayer in causal or is_cross(step.name)):
            kept[f"{step.sublayer}.{kind}"] = step.inputs[1]
    return kept


@np.errstate(all="ignore")
def last_logits(trace: Trace, before: Watch | None = None) -> tuple[Array, Mapping[str, Array]]:
    """The logits of the last token (B × 1 × v), and what is kept for the next; `before` is called with every step."""
    steps, head = kept_steps(trace.program), trace.program.step(LOGITS)
    wanted = [trace.program.aliases.get(name, name) for name in (head.inputs[0], *steps.values())]
    trace.keep(wanted)
    trace.compute(trace.plan.names, before)
    states, *arrays = trace.arrays(wanted)
    weights = trace.arrays(head.inputs[1:])
    logits = _edited(trace, head, head.op.forward(trace.backend, states[:, -1:], *weights))  # B × n × d → B × 1 × v
    places = trace.program.places
    for step in trace.program.steps[places[LOGITS] + 1 : places[trace.program.logits] + 1]:
        logits = _edited(trace, step, step.op.forward(trace.backend, logits))  # capped, where the model does so
    return logits, dict(zip(steps, arrays, strict=True))


def _edited(trace: Trace, step: Step, last: Array) -> Array:
    rows, columns = step.shape
    return changed(trace.edits, step.name, trace.backend, last, (range(rows - 1, rows), range(columns)))
