"""Means of steps over a data set: what an ablation to the mean of many sentences sets a part to.

x̄ = Σ x ÷ N over all real tokens of all sentences, of every head and column alone. Set in place of a part, it takes out
what tells one sentence from another, and leaves what all have in common (Wang et al. 2022, "Interpretability in the
Wild", §2.2: mean ablation over a reference distribution).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tui_transformer.analysis.tokens import real_tokens
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import array_of_numbers
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError


def means(traces: Iterable[Trace], names: Sequence[str]) -> dict[str, Host]:
    """The mean of steps over the real tokens of all traces: (heads ×) 1 × columns each, float64, by their own names.

    Args:
        traces: One at a time; none is held longer than it takes. Several sentences in one are all counted.
        names: Steps with a row for each token.

    Raises:
        InputError: There is no trace or no such step, or a step has no row for each token or differs in its columns.
    """
    if isinstance(names, str):
        raise UsageError(f"names are a list: [{names!r}]")
    sums: dict[str, Host] = {}
    counts: dict[str, int] = {}
    for trace in traces:
        for name in dict.fromkeys(array_of_numbers(trace.program, name)[0] for name in names):
            total, count = _sum(trace, name)
            if name in sums and sums[name].shape != total.shape:
                shapes = " and ".join(shape_text(each.shape) for each in (sums[name], total))
                raise InputError(f"{name} has {shapes} of different sentences: it has no mean over them")
            sums[name] = total + sums.get(name, 0.0)
            counts[name] = counts.get(name, 0) + count
    if not sums:
        raise InputError("there is no sentence to take a mean over")
    return {name: total / counts[name] for name, total in sums.items()}


def _sum(trace: Trace, name: str) -> tuple[Host, int]:
    """The sum over the real tokens of all sentences, and how many there are."""
    axes = trace.program.axes(name)
    if name in trace.program.weights or len(axes) < 2 or not axes[-2].sequence:
        raise InputError(f"{name} has no row for each token: it has no mean over them")
    total, count = np.zeros((*(axis.size for axis in axes[:-2]), 1, axes[-1].size)), 0
    for item in range(trace.batch):
        real = real_tokens(trace, axes[-2], item)
        count += int(real.sum())
        for (*heads, rows, _), values in trace.blocks(name, item=item):
            kept = np.asarray(values, np.float64)[..., real[rows.start : rows.stop], :]
            place = tuple(slice(part.start, part.stop) for part in heads)
            total[place] += kept.sum(axis=-2, keepdims=True)
    return total, count
