"""Scores that are divided by something else than √d_k (Vaswani et al. 2017, §3.2.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tui_transformer.diagnosis.causes.cause import Cause, changing, groups, with_op
from tui_transformer.diagnosis.evaluation import Segment
from tui_transformer.engine.ops import Scale, Scores
from tui_transformer.engine.program import Step


def scaled_wrongly(segment: Segment) -> Iterator[Cause]:
    """Not divided, divided by √d_model or by d_k; divided where nothing is to be divided."""
    steps = [step for step in segment.steps if isinstance(step.op, Scale) and _of_scores(segment, step)]
    for group in groups(steps):
        width, model = _widths(segment, group[0])
        right = f"√d_k = √{width}"
        factor = group[0].op.factor if isinstance(group[0].op, Scale) else 1.0
        if factor == 1.0 and width != 1:
            says = f"when divided by {right}: this model does not divide its scores"
            yield _cause("scale-added", group, 1 / math.sqrt(width), says)
            continue
        root = factor * math.sqrt(width)  # 1, unless a layer divides by more
        yield _cause("scale-missing", group, root, f"without the division: divide the scores by {right}")
        if model != width:
            says = f"when divided by √d_model: divide by {right} instead of √{model}"
            yield _cause("scale-d_model", group, root / math.sqrt(model), says)
        if width != 1:
            says = f"when divided by d_k: divide by {right} instead of {width}"
            yield _cause("scale-d_k", group, root / width, says)
            says = f"when multiplied by √d_k: divide by {right} instead"
            yield _cause("scale-multiplied", group, root * math.sqrt(width), says)
            whole = math.isqrt(width)
            if whole**2 != width:
                says = f"when divided by the whole number {whole}: divide by {right} = {math.sqrt(width):.6g}"
                yield _cause("scale-integer", group, root / whole, says)
        yield from _by_other_sizes(group, root, width)


def _by_other_sizes(group: Sequence[Step], root: float, width: int) -> Iterator[Cause]:
    """Divided by the root of the number of heads or of tokens."""
    heads, _, keys = group[0].shape
    for letter, size in (("h", heads), ("n", keys)):
        if size not in (1, width):
            says = f"when divided by √{letter} = √{size}: divide by √d_k = √{width}"
            yield _cause("scale-size", group, root / math.sqrt(size), says)


def _cause(name: str, group: Sequence[Step], factor: float, says: str) -> Cause:
    return Cause(name, changing(with_op(step, Scale(factor, name)) for step in group), says)


def _of_scores(segment: Segment, step: Step) -> bool:
    source = segment.program.by_name.get(step.inputs[0])
    return source is not None and isinstance(source.op, Scores)


def _widths(segment: Segment, step: Step) -> tuple[int, int]:
    """d_k, and d_model: the width that the query is projected from, else of all heads together."""
    program = segment.program
    query = program.step(program.step(step.inputs[0]).inputs[0])
    heads, width = query.shape[0], query.shape[-1]
    weight = program.weights.get(f"{query.sublayer}.query.weight", ())
    return width, weight[0].size if len(weight) == 2 else heads * width
