"""Logit lens by head: which words the output of every head raises at a token.

What head h writes at token i, z = context W_O, is carried to the logits with the norms on the way frozen: each divides
by the σ that it has in the forward pass, and β and biases are left out, so that the logits of all heads, with those of
the other terms (`analysis/attribution.py`), sum to the model's. From each the mean over all words is taken,
which no softmax sees.

The comparison: `less_mean` takes from z its mean over the real tokens of the sentence, so that words which a head
raises everywhere fall away, and what remains is what it says here (a mean ablation seen through the lens). No lens is
trained: this is not the tuned lens of Belrose et al. 2023, which fits an affine map for every layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.analysis.real_tokens import real_tokens
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Add, LayerNorm, Linear, MergeHeads, NormOfSum, RmsNorm, Scale, Unembed
from tui_transformer.engine.program import Program, Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError

LOGITS = "output.logits"


@dataclass(frozen=True, eq=False)
class HeadWords:
    """The words whose logits a head raises at one token.

    Attributes:
        attention: Its attention.
        head: Which one.
        logits: Of every word, less their mean.
    """

    attention: Attention
    head: int
    logits: Host

    def highest(self, count: int) -> tuple[tuple[int, float], ...]:
        """The words that it raises most, and by how much."""
        best = np.argsort(-self.logits, kind="stable")[:count]
        return tuple((int(word), float(self.logits[word])) for word in best)


def head_lens(
    trace: Trace, row: int, *, layer: int | None = None, less_mean: bool = False, item: int = 0
) -> Iterator[HeadWords]:
    """The words of every head at a token, in order.

    Args:
        trace: The sentence.
        row: The token.
        layer: Only this one.
        less_mean: Take from what a head writes its mean over the real tokens.
        item: Which sentence of a batch.

    Raises:
        InputError: The model has no logits of words, no such token or layer, or something on the way is not linear.
    """
    program = trace.program
    step = program.by_name.get(LOGITS)
    if step is None or step.axes[-1].name != "vocabulary":
        raise InputError("the model has no logits of words: no head spells any")
    if not 0 <= row < step.shape[0]:
        raise InputError(f"there is no token {row}: tokens are 0 to {step.shape[0] - 1}")
    writing = [each for each in attentions(program) if each.queries.sequence == step.axes[0].sequence]
    if layer is not None and all(each.layer != layer for each in writing):
        raise InputError(f"there is no layer {layer}")
    for attention in writing:
        if layer in (None, attention.layer):
            yield from _of(trace, attention, row, item, less_mean=less_mean)


def _of(trace: Trace, attention: Attention, row: int, item: int, *, less_mean: bool) -> Iterator[HeadWords]:
    program = trace.program
    output = program.by_name.get(f"{attention.name.rpartition('.')[0]}.output")
    if output is None or not isinstance(output.op, Linear):
        raise InputError(f"{attention.name}: the heads write through no matrix")
    merge = program.by_name.get(output.inputs[0])
    if merge is None or not isinstance(merge.op, MergeHeads):
        raise InputError(f"{attention.name}: the heads are not side by side before they are written")
    context = np.asarray(trace.window(merge.inputs[0], whole(program.shape(merge.inputs[0])), item), np.float64)
    values = context[:, row]
    if less_mean:
        values = values - context[:, real_tokens(trace, attention.queries, item)].mean(axis=1)
    matrix = _weight(trace, output.inputs[1]).reshape(*values.shape, -1)
    vectors = np.einsum("hk,hkd->hd", values, matrix)
    logits = _carried(trace, output.name, vectors, row, item)
    for head, words in enumerate(logits - logits.mean(axis=-1, keepdims=True)):
        yield HeadWords(attention, head, words)


def _carried(trace: Trace, name: str, vectors: Host, row: int, item: int) -> Host:
    """Vectors that are added to a step, as they arrive at the logits."""
    for source, step in _way(trace.program, name):
        vectors = _through(trace, step, source, vectors, row, item)
    return vectors


def _way(program: Program, name: str) -> Iterator[tuple[str, Step]]:
    """The steps from a sublayer's output along the stream to the logits, each with what it is reached from."""
    while name != LOGITS:
        readers = [step for step in program.readers(name) if name != step.name]
        ahead = [step for step in readers if step.role == "residual"] or [
            step for step in readers if isinstance(step.op, Add | Scale | LayerNorm | RmsNorm | NormOfSum)
        ]
        step = (ahead or [program.step(LOGITS)])[0]
        if name not in step.inputs:
            raise InputError(f"what is behind {name} is not linear: no head spells words through it")
        yield name, step
        name = step.name


def _through(trace: Trace, step: Step, source: str, vectors: Host, row: int, item: int) -> Host:
    """Vectors behind one step, its norm frozen."""
    op = step.op
    if isinstance(op, Add):
        return vectors
    if isinstance(op, Scale):
        scaled: Host = vectors * op.factor
        return scaled
    if isinstance(op, LayerNorm | RmsNorm | NormOfSum):
        return _normed(trace, step, vectors, row, item)
    if isinstance(op, Unembed):
        return (vectors * op.scale) @ _weight(trace, step.inputs[1]).T
    if isinstance(op, Linear):
        product: Host = vectors @ _weight(trace, step.inputs[1])
        return product
    raise InputError(f"{step.name}, which reads {source}, is not linear: no head spells words through it")


def _normed(trace: Trace, step: Step, vectors: Host, row: int, item: int) -> Host:
    op, parts = step.op, step.op.parts if isinstance(step.op, NormOfSum) else 1
    rows = (trace.window(name, (range(row, row + 1), range(vectors.shape[-1])), item) for name in step.inputs[:parts])
    x = sum((np.asarray(each[0], np.float64) for each in rows), np.zeros(1))
    centred = not isinstance(op, RmsNorm)
    epsilon = op.epsilon if isinstance(op, LayerNorm | RmsNorm | NormOfSum) else 0.0
    spread, moved = (x - x.mean(), vectors - vectors.mean(axis=-1, keepdims=True)) if centred else (x, vectors)
    normed: Host = moved / np.sqrt(np.mean(spread * spread) + epsilon) * _weight(trace, step.inputs[parts])
    return normed


def _weight(trace: Trace, name: str) -> Host:
    return np.asarray(trace.window(name, whole(trace.program.shape(name))), np.float64)
