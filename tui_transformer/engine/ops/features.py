"""Features of a dictionary: what leaves most of them at 0, the scale that they are read at, and what they change."""

from __future__ import annotations

import math

import numpy as np

from tui_transformer.engine.axis import Axes
from tui_transformer.engine.backend import Array, Backend
from tui_transformer.engine.explanation import Factor, Index, Source, Sum, Value, Working, added, product
from tui_transformer.engine.number_format import bracketed, spoken
from tui_transformer.engine.ops.base import EXACT, Gradients, Op, passed_on, single
from tui_transformer.records import dataclass


@dataclass(frozen=True)
class Jump(Op):
    """z where z > θ, else 0: below 0 too, where θ is. Inputs: z (n × features), θ (features)."""

    along = ((0, 1), (-1,))
    undone_from = (0, 1)
    chain = ("∂y where z > θ, else 0", "")
    definition = "z where z > θ, else 0"
    cost = 2

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        z, threshold = inputs
        return backend.xp.where(self._open(z, threshold), z, 0.0)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = z · open. The thresholds are held fast: y jumps at them, which has no slope."""
        z, threshold = inputs
        return gradient * self._open(z, threshold), None

    def _open(self, z: Array, threshold: Array) -> Array:
        return z > threshold

    def explain(self, index: Index, *inputs: Source) -> Working:
        z, threshold = inputs[0].operand(*index), inputs[1].operand(index[-1])
        is_open = bool(self._open(np.float64(z.value), np.float64(threshold.value)))
        note = "z is above it: passes" if is_open else "becomes 0"
        items = (z.called("z"), threshold.called("θ", note))
        return Working(items, z.value * is_open, f"{spoken(z.value)} · {int(is_open)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        z, threshold = inputs[0].operand(*index), inputs[1].cell(index[-1])
        is_open = bool(self._open(np.float64(z.value), np.float64(threshold)))
        return passed_on(gradient.operand(*index), float(is_open), "· slope", f"θ = {threshold:.6g}", z)


@dataclass(frozen=True)
class JumpRelu(Jump):
    """max(z, 0) where z > θ, else 0 (Rajamanoharan et al. 2024, arXiv 2407.14435, equation 3). Inputs: z, θ."""

    signed = False
    definition = "max(z, 0) where z > θ, else 0"

    def _open(self, z: Array, threshold: Array) -> Array:
        return (z > threshold) & (z > 0.0)


@dataclass(frozen=True)
class GatedRelu(Op):
    """max(z e^r + b, 0) where z + g > 0, else 0 (Rajamanoharan et al. 2024, arXiv 2404.16014, §3.2).

    Inputs: z (n × features), g, r, b (features): whether a feature is active, and how strongly, are two questions.
    """

    signed = False
    along = ((0, 1), (-1,))
    undone_from = (0, 1, 2, 3)
    chain = ("∂y e^r where y > 0, else 0", "", "∂y z e^r where y > 0, over the rows", "∂y where y > 0, over the rows")
    definition = "max(z e^r + b, 0) where z + g > 0, else 0"
    cost = 5

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        z, _, scale, bias = inputs
        return backend.xp.where(self._open(backend, *inputs), z * backend.xp.exp(scale) + bias, 0.0)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = (z e^r + b) · open."""
        z, _, scale, _ = inputs
        passed = gradient * self._open(backend, *inputs)
        grown = passed * backend.xp.exp(scale)
        rows = tuple(range(gradient.ndim - 1))
        return grown, None, (grown * z).sum(axis=rows), passed.sum(axis=rows)

    def _open(self, backend: Backend, z: Array, gate: Array, scale: Array, bias: Array) -> Array:
        return (z + gate > 0.0) & (z * backend.xp.exp(scale) + bias > 0.0)

    def explain(self, index: Index, *inputs: Source) -> Working:
        z, *others = inputs[0].operand(*index), *(each.operand(index[-1]) for each in inputs[1:])
        gate, scale, bias = others
        is_open = z.value + gate.value > 0
        grown = math.exp(scale.value)
        items = (
            z.called("z"),
            gate.called("g", f"z + g is {'above' if is_open else 'not above'} 0"),
            scale.called("r", f"e^r = {grown:.6g}"),
            bias.called("b"),
        )
        size = f"{spoken(z.value)} · e^({spoken(scale.value)}) + {bracketed(bias.value)}"
        result = max(z.value * grown + bias.value, 0.0) * is_open
        return Working(items, result, f"max({size}, 0) · {int(is_open)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        feature = index[-1]
        gate, scale, bias = (each.cell(feature) for each in inputs[1:])
        z = inputs[0].factor(None, feature)
        grown = z.values * math.exp(scale)
        is_open = (z.values + gate > 0) & (grown + bias > 0)
        if toward == 0:
            slope = math.exp(scale) * bool(is_open[index[0]])
            return passed_on(gradient.operand(*index), slope, "· slope", "e^r where y > 0", z.operand(index[0]))
        slopes = gradient.factor(None, feature)
        factors, what = ((slopes, z), "∂y z e^r") if toward == 2 else ((slopes,), "∂y")
        terms = slopes.values * is_open * (grown if toward == 2 else 1.0)
        return single(Sum(f"Σ {what} where y > 0", factors, terms, "term"))


@dataclass(frozen=True)
class Largest(Op):
    """The `count` largest of every row where they are above 0, else 0 (Gao et al. 2024, arXiv 2406.04093, §2.3).

    Input: z (n × features). With `groups`, the largest of each of so many groups of neighbours.
    """

    whole_rows = True
    signed = False
    undone_from = (0,)
    chain = ("∂y where it is one of them, else 0",)
    count: int
    groups: int = 1

    @property
    def formula(self) -> str:
        of = f" of each of {self.groups} groups" if self.groups > 1 else ""
        return f"max(z, 0) for the {self.count} largest z{of}, else 0"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        return backend.xp.where(self._taken(backend, inputs[0]), inputs[0], 0.0)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = z · taken, which features are taken held fast."""
        return (gradient * self._taken(backend, inputs[0]),)

    def _taken(self, backend: Backend, z: Array) -> Array:
        """Whether each is among the largest of its group, and above 0."""
        xp, groups = backend.xp, z.reshape(-1, z.shape[-1] // self.groups)
        chosen = xp.argpartition(-groups, min(self.count, groups.shape[1]) - 1, axis=-1)[:, : self.count]
        taken = xp.zeros(groups.shape, dtype=z.dtype)
        taken[xp.arange(len(groups), dtype=np.int64).reshape(-1, 1), chosen] = 1.0
        return (taken.reshape(z.shape) > 0.0) & (z > 0.0)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row = inputs[0].factor(index[0], None)
        size = len(row.values) // self.groups
        start = index[-1] // size * size
        order = np.argsort(-row.values[start : start + size], kind="stable")
        z, last = row.operand(index[-1]), row.operand(start + int(order[min(self.count, size) - 1]))
        is_taken = bool(self._taken(EXACT, row.values[None])[0, index[-1]])
        note = f"the smallest of {self.count} that are taken" if self.groups == 1 else "the largest of its group"
        items = (z.called("z"), last.called("least", note))
        return Working(items, z.value * is_taken, f"{spoken(z.value)} · {int(is_taken)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        row = inputs[0].factor(index[0], None)
        is_taken = bool(self._taken(EXACT, row.values[None])[0, index[-1]])
        note = "it is one of the largest" if is_taken else "it is none of the largest above 0"
        return passed_on(gradient.operand(*index), float(is_taken), "· slope", note, row.operand(index[-1]))

    def flops(self, *inputs: Axes) -> int:
        return (3 + math.ceil(math.log2(self.count + 1))) * super().flops(*inputs)


@dataclass(frozen=True)
class Sized(Op):
    """What vectors are brought to before a dictionary reads them, as SAELens does (`normalize_activations`).

    With `centred` c = x − μ and s the deviation of a sample, else c = x and s = |x| ÷ √d. s + ε divides.
    """

    whole_rows = True
    cost = 6
    centred: bool
    epsilon: float = 0.0

    def _parts(self, backend: Backend, x: Array) -> tuple[Array, Array, Array, int]:
        """μ, c, s and what squares are divided by."""
        mean = x.mean(axis=-1, keepdims=True) if self.centred else backend.xp.zeros_like(x[..., :1])
        centred, count = x - mean, x.shape[-1] - self.centred
        return mean, centred, backend.xp.sqrt((centred * centred).sum(axis=-1, keepdims=True) / count), count

    def _of_row(self, row: Factor) -> tuple[float, Sum, float]:
        """μ, the sum of squares and s, in float64."""
        mean, centred, size, _ = self._parts(EXACT, row.values)
        return float(mean[0]), Sum("Σ c²", (row,), centred * centred, "c²"), float(size[0])


@dataclass(frozen=True)
class ToSize(Sized):
    """c ÷ (s + ε). Input: x (n × d)."""

    undone_from = (0,)
    chain = ("(∂y − c Σ ∂y c ÷ (m s (s + ε))) ÷ (s + ε), less its mean",)

    @property
    def formula(self) -> str:
        return "(x − μ) ÷ (s + ε)" if self.centred else "x √d ÷ |x|"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        _, centred, size, _ = self._parts(backend, inputs[0])
        return centred / (size + self.epsilon)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = c ÷ (s + ε); ∂s/∂c = c ÷ (m s) with s² = Σ c² ÷ m."""
        _, centred, size, count = self._parts(backend, inputs[0])
        divisor = size + self.epsilon
        toward_size = -(gradient * centred).sum(axis=-1, keepdims=True) / (divisor * divisor)
        toward = gradient / divisor + toward_size * centred / (count * size)
        return (toward - toward.mean(axis=-1, keepdims=True) if self.centred else toward,)

    def explain(self, index: Index, *inputs: Source) -> Working:
        row = inputs[0].factor(*index[:-1], None)
        x = row.operand(index[-1])
        mean, squares, size = self._of_row(row)
        items = (x.called("x"), Value("μ", mean), squares, Value("s", size), Value("ε", self.epsilon))
        left = f"({spoken(x.value)} − {bracketed(mean)}) ÷ ({spoken(size)} + {spoken(self.epsilon)})"
        return Working(items, (x.value - mean) / (size + self.epsilon), left)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        row, slopes = inputs[0].factor(*index[:-1], None), gradient.factor(*index[:-1], None)
        mean, _, size = self._of_row(row)
        centred, divisor = row.values - mean, size + self.epsilon
        both = Sum("Σ ∂y c", (slopes, row), slopes.values * centred, "∂y · c")
        less = added("Σ ∂y", slopes)
        own, moved = slopes.operand(index[-1]), less.total / len(row.values) * self.centred
        turned = both.total * centred[index[-1]] / (divisor * divisor * (len(row.values) - self.centred) * size)
        items = (own.called("∂y"), less, both, Value("s", size))
        return Working(items, (own.value - moved) / divisor - turned)


@dataclass(frozen=True)
class FromSize(Sized):
    """y s + μ: what was written at one size, taken back to that of x. Inputs: y (n × d), x (n × d)."""

    undone_from = (0, 1)
    chain = ("∂z s", "c Σ ∂z y ÷ (m s) + the mean of ∂z")

    @property
    def formula(self) -> str:
        return "y s + μ" if self.centred else "y |x| ÷ √d"

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        mean, _, size, _ = self._parts(backend, inputs[1])
        return inputs[0] * size + mean

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: z = y s + μ; ∂s/∂x = c ÷ (m s), ∂μ/∂x = 1 ÷ d."""
        _, centred, size, count = self._parts(backend, inputs[1])
        toward = (gradient * inputs[0]).sum(axis=-1, keepdims=True) * centred / (count * size)
        return gradient * size, toward + gradient.mean(axis=-1, keepdims=True) if self.centred else toward

    def explain(self, index: Index, *inputs: Source) -> Working:
        y, row = inputs[0].operand(*index), inputs[1].factor(*index[:-1], None)
        mean, squares, size = self._of_row(row)
        items = (y.called("y"), squares, Value("· s", size), Value("+ μ", mean))
        return Working(items, y.value * size + mean, f"{spoken(y.value)} · {spoken(size)} + {bracketed(mean)}")

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        row, slopes = inputs[1].factor(*index[:-1], None), gradient.factor(*index[:-1], None)
        mean, _, size = self._of_row(row)
        if toward == 0:
            return passed_on(slopes.operand(index[-1]), size, "· s")
        x, count = row.operand(index[-1]), len(row.values)
        both, less = product("Σ ∂z y", slopes, inputs[0].factor(*index[:-1], None)), added("Σ ∂z", slopes)
        turned = both.total * (x.value - mean) / ((count - self.centred) * size)
        return Working((x.called("x"), both, less), turned + less.total / count * self.centred)


ROUNDING = 8.0
"""Units in the last place that adding three numbers may be off by."""


@dataclass(frozen=True)
class Changed(Op):
    """x̂ + e − x: what a change of features, of what they write or of their error adds to x; 0 where none is changed.

    Inputs: reconstruction x̂, error e, x (Marks et al. 2024, arXiv 2403.19647, §3.1: the error stays as it is). What
    rounding alone leaves is 0, so that x, to which it is added, stays bit for bit what it is.
    """

    definition = "reconstruction + error − x"
    undone_from = ()
    chain = ("∂y", "∂y", "−∂y")
    cost = 3

    def forward(self, backend: Backend, *inputs: Array, out: Array | None = None) -> Array:
        xp, (written, error, x) = backend.xp, inputs
        change = written + error - x
        unit = ROUNDING * float(np.finfo(x.dtype).eps)
        return xp.where(xp.abs(change) > unit * (xp.abs(written) + xp.abs(error)), change, 0.0)

    def backward(self, backend: Backend, gradient: Array, output: Array, *inputs: Array) -> Gradients:
        """forward: y = x̂ + e − x."""
        return gradient, gradient, -gradient

    def explain(self, index: Index, *inputs: Source) -> Working:
        written, error, x = (each.operand(*index) for each in inputs)
        items = (written.called("x̂"), error.called("+ e"), x.called("− x"))
        return Working(items, written.value + error.value - x.value)

    def explain_backward(self, index: Index, toward: int, gradient: Source, output: Source, *inputs: Source) -> Working:
        return passed_on(gradient.operand(*index), *((-1.0, "· −1") if toward == 2 else ()))
