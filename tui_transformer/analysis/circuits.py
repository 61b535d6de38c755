"""Circuits of weights: what a head reads and writes, whatever the sentence.

After Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".

- OV = W_V W_O (d × d): what a token that is attended to writes; QK = W_Q W_Kᵀ (d × d): which tokens attend to which.
  Both have rank d_k, so their norms (Frobenius), singular values and eigenvalues come from d_k × d_k matrices. Norms of
  layers, biases and rotations of positions are left out. Query heads that share keys and values read theirs.
- Copying score: Σ λ ÷ Σ |λ| of the eigenvalues λ of W_E W_V W_O W_U (words × words): 1 where every word raises its own
  logit. NaN where the model has no embedding and logits of the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np

from tui_transformer.analysis.attentions import SELF, Attention, Report, attentions, in_layer, silent
from tui_transformer.analysis.found import Again, Found, found
from tui_transformer.engine.axis import Region, whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.ops import Linear, Project, Unembed
from tui_transformer.engine.ops.attention import OfHeads
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

PARTS = ("query", "key", "value", "output")


@dataclass(frozen=True, eq=False)
class Circuit:
    """The matrices of a head: W_Q and W_K, d × d_k, W_V, d × d_v, and W_O, d_v × d."""

    attention: Attention
    head: int
    query: Host
    key: Host
    value: Host
    output: Host

    def __repr__(self) -> str:
        place = f"{self.attention.group} layer {self.attention.layer} head {self.head}"
        return f"<Circuit {place}: d = {self.query.shape[0]}, d_k = {self.query.shape[1]}>"

    @property
    def ov(self) -> Host:
        """W_V W_O, d × d."""
        return np.asarray(self.value @ self.output)

    @property
    def qk(self) -> Host:
        """W_Q W_Kᵀ, d × d."""
        return np.asarray(self.query @ self.key.T)

    @cached_property
    def ov_values(self) -> Host:
        """Singular values of OV, the largest first."""
        return _singular(self.value, self.output)

    @cached_property
    def qk_values(self) -> Host:
        """Singular values of QK, the largest first."""
        return _singular(self.query, self.key.T)

    @cached_property
    def ov_eigenvalues(self) -> Host:
        """Eigenvalues of OV that are not 0 by its rank; complex."""
        return np.linalg.eigvals(self.output @ self.value)

    @cached_property
    def qk_eigenvalues(self) -> Host:
        """The same of QK."""
        return np.linalg.eigvals(self.key.T @ self.query)


@dataclass(frozen=True, eq=False)
class Words:
    """How words enter and leave: W_U W_E, d × d, of which the copying score is made; None where there is none."""

    through: Host | None

    def copying(self, circuit: Circuit) -> float:
        """Σ λ ÷ Σ |λ| of the eigenvalues of W_E W_V W_O W_U; NaN where there are no words."""
        if self.through is None or circuit.output.shape[1] != self.through.shape[0]:
            return float("nan")
        values = np.linalg.eigvals(circuit.output @ self.through @ circuit.value)
        total = float(np.abs(values).sum())
        return float(values.sum().real) / total if total else float("nan")


def _sizes(head: Circuit) -> Iterator[dict[str, Any]]:
    place = {"part": head.attention.group, "layer": head.attention.layer, "head": head.head}
    values = {"ov": head.ov_values, "qk": head.qk_values}
    norms = {f"{name}_norm": float(np.sqrt((each**2).sum())) for name, each in values.items()}
    yield place | norms | {f"{name}_largest": float(each[0]) for name, each in values.items()}


def circuits(trace: Trace, layer: int | None = None) -> Found[Circuit]:
    """The matrices of every head, in order; only the weights are read, and none is held.

    Raises:
        InputError: The model has no attention with matrices of its own, or no such layer; when the heads are asked
            for, that a weight has numbers that are not finite.
    """
    steps = [each for each in attentions(trace.program) if all(_matrix(trace, each, part) for part in PARTS)]
    if not steps:
        raise InputError("the model has no attention with matrices for Q, K and V: there are no circuits")
    chosen = in_layer(steps, layer)
    return Again(sum(each.heads for each in chosen), lambda: _heads(trace, chosen), _sizes)


def _heads(trace: Trace, chosen: Iterable[Attention]) -> Iterator[Circuit]:
    for attention in chosen:
        heads = attention.heads
        query, key, value, output = (_weight(trace, _matrix(trace, attention, part)) for part in PARTS)
        groups = trace.program.shape(f"{attention.sublayer}.key")[0]
        widths = query.shape[1] // heads, value.shape[1] // groups
        ops = (trace.program.step(f"{attention.sublayer}.{product}").op for product in ("scores", "context"))
        readers = [getattr(op, "of", op) for op in ops]  # in a broken model multiplied by a number
        for head in range(heads):
            own = head * widths[0]
            keys, values = (
                op.head_read(head, groups) if isinstance(op, OfHeads) else head * groups // heads for op in readers
            )
            yield Circuit(
                attention,
                head,
                query[:, own : own + widths[0]],
                key[:, keys * widths[0] : (keys + 1) * widths[0]],
                value[:, values * widths[1] : (values + 1) * widths[1]],
                output[head * widths[1] : (head + 1) * widths[1]],
            )


def words_of(trace: Trace) -> Words:
    """How words enter and leave the model."""
    program = trace.program
    step, name = program.by_name.get(LOGITS), "embedding.tokens.weight"
    if step is None or name not in program.weights or step.axes[-1].name != "vocabulary":
        return Words(None)
    table, head = _weight(trace, name), _weight(trace, step.inputs[1])
    leave = head.T if isinstance(step.op, Unembed) else head
    same = leave.shape[1] == table.shape[0] and leave.shape[0] == table.shape[1]
    return Words(leave @ table if same else None)


def _matrix(trace: Trace, attention: Attention, part: str) -> str:
    """The weight that a part of an attention multiplies with, be it that of another layer; "" where there is none."""
    step = trace.program.by_name.get(f"{attention.sublayer}.{part}")
    return step.inputs[1] if step is not None and isinstance(step.op, Linear | Project) else ""


def _weight(trace: Trace, name: str) -> Host:
    """A weight in float64; singular values and eigenvalues are those of numbers that are finite."""
    weight = in_float64(trace, name)
    if not np.isfinite(weight).all():
        raise InputError(f"{name} has numbers that are not finite: heads are described by finite weights alone")
    return weight


def in_float64(trace: Trace, name: str, region: Region | None = None) -> Host:
    """A weight, or a step of a single sentence, or a part of it, in float64."""
    return np.asarray(trace.window(name, region or whole(trace.program.shape(name))), np.float64)


def _singular(left: Host, right: Host) -> Host:
    """Singular values of a product of d × r and r × d, by its r × r core."""
    return np.asarray(np.linalg.svd(_core(left) @ _core(right.T).T, compute_uv=False))


Reads = Literal["Q", "K", "V"]
READS: Mapping[Reads, Callable[[Circuit], tuple[Host, Host]]] = {
    "Q": lambda head: (head.query, head.key.T),
    "K": lambda head: (head.key, head.query.T),
    "V": lambda head: (head.value, head.output),
}
"""The parts of a later head that read the stream, by name: factors d × r and r × d."""


@dataclass(frozen=True, eq=False)
class Path:
    """From a head to a later one, with a score from 0 to 1."""

    source: Circuit
    target: Circuit
    score: float


def _ends(path: Path) -> Iterator[dict[str, Any]]:
    ends = dict[str, Any]()
    for name, end in (("source", path.source), ("target", path.target)):
        place = end.attention
        ends |= {f"{name}_part": place.group, f"{name}_layer": place.layer, f"{name}_head": end.head}
    yield ends | {"score": path.score}


@found(_ends)
def compositions(heads: Sequence[Circuit], reads: Reads, report: Report = silent) -> Iterator[Path]:
    """The score of every pair of heads of which the first writes what the second can read, in order.

    Norms are those of products d_v × d_k: ‖R W_O L R'‖ with R of the QR of W_V, and L R' of that of what is read, whose
    other factors have orthonormal columns. Never is there a matrix d × d.

    Args:
        heads: In the order of the model.
        reads: "Q", "K" or "V": what the later head makes of it.
        report: Told of every layer; what it raises ends the work.

    Raises:
        UsageError: It reads nothing of that name.
    """
    if reads not in READS:
        raise UsageError(f"a head reads no {reads[:20]!r}: use {', '.join(READS)}")
    layers = [list(group) for _, group in groupby(heads, lambda head: (head.attention.stack, head.attention.name))]
    written = [np.stack([_core(head.value) @ head.output for head in group]) for group in layers]
    sizes = [np.linalg.norm(each, axis=(1, 2)) for each in written]
    for place, targets in enumerate(layers):
        report(f"layer {place + 1} of {len(layers)}")
        sources = [each for each in range(place) if _writes_to(layers[each][0].attention, targets[0].attention, reads)]
        if not sources:
            continue
        read = [left @ _core(right.T).T for left, right in map(READS[reads], targets)]
        into, own = np.concatenate(read, axis=1), list(map(np.linalg.norm, read))
        tables = [_norms(written[each], into, len(targets)) for each in sources]
        for number, target in enumerate(targets):
            for each, norms in zip(sources, tables, strict=True):
                for head, norm, size in zip(layers[each], norms[:, number], sizes[each], strict=True):
                    both = float(size * own[number])
                    yield Path(head, target, float(norm) / both if both else float("nan"))


def _core(matrix: Host) -> Host:
    """R of its QR, r × r: what is R times something has the norm of the matrix times it."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _norms(written: Host, into: Host, targets: int) -> Host:
    """Of every head (heads × d_v × d) the norm of what it writes (d × all that the targets read), heads × targets."""
    heads, rows, width = written.shape
    product = (written.reshape(-1, width) @ into).reshape(heads, rows, targets, -1)
    return np.asarray(np.sqrt(np.einsum("hrtc,hrtc->ht", product, product)))


def _writes_to(source: Attention, target: Attention, reads: str) -> bool:
    """True if a head writes into the stream that a later one reads; cross attention reads keys of the encoder."""
    from_encoder = target.kind != SELF and reads != "Q"
    stack = "encoder" if from_encoder else target.stack
    before = from_encoder or (source.layer, source.name) != (target.layer, target.name)
    return source.stack == stack and before and source.name != target.name


def chance(head: Circuit) -> float:
    """1 ÷ √d: the root mean square of the score where the directions of one of the two are turned at random."""
    return float(1 / np.sqrt(head.output.shape[1]))
