"""Tuned lens: the logit lens behind an affine map of every depth, which is fitted on texts.

Later layers turn and shift the stream, so that the head misreads what leaves an early one. With x what leaves a layer
and y what leaves the last, at the same token, x + (x − μ) A + b comes as near to y as it can over all tokens of the
texts: Σ ‖y − x − (x − μ) A − b‖² + N λ ‖A‖² is least at

    μ = mean x,   b = mean (y − x),   A = (S + λ I)⁻¹ C

with S the covariance of x and C that of x with y − x (both ÷ N): the linear shortcut of Din et al. 2023, "Jump to
Conclusions: Short-Cutting Transformers With Linear Transformations", §3. Belrose et al. 2023, "Eliciting Latent
Predictions with the Tuned Lens", §3, train the same map by gradient descent toward the probabilities of the model;
here it is solved, toward its last state, so that it takes seconds and is the same every time. λ = tr S ÷ N: with few
tokens the map stays near the plain lens with a shift (A = 0), with many it is that of least squares. Behind the last
layer there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.logit_lens import Affine, Lens, lens_of
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError

LARGEST = 1 << 31
"""Bytes that all sums may take."""


class _Sums:
    """Sums over tokens of one depth: Σ x, Σ (y − x), Σ xᵀx, Σ xᵀ(y − x)."""

    def __init__(self, size: int) -> None:
        self.x, self.moved, self.tokens = np.zeros(size), np.zeros(size), 0
        self.squares, self.products = np.zeros((size, size)), np.zeros((size, size))

    def add(self, x: Host, y: Host) -> None:
        moved = y - x
        self.tokens += len(x)
        self.x += x.sum(axis=0)
        self.moved += moved.sum(axis=0)
        self.squares += x.T @ x
        self.products += x.T @ moved

    def fitted(self) -> Affine:
        mean, shift = self.x / self.tokens, self.moved / self.tokens
        spread = self.squares / self.tokens - np.outer(mean, mean)
        ridge = float(np.trace(spread)) / self.tokens
        if not np.isfinite(ridge):
            raise InputError("the stream overflows: no lens can be fitted to it; try float64")
        matrix: Host = np.zeros_like(spread)
        if ridge > 0:
            both = self.products / self.tokens - np.outer(mean, shift)
            matrix = np.linalg.solve(spread + ridge * np.eye(len(mean)), both)
        return Affine(mean, matrix, shift, self.tokens)


def fit_lens(
    traces: Iterable[Trace], layers: Collection[int] | None = None, report: Report = silent
) -> dict[int, Affine]:
    """The maps of every depth but the last, by layer (−1 is what enters the first), for `logit_lens` and `head_lens`.

    Args:
        traces: Of texts, one at a time; none is held longer than it takes. Padding is left out.
        layers: Only these; what enters the first is −1.
        report: Told how far the work is; what it raises ends it.

    Raises:
        InputError: There is no trace or no such layer, the model has no head that gives words, or the sums of all
            layers take too much memory.
    """
    if isinstance(traces, Trace):
        raise UsageError("a lens is fitted on a list of traces: fit_lens([trace, …])")
    sums: dict[int, _Sums] | None = None
    for number, trace in enumerate(traces, 1):
        report(f"lens · text {number:,}")
        lens = lens_of(trace.program)
        sums = _nothing(lens, trace, layers) if sums is None else sums
        for item in range(trace.batch):
            _add(sums, lens, trace, item)
    if sums is None:
        raise InputError("there is no sentence to fit a lens on")
    maps = {}
    for layer, each in sums.items():
        report(f"lens · layer {layer}")
        maps[layer] = each.fitted()
    return maps


def _nothing(lens: Lens, trace: Trace, layers: Collection[int] | None) -> dict[int, _Sums]:
    """Sums of no token for every depth that is asked for."""
    known = [depth.layer for depth in lens.depths]
    missing = sorted(set(layers or ()) - set(known))
    if missing:
        raise InputError(f"there is no layer {missing[0]}: layers are 0 to {known[-1]}, and −1 for the embedding")
    wanted = [layer for layer in known[:-1] if layers is None or layer in layers]
    size = trace.program.shape(lens.state)[-1]
    taken = 16 * size * size * len(wanted)
    if taken > LARGEST:
        raise InputError(
            f"a lens of {len(wanted)} layers of width {size:,} takes {taken / 2**30:.1f} GiB: name fewer layers"
        )
    return {layer: _Sums(size) for layer in wanted}


def _add(sums: dict[int, _Sums], lens: Lens, trace: Trace, item: int) -> None:
    """The real tokens of one sentence."""
    real = real_tokens(trace, trace.program.axes(lens.state)[0], item)

    def rows(name: str) -> Host:
        return np.concatenate([np.asarray(part, np.float64) for _, part in trace.blocks(name, item=item)])[real]

    last = rows(lens.state)
    for layer, name in {depth.layer: depth.step for depth in lens.depths if depth.layer in sums}.items():
        if len(sums[layer].x) != last.shape[1]:
            raise InputError("the traces are of different models: their streams have different widths")
        sums[layer].add(rows(name), last)
