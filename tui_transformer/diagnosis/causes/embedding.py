"""Embedding rows times √d_model or not (Vaswani et al. 2017, §3.4), the wrong rows, and the wrong tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import Cause, around, changing, groups, instead, last, transposed, with_op
from tui_transformer.diagnosis.evaluation import Change, Segment
from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Add, Embed
from tui_transformer.engine.program import Step

TABLE = 1
"""The place of the table among the inputs of an embedding."""

MOST_TOKENS = 32
"""In so many tokens one alone is looked for."""

FILLS = 4
"""Tokens that may stand where a sentence was shifted: those that padding and beginnings usually are."""


def embedded_wrongly(segment: Segment) -> Iterator[Cause]:
    """Not scaled, scaled, the row beside the right one, tokens beside their places."""
    steps = [step for step in segment.steps if isinstance(step.op, Embed) and last(step.name) == "tokens"]
    for group in groups(steps):
        width = group[0].shape[-1]
        scale = group[0].op.scale if isinstance(group[0].op, Embed) else 1.0
        root = f"√d_model = √{width}"
        for name, factor, says in (
            ("embedding-unscaled", 1.0, f"when embedding rows are taken as they are: multiply them by {root}"),
            (
                "embedding-scaled",
                math.sqrt(width),
                f"when embedding rows are multiplied by {root}: take them as they are",
            ),
            ("embedding-scaled", 1 / math.sqrt(width), f"when embedding rows are divided by {root}: do not divide"),
        ):
            if not math.isclose(factor, scale):
                change = changing(
                    replace(step, op=replace(step.op, scale=factor)) for step in group if isinstance(step.op, Embed)
                )
                yield Cause(name, change, says)
        turned = Change(weights={step.inputs[TABLE]: transposed for step in group})
        yield Cause("embedding-transposed", turned, "when the table is read as d_model × vocabulary: a token has a row")
        for change, words in (*_all_moved(group), *_one_moved(segment, group)):
            yield Cause("token-off-by-one", change, words)
        for change, words in _shifted(segment, group):
            yield Cause("tokens-shifted", change, words)
    yield from _scaled_late(segment)


def _all_moved(group: Sequence[Step]) -> Iterator[tuple[Change, str]]:
    """The row after or before each token's; where there is none, the nearest, or the first after the last."""
    for by, word in ((1, "after"), (-1, "before")):
        for inside in (lambda rows, count: np.clip(rows, 0, count - 1), np.remainder):
            change = changing(
                around(step, lambda ids, table, by=by, inside=inside: (inside(ids + by, len(table)), table))
                for step in group
            )
            yield change, f"with the row {word} each token's: rows count from 0"


def _one_moved(segment: Segment, group: Sequence[Step]) -> Iterator[tuple[Change, str]]:
    """One token of a sentence that is the one after or before it in the vocabulary."""
    given = _ids(segment, group[0])
    if len(group) > 1 or given is None or given.size > MOST_TOKENS:
        return
    count = segment.program.weights[group[0].inputs[TABLE]][0].size
    for place in np.ndindex(given.shape):
        for by in (1, -1):
            if 0 <= given[place] + by < count:
                other = given.copy()
                other[place] += by
                where = f"token {place[1]}" + (f" of sentence {place[0]}" if len(given) > 1 else "")
                says = f"when {where} has the ID {other[place]}: it is {given[place]}, counted from 0"
                yield _reading(group, other), says


def _shifted(segment: Segment, group: Sequence[Step]) -> Iterator[tuple[Change, str]]:
    """Every token in the place of the one before or after it, and something in the place that is left."""
    given = _ids(segment, group[0])
    if len(group) > 1 or given is None or given.shape[1] < 2:
        return
    count = segment.program.weights[group[0].inputs[TABLE]][0].size
    for by, words, at, end in ((1, "one place late", 0, 0), (-1, "one place early", -1, -1)):
        rolled = np.roll(given, by, axis=1)
        for fill in (rolled[:, at], given[:, end], *(np.full(len(given), i) for i in range(min(FILLS, count)))):
            other = rolled.copy()
            other[:, at] = fill
            yield _reading(group, other), f"when every token stands {words}: token i of the sentence is in row i"


def _ids(segment: Segment, step: Step) -> Host | None:
    source = segment.program.by_name.get(step.inputs[0])
    given = segment.trace.givens.get(step.inputs[0] if source is None else source.inputs[0])
    return None if given is None else np.asarray(given)


def _reading(group: Sequence[Step], ids: Host) -> Change:
    return changing(around(step, lambda _, table: (ids, table)) for step in group)


def _scaled_late(segment: Segment) -> Iterator[Cause]:
    """The sum of tokens and positions times √d_model."""
    for step in segment.program.steps:
        tokens = segment.program.by_name.get(step.inputs[0]) if isinstance(step.op, Add) else None
        if tokens is None or not isinstance(tokens.op, Embed) or last(tokens.name) != "tokens":
            continue
        width, scaled = step.shape[-1], tokens.op.scale != 1.0
        bare = with_op(tokens, replace(tokens.op, scale=1.0))
        late = instead(step, lambda *parts, width=width: math.sqrt(width) * sum(parts))
        says = "multiply the embedding rows alone, before" if scaled else "add them as they are"
        says = f"when the sum with the positions is multiplied by √d_model = √{width}: {says}"
        yield Cause("embedding-scaled-late", changing((bare, late) if scaled else (late,)), says)
