"""Two models on one sentence, such as the float32 and the quantized weights of one: what each part loses.

Error of a part = ‖a − b‖ ÷ ‖a‖ over all its cells (relative root mean square), a the first model's.
Divergence of shares = Σ p log(p ÷ q), p the first model's (Kullback & Leibler 1951), mean over the rows; in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.metrics import divergences
from tui_transformer.engine.backend import Host
from tui_transformer.engine.parts import layer_outputs
from tui_transformer.engine.trace import Trace
from tui_transformer.generation.sampling import softmax
from tui_transformer.records import dataclass

SMALLEST = 1e-38
"""A share that is 0 in the second model counts as this one."""


@dataclass(frozen=True)
class LayerError:
    """The output of a layer: its error, and the cosine of both."""

    name: str
    error: float
    cosine: float


@dataclass(frozen=True)
class HeadError:
    """A head: the error of its context, which is what it hands on, and the divergence of its attention weights."""

    attention: str
    head: int
    error: float
    divergence: float


@dataclass(frozen=True)
class LogitsError:
    """The answers: the divergence of the probabilities (mean over the positions), and the position where it is largest.

    `agreeing`: positions at which both find the same token most likely; `likeliest`: these of both at the last
    position.
    """

    divergence: float
    worst: tuple[int, float]
    agreeing: int
    positions: int
    likeliest: tuple[int, int]


@dataclass(frozen=True)
class Loss:
    """The losses of the second model: layers in order, heads worst first, and the answers, where there are any."""

    layers: tuple[LayerError, ...]
    heads: tuple[HeadError, ...]
    logits: LogitsError | None


def loss_of(first: Trace, second: Trace) -> Loss:
    """Compare the parts that both have in the same shape."""
    own = frozenset(layer_outputs(first.program))
    public = [name for name, step in first.program.aliases.items() if step in own and name.endswith(".output")]
    layers = []
    for name in (name for name in public if _alike(first, second, name)):
        one, other = (trace[name].astype(np.float64).ravel() for trace in (first, second))
        lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
        layers.append(LayerError(name, _error(one, other), float(one @ other) / lengths if lengths else 1.0))
    heads = sorted(_heads(first, second), key=lambda each: (-each.error, each.attention, each.head))
    return Loss(tuple(layers), tuple(heads), _logits(first, second))


def _alike(first: Trace, second: Trace, name: str) -> bool:
    known = (*second.program.by_name, *second.program.aliases)
    return name in known and first.program.shape(name) == second.program.shape(name)


def _error(a: Host, b: Host) -> float:
    one, other = a.astype(np.float64), b.astype(np.float64)
    size, gap = float(np.linalg.norm(one)), float(np.linalg.norm(one - other))
    return gap / size if size else (0.0 if gap == 0.0 else math.inf)


def _heads(first: Trace, second: Trace) -> Iterator[HeadError]:
    for each in attentions(first.program):
        context = f"{each.sublayer}.context"
        if not all(_alike(first, second, name) for name in (each.name, context)):
            continue
        weights, contexts = ((first[name], second[name]) for name in (each.name, context))
        for head in range(each.heads):
            p, q = (array[..., head, :, :] for array in weights)
            one, other = (array[..., head, :, :] for array in contexts)
            yield HeadError(each.sublayer, head, _error(one, other), float(_divergences(p, q).mean()))


def _divergences(p: Host, q: Host) -> Host:
    """Of every row, in nats."""
    with np.errstate(divide="ignore"):
        before, after = np.log(p.astype(np.float64)), np.log(np.maximum(q.astype(np.float64), SMALLEST))
    return np.asarray(np.maximum(divergences(before, after), 0.0))


def _logits(first: Trace, second: Trace) -> LogitsError | None:
    name = first.program.logits
    if name not in first.program.by_name or not _alike(first, second, name):
        return None
    a, b = (trace[name].reshape(-1, trace[name].shape[-1]) for trace in (first, second))
    shares = (softmax(each.astype(np.float64)) for each in (a, b))
    rows = np.array([_divergences(p, q) for p, q in zip(*shares, strict=True)])
    worst = int(rows.argmax())
    top = [logits.argmax(axis=-1) for logits in (a, b)]
    return LogitsError(
        float(rows.mean()),
        (worst, float(rows[worst])),
        int((top[0] == top[1]).sum()),
        len(rows),
        (int(top[0][-1]), int(top[1][-1])),
    )
