"""The right values of every step in float64, which of their cells count, and how far others are from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np

from tui_transformer.diagnosis.dumps.dump import FLOAT32_UNIT, Precision
from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend, Host, choose_backend
from tui_transformer.engine.edits import VISIBLE
from tui_transformer.engine.explanation import Index, Source, Working
from tui_transformer.engine.gradient import NOT_COUNTED, cross_entropy
from tui_transformer.engine.ops import Mask, Op, Softmax, SoftmaxWithSink
from tui_transformer.engine.ops.base import Gradients
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.model import Model
from tui_transformer.records import dataclass, field, replace

LABELS = "input.labels"
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
class Reference:
    """The right values, in float64 and in float32."""

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
            self._noise[step] = float32_noise(self.value(step), self.rough.array(step))
        return self._noise[step]

    def granted(self, step: str, unit: float) -> float:
        """Noise that is granted to values of operations with such a relative error."""
        return SPREAD * self.noise(step) * max(1.0, unit / FLOAT32_UNIT)

    def difference(
        self, step: str, theirs: Host, known: Host | None, precision: Precision, tolerance: Host | None = None
    ) -> Difference:
        """How far numbers of such a precision are from those of a step, where they are known.

        By default they may be as far from them as roundings explain.
        """
        if tolerance is None:
            tolerance = precision.of(theirs) + self.granted(step, precision.unit)
        shares = isinstance(self.program.by_name[step].op, Softmax)
        return compare(theirs, self.value(step), self.counted(step, known), tolerance, shares=shares)

    def counted(self, step: str, known: Host | None = None) -> Host | None:
        """True where a step is compared: not at padding, nor where nothing is known. None where that is everywhere.

        Keys that are padding do not count before the mask; from it on they do, since it is there to hide them.
        """
        real = known
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


def reference_values(model: Model, given: Input) -> Reference:
    """The right values of a model for an input.

    Raises:
        InputError: The model does not read such an input.
    """
    mask, ids = given.mask, given.ids
    fits = mask is not None and ids is not None and mask.shape == ids.shape and bool(mask.any(axis=1).all())
    trace = model.trace(
        ids=None if ids is None else ids.tolist(),
        mask=mask if fits else None,
        decoder_ids=None if given.decoder_ids is None else given.decoder_ids.tolist(),
        segments=None if given.segments is None else given.segments[0].tolist(),
    )
    program, givens = trace.program, dict(trace.givens)
    logits = program.by_name.get(program.logits or "output.logits")  # capped, where the model caps them
    labels = given.labels
    if labels is not None and logits is not None and labels.shape[-1] == logits.axes[0].size:
        loss = Step("loss", CrossEntropy(given.shift), (logits.name, LABELS), ())
        axes = {**program.givens, LABELS: (logits.axes[0],)}
        program = replace(program, steps=(*program.steps, loss), givens=axes)
        givens[LABELS] = labels
    backends = (choose_backend("cpu", dtype, small=True) for dtype in ("float64", "float32"))
    weights = (Weights(each, model.weights.read, file=model.weights.file) for each in backends)
    exact, rough = (Trace(program, each, givens) for each in weights)
    return Reference(exact, rough)


class ForwardOnly(Op):
    """An operation of which neither gradients nor workings are asked."""

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        raise NotImplementedError

    def explain(self, index: Index, *sources: Source) -> Working:
        raise NotImplementedError


@dataclass(frozen=True)
class CrossEntropy(ForwardOnly):
    """Mean of −log softmax(logits)[label], the logits of position i with the label of position i + `shift`.

    Inputs: logits (n × v), labels (n); negative labels are not counted.
    """

    definition = "mean −log softmax(logits)[label]"
    shift: int = 0

    def axes(self, *inputs: Axes) -> Axes:
        del inputs
        return ()

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        del out
        logits, labels = inputs
        length, shift = logits.shape[1], self.shift
        logits = logits[:, max(0, -shift) : length - max(0, shift)]
        labels = labels[:, max(0, shift) : length - max(0, -shift)]
        targets = np.where(labels < 0, NOT_COUNTED, labels)
        if not logits.shape[1] or (targets == NOT_COUNTED).all():
            return np.full(1, np.nan)
        return np.full(1, cross_entropy(backend, logits, targets)[0].mean)


HIDDEN = -5000.0
"""Where −∞ stands in a right program, a number up to this one stands for it: e^−5000 is 0 in every precision."""


@dataclass(frozen=True)
class Difference:
    """Two arrays of a shape.

    Attributes:
        largest: Largest |theirs − ours|; ∞ where one is infinite or NaN and the other is not.
        relative: The same ÷ the largest |ours|.
        rms: Root of the mean square of the difference.
        cosine: Of the angle between the two; 1 where they point the same way.
        divergence: Of probabilities, the mean over the rows of Σ ours · log(ours ÷ theirs), in nats.
        index: The cell of the largest difference.
        values: Theirs and ours there.
        beyond: Some cell differs by more than the tolerance.
    """

    largest: float = 0.0
    relative: float = 0.0
    rms: float = 0.0
    cosine: float = 1.0
    divergence: float | None = None
    index: Index = ()
    values: tuple[float, float] = (0.0, 0.0)
    beyond: bool = False


def compare(
    theirs: Host, ours: Host, counted: Host | None, tolerance: Host | float, *, shares: bool = False
) -> Difference:
    """Compare two arrays of a shape.

    Args:
        theirs: Of the dump.
        ours: The right values; −∞ where a score is hidden.
        counted: True where cells are compared; None for all.
        tolerance: How far they may be apart, one number or one a cell.
        shares: Rows are probabilities.
    """
    gap = gaps(theirs, ours)
    if counted is not None:
        gap = np.where(counted, gap, 0.0)
    if not gap.size:
        return Difference()
    place = np.unravel_index(int(gap.argmax()), gap.shape)
    finite = np.isfinite(gap) & np.isfinite(ours) & (True if counted is None else counted)
    a, b = theirs[finite].astype(np.float64), ours[finite].astype(np.float64)
    size = float(np.abs(b).max()) if b.size else 0.0
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    cosine = float(np.clip(a @ b / lengths, -1.0, 1.0)) if lengths else float(not (a.any() or b.any()))
    divergence = None
    if shares:  # the mean of Σ p log(p ÷ q) over the rows, p ours; q is kept from 0
        p, q = np.where(finite, np.maximum(ours, 0.0), 0.0), np.maximum(theirs, np.finfo(np.float32).tiny)
        with np.errstate(all="ignore"):
            terms = np.where(p > 0, p * np.log(p / q), 0.0)
        divergence = float(terms.sum() / max(1, terms.size // max(1, terms.shape[-1])))
    most = float(gap[place])
    return Difference(
        most,
        most / size if size else (0.0 if most == 0 else math.inf),
        float(np.sqrt(np.mean((a - b) ** 2))) if a.size else 0.0,
        cosine,
        divergence,
        tuple(int(i) for i in place),
        (float(theirs[place]), float(ours[place])),
        exceeds(gap, tolerance),
    )


def exceeds(gap: Host, tolerance: Host | float) -> bool:
    """Whether a gap is larger than its tolerance; one that is infinite always is."""
    return bool((np.where(np.isfinite(gap), gap - tolerance, gap) > 0).any())


def gaps(theirs: Host, ours: Host) -> Host:
    """|theirs − ours|; 0 where both hide a score or are NaN, ∞ where one alone is infinite or NaN."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(theirs - ours)
        same = stands_for_infinity(theirs, ours) | (theirs == ours) | (np.isnan(theirs) & np.isnan(ours))
    gap = np.where(same, 0.0, gap)
    measured: Host = np.where(np.isnan(gap), np.inf, gap)
    return measured


def stands_for_infinity(theirs: Host, ours: Host) -> Host:
    """True where a score that is hidden by −∞ is −∞ or a number that gives the same softmax."""
    hidden: Host = np.isneginf(ours) & (theirs <= HIDDEN)
    return hidden


def float32_noise(exact: Host, rough: Host) -> float:
    """Largest difference between values in float32 and in float64, and at least a few roundings of the largest."""
    return max(largest_difference(rough, exact), LEAST * FLOAT32_UNIT * largest(np.abs(exact)))


def largest_difference(a: Host, b: Host) -> float:
    """The largest |a − b| over the finite cells."""
    with np.errstate(invalid="ignore"):
        return largest(np.abs(a - b))


def largest(sizes: Host) -> float:
    """The largest of the finite sizes; 0 where there is none."""
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))
