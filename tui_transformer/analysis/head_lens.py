"""Logit lens by head: which words the output of every head raises at a token.

What head h writes at token i, z = context W_O, is carried to the logits with the norms on the way frozen: each divides
by the σ that it has in the forward pass, and β and biases are left out, so that the logits of all heads, with those of
the other terms (`analysis/attribution.py`), sum to the model's. Of it remains what edits on the way pass on. From each
the mean over all words is taken, which no softmax sees.

The comparison: `less_mean` takes from z its mean over the real tokens of the sentence, so that words which a head
raises everywhere fall away, and what remains is what it says here (a mean ablation seen through the lens). With the
maps of a tuned lens (`analysis/logit_lens.py`) z goes through that of its layer, z + z A, in place of the later layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tui_transformer.analysis.attentions import Attention, attentions
from tui_transformer.analysis.attribution import NORMS, frozen_norm, passed
from tui_transformer.analysis.circuits import in_float64
from tui_transformer.analysis.found import Again, Found
from tui_transformer.analysis.logit_lens import Affine, lens_of
from tui_transformer.analysis.measurable import logits_of
from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.gradient import LOGITS
from tui_transformer.engine.ops import Add, LayerNorm, Linear, MergeHeads, NormOfSum, RmsNorm, Scale, Unembed
from tui_transformer.engine.program import FEATURE, Program, Step
from tui_transformer.engine.trace import Trace, item_of
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

TOP = 5
"""Words of a head in a table."""


@dataclass(frozen=True, eq=False)
class HeadWords:
    """The logits of every word that a head raises at one token, less their mean."""

    attention: Attention
    head: int
    logits: Host

    def highest(self, count: int) -> tuple[tuple[int, float], ...]:
        """The words that it raises most, and by how much."""
        best = np.argsort(-self.logits, kind="stable")[:count]
        return tuple((int(word), float(self.logits[word])) for word in best)


def head_lens(
    trace: Trace,
    row: int,
    *,
    layer: int | None = None,
    less_mean: bool = False,
    item: int | None = None,
    tuned: Mapping[int, Affine] | None = None,
) -> Found[HeadWords]:
    """The words of every head at a token, in order.

    Args:
        trace: The sentence.
        row: The token.
        layer: Only this one.
        less_mean: Take from what a head writes its mean over the real tokens.
        item: Which sentence of a batch.
        tuned: What `fit_lens` gives: the map of every layer that its heads go through.

    Raises:
        InputError: The model has no logits of words, no such token or layer, or something on the way is not linear.
    """
    program = trace.program
    writing = writing_attentions(program)
    if not 0 <= row < program.shape(LOGITS)[0]:
        raise InputError(f"there is no token {row}: tokens are 0 to {program.shape(LOGITS)[0] - 1}")
    if layer is not None and all(each.layer != layer for each in writing):
        raise InputError(f"there is no layer {layer}")
    own, chosen = item_of(trace, item), [each for each in writing if layer in (None, each.layer)]

    def heads() -> Iterator[HeadWords]:
        for attention in chosen:
            rows = range(row, row + 1)
            logits = words_of_heads(trace, attention, rows, less_mean=less_mean, item=own, tuned=tuned)
            yield from (HeadWords(attention, head, words) for head, words in enumerate(logits[:, 0]))

    def cells(head: HeadWords) -> Iterator[dict[str, Any]]:
        place = {"part": head.attention.group, "layer": head.attention.layer, "head": head.head}
        for rank, (token, raised) in enumerate(head.highest(TOP), 1):
            yield place | {"rank": rank, "token": token, "word": trace.target_word(token), "logit": raised}

    return Again(sum(each.heads for each in chosen), heads, cells)


def writing_attentions(program: Program) -> tuple[Attention, ...]:
    """The attentions whose heads write into the stream that the logits are read from, in order.

    InputError where the model has no logits of words or no attention, or something on the way to them is not linear.
    """
    step = program.step(logits_of(program, "no head spells any"))
    writing = tuple(each for each in attentions(program) if each.queries.sequence == step.axes[0].sequence)
    if not writing:
        raise InputError("the model has no attention: no head spells any words")
    for each in writing:
        list(_way(program, _writing(program, each)[0].name))
    return writing


def words_of_heads(
    trace: Trace,
    attention: Attention,
    rows: range,
    *,
    less_mean: bool = False,
    item: int = 0,
    tuned: Mapping[int, Affine] | None = None,
) -> Host:
    """The logits of every word that the heads of one attention raise at tokens: heads × tokens × words, float64.

    From those of every head and token their mean over the words is taken; the rest is as in `head_lens`.
    """
    program = trace.program
    output, heads = _writing(program, attention)
    context = np.asarray(trace.window(heads, whole(program.shape(heads)), item), np.float64)
    values = context[:, rows.start : rows.stop]
    if less_mean:
        values = values - context[:, real_tokens(trace, attention.queries, item)].mean(axis=1, keepdims=True)
    matrix = in_float64(trace, output.inputs[1]).reshape(len(values), values.shape[-1], -1)
    name, written = output.name, values @ matrix
    if any(edit.name == output.inputs[0] for edit in trace.edits):  # of the heads side by side
        wide = np.einsum("htk,hg->htgk", values, np.eye(len(values))).reshape(*values.shape[:2], -1)
        written = passed(trace, output.inputs[0], wide, rows, item) @ matrix.reshape(-1, matrix.shape[-1])
    written = passed(trace, name, written, rows, item)
    if tuned is not None and attention.layer in tuned:  # through the map of its layer: behind the last layer
        lens = lens_of(program)
        leaves = next(depth.step for depth in lens.depths if depth.layer == attention.layer)
        written = tuned[attention.layer].turned(carried(trace, name, written, rows, item, leaves))
        name = lens.state
    logits = carried(trace, name, written, rows, item)
    return np.asarray(logits - logits.mean(axis=-1, keepdims=True))


def _writing(program: Program, attention: Attention) -> tuple[Step, str]:
    """The step in which the heads write, and that of their contexts."""
    own = program.step(attention.name).sublayer
    merge = next((step for step in program.steps if step.sublayer == own and isinstance(step.op, MergeHeads)), None)
    if merge is None:
        raise InputError(f"{attention.name}: the heads are not side by side before they are written")
    added = (step.name for step in program.readers(merge.name) if isinstance(step.op, Add))
    side_by_side = next(added, merge.name)  # where features are of the heads, with what a change of them adds
    written = (step for step in program.readers(side_by_side) if step.axes[-1].name != FEATURE)
    output = next((step for step in written if isinstance(step.op, Linear)), None)
    if output is None:
        raise InputError(f"{attention.name}: the heads write through no matrix")
    return output, merge.inputs[0]


def carried(trace: Trace, name: str, vectors: Host, rows: range, item: int, until: str = LOGITS) -> Host:
    """Vectors (heads × tokens × d) that are added to a step, as they arrive at the logits, or at a step before."""
    for step in _way(trace.program, name, until):
        op = step.op
        if isinstance(op, NORMS):
            norm = frozen_norm(trace, step, rows, item)
            moved = vectors - vectors.mean(axis=-1, keepdims=True) if norm.centred else vectors
            vectors = moved / norm.deviation * norm.weight
        elif isinstance(op, Scale):
            vectors = vectors * op.factor
        elif isinstance(op, Unembed):
            vectors = (vectors * op.scale) @ in_float64(trace, step.inputs[1]).T
        elif isinstance(op, Linear):
            vectors = vectors @ in_float64(trace, step.inputs[1])
        vectors = passed(trace, step.name, vectors, rows, item)
    return vectors


def _way(program: Program, name: str, until: str = LOGITS) -> Iterator[Step]:
    """The steps from a sublayer's output along the stream to the logits; InputError where one is not linear."""
    while name not in (until, LOGITS):
        readers = [step for step in program.readers(name) if name != step.name]
        ahead = [step for step in readers if step.role == "residual"] or [
            step for step in readers if isinstance(step.op, Add | Scale | LayerNorm | RmsNorm | NormOfSum)
        ]
        # a matrix that all goes through
        only = readers if len(readers) == 1 and isinstance(readers[0].op, Linear) else []
        step = (ahead or only or [program.step(LOGITS)])[0]
        if name not in step.inputs:
            raise InputError(f"what is behind {name} is not linear: nothing spells words through it")
        if not isinstance(step.op, Add | Scale | LayerNorm | RmsNorm | NormOfSum | Unembed | Linear):
            raise InputError(f"{step.name}, which reads {name}, is not linear: nothing spells words through it")
        yield step
        name = step.name
