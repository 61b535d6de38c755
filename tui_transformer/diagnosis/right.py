"""The right values of every step in float64, how far float32 is from them, and which cells count."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.causes.loss import LABELS, LOSS, CrossEntropy
from tui_transformer.diagnosis.dumps.precision import FLOAT32_UNIT, Precision
from tui_transformer.diagnosis.evaluation import largest_difference
from tui_transformer.engine.backend import Host, choose_backend
from tui_transformer.engine.ops import Mask, Softmax, SoftmaxWithSink
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.model import Model

VISIBLE = "input.visible"
SPREAD = 16.0
"""Another order of the same sums is as far as this many times the noise of one order, at most."""

HIDING = (Mask, Softmax, SoftmaxWithSink)
"""Operations whose results show whether keys are hidden."""

LEAST = 4.0
"""Roundings of a value itself that are always granted."""


@dataclass(frozen=True, eq=False)
class Input:
    """The input of a model.

    Attributes:
        ids: Token IDs, batch × tokens.
        decoder_ids: Those of a decoder beside an encoder.
        segments: The segment of every token.
        mask: True where a token is real, batch × tokens; by default all but pad IDs at both ends.
        labels: Labels of a loss, batch × tokens; negative ones are not counted.
        shift: The logits of position i predict label i + shift.
    """

    ids: Host | None
    decoder_ids: Host | None = None
    segments: Host | None = None
    mask: Host | None = None
    labels: Host | None = None
    shift: int = 0


@dataclass(frozen=True, eq=False)
class Right:
    """The right values.

    Attributes:
        exact: In float64.
        rough: In float32.
    """

    exact: Trace
    rough: Trace
    _noise: dict[str, float] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        """The steps."""
        return self.exact.program

    @property
    def batch(self) -> int:
        """How many sentences."""
        return self.exact.batch

    def value(self, step: str) -> Host:
        """The right value, with its batch axis."""
        array: Host = self.exact.array(step)
        return array

    def noise(self, step: str) -> float:
        """Largest difference between float32 and float64, and at least a few roundings of the largest value."""
        if step not in self._noise:
            exact, rough = self.value(step), self.rough.array(step)
            finite = np.abs(exact[np.isfinite(exact)])
            least = LEAST * FLOAT32_UNIT * float(finite.max()) if finite.size else 0.0
            self._noise[step] = max(largest_difference(rough, exact), least)
        return self._noise[step]

    def granted(self, step: str, precision: Precision) -> float:
        """Noise that is granted to values that were computed in a precision."""
        return SPREAD * self.noise(step) * max(1.0, precision.unit / FLOAT32_UNIT)

    def shares(self, step: str) -> bool:
        """Whether rows are probabilities."""
        return isinstance(self.program.by_name[step].op, Softmax)

    def counted(self, step: str) -> Host | None:
        """True where a step is compared: not at padding. None where there is none.

        Keys that are padding do not count before the mask; from it on they do, since it is there to hide them.
        """
        real = None
        axes = self.program.by_name[step].axes
        for place, axis in enumerate(axes):
            visible = self._visible.get(axis.sequence) if axis.sequence else None
            if visible is None or (axis.name == "key" and isinstance(self.program.by_name[step].op, HIDING)):
                continue
            shape = [1] * (len(axes) + 1)
            shape[0], shape[place + 1] = visible.shape
            part = np.broadcast_to(visible.reshape(shape), (self.batch, *(each.size for each in axes)))
            if axis.name == "key":
                part = part | np.isneginf(self.value(step))  # a score that must be hidden is compared
            real = part if real is None else real & part
        return real

    @cached_property
    def _visible(self) -> Mapping[str, Host]:
        """Real tokens of every sequence that has padding."""
        padded = {}
        for name, given in self.exact.givens.items():
            if name.endswith(VISIBLE) and not given.all():
                padded[self.program.givens[name][0].sequence] = given
        return padded


def right_values(model: Model, given: Input) -> Right:
    """The right values of a model for an input.

    Raises:
        InputError: The model does not read such an input.
    """
    segments = None if given.segments is None else given.segments[0].tolist()
    trace = model.trace(
        ids=None if given.ids is None else given.ids.tolist(),
        mask=_mask(given),
        decoder_ids=None if given.decoder_ids is None else given.decoder_ids.tolist(),
        segments=segments,
    )
    program, givens = trace.program, dict(trace.givens)
    if given.labels is not None:
        program, givens = _with_loss(program, givens, given)
    exact, rough = (_trace(model, program, givens, dtype) for dtype in ("float64", "float32"))
    return Right(exact, rough)


def _mask(given: Input) -> Host | None:
    mask, ids = given.mask, given.ids
    fits = mask is not None and ids is not None and mask.shape == ids.shape and bool(mask.any(axis=1).all())
    return mask if fits else None


def _with_loss(program: Program, givens: dict[str, Host], given: Input) -> tuple[Program, dict[str, Host]]:
    """The program with the loss of its logits as the last step, where it has logits for the labels."""
    logits = program.by_name.get("output.logits")
    if logits is None or given.labels is None or given.labels.shape[-1] != logits.axes[0].size:
        return program, givens
    axes = {LABELS: (logits.axes[0],)}
    step = Step(LOSS, CrossEntropy(given.shift), (logits.name, LABELS), ())
    with_loss = dataclasses.replace(program, steps=(*program.steps, step), givens={**program.givens, **axes})
    return with_loss, {**givens, LABELS: given.labels}


def _trace(model: Model, program: Program, givens: Mapping[str, Host], dtype: str) -> Trace:
    weights = Weights(choose_backend("cpu", dtype, small=True), model.weights.read, file=model.weights.file)
    return Trace(program, weights, givens)
