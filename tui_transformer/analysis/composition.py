"""Composition of heads: how much of what a head reads is what an earlier head writes, by their weights alone.

After Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", §"Two-Layer Attention-Only Transformers",
with rows for vectors. An earlier head writes x W_OV; a later one reads its queries, keys or values of that:

- Q: ‖W_OV W_QK‖ ÷ (‖W_OV‖ ‖W_QK‖), K: the same with W_QKᵀ, V: ‖W_OV W_OV′‖ ÷ (‖W_OV‖ ‖W_OV′‖), Frobenius.

If the later head's directions were turned at random, the mean of the squared score would be exactly 1 ÷ d: scores near
1 ÷ √d are chance. Norms of layers and biases are left out, and a program that folds them into the weights gets other
numbers. ‖V O Q Kᵀ‖ of d × r factors is that of the r × r product R_V (O Q) R_Kᵀ, with V = Q_V R_V and K = Q_K R_K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.attentions import SELF, Attention
from tui_transformer.analysis.circuits import Circuit
from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError

Factors = tuple[Host, Host]
"""Of a d × d matrix of rank r: d × r and r × d."""

READS: Mapping[str, Callable[[Circuit], Factors]] = {
    "Q": lambda head: (head.query, head.key.T),
    "K": lambda head: (head.key, head.query.T),
    "V": lambda head: (head.value, head.output),
}
"""The parts of a later head that read the stream, by name."""


@dataclass(frozen=True, eq=False)
class Path:
    """From a head to a later one.

    Attributes:
        source: The earlier head.
        target: The later head.
        score: From 0 to 1.
    """

    source: Circuit
    target: Circuit
    score: float


def compositions(heads: Sequence[Circuit], reads: str) -> Iterator[Path]:
    """The score of every pair of heads of which the first writes what the second can read, in order.

    Args:
        heads: In the order of the model.
        reads: "Q", "K" or "V": what the later head makes of it.

    Raises:
        UsageError: It reads nothing of that name.
    """
    if reads not in READS:
        raise UsageError(f"a head reads no {reads[:20]!r}: use {', '.join(READS)}")
    cores = [_core(head) for head in heads]
    for place, target in enumerate(heads):
        left, right = READS[reads](target)
        after = np.linalg.qr(right.T)[1].T
        size = float(np.linalg.norm(np.linalg.qr(left)[1] @ after))
        for source, (core, own) in zip(heads[:place], cores, strict=False):
            if _writes_to(source.attention, target.attention, reads):
                written = float(np.linalg.norm(core @ (source.output @ left) @ after))
                yield Path(source, target, written / (own * size) if own * size else float("nan"))


def _core(head: Circuit) -> tuple[Host, float]:
    core = np.linalg.qr(head.value)[1]
    return core, float(np.linalg.norm(core @ np.linalg.qr(head.output.T)[1].T))


def _writes_to(source: Attention, target: Attention, reads: str) -> bool:
    """Whether a head writes into the stream that a later one reads; cross attention reads keys of the encoder."""
    from_encoder = target.kind != SELF and reads != "Q"
    stack = "encoder" if from_encoder else target.stack
    before = from_encoder or (source.layer, source.name) != (target.layer, target.name)
    return source.stack == stack and before and source.name != target.name


def chance(head: Circuit) -> float:
    """1 ÷ √d: the root mean square of the score where the directions of one of the two are turned at random."""
    return float(1 / np.sqrt(head.output.shape[1]))
