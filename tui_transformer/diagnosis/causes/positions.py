"""Tokens and positions: the wrong rows of a table, other angles, and relative distances that are counted otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    CPU,
    Cause,
    Change,
    Function,
    Segment,
    around,
    changing,
    computed,
    computed_of,
    fed,
    groups,
    instead,
    last,
    transposed,
    with_op,
)
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.ops import Add, Context, Embed, RelativeBias, Rotate, Sinusoid
from tui_transformer.engine.program import Step

TABLE = 1
"""The place of the table among the inputs of an embedding."""

MOST_TOKENS = 32
"""Most tokens among which one alone is looked for."""

FILLS = 4
"""Tokens that may stand where a sentence was shifted: those that padding and beginnings usually are."""


def embedding_causes(segment: Segment) -> Iterator[Cause]:
    """Rows times √d_model or not (Vaswani et al. 2017, §3.4), the row beside the right one, shifted tokens."""
    for group in groups(step for step in segment.of(Embed) if last(step.name) == "tokens"):
        width = group[0].shape[-1]
        scale = group[0].op.scale if isinstance(group[0].op, Embed) else 1.0
        root = f"√d_model = √{width}"
        for name, factor, says in (
            ("embedding-unscaled", 1.0, f"are taken as they are: multiply them by {root}"),
            ("embedding-scaled", math.sqrt(width), f"are multiplied by {root}: take them as they are"),
            ("embedding-scaled", 1 / math.sqrt(width), f"are divided by {root}: do not divide"),
        ):
            if not math.isclose(factor, scale):
                ops = ((step, replace(step.op, scale=factor)) for step in group if isinstance(step.op, Embed))
                yield Cause(name, changing(with_op(step, op) for step, op in ops), f"when embedding rows {says}")
        turned = Change(weights={step.inputs[TABLE]: transposed for step in group})
        yield Cause("embedding-transposed", turned, "when the table is read as d_model × vocabulary: a token has a row")
        for by, word in ((1, "after"), (-1, "before")):
            says = f"with the row {word} each token's: rows count from 0"
            # where there is no such row, the nearest, or the first after the last
            yield fed("token-off-by-one", group, _beside(by, lambda ids, count: np.clip(ids, 0, count - 1)), says)
            yield fed("token-off-by-one", group, _beside(by, np.remainder), says)
        if len(group) == 1:
            yield from _other_ids(segment, group[0])
    yield from _scaled_late(segment)


def _beside(by: int, inside: Callable[[Array, int], Array]) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda ids, table: (inside(ids + by, len(table)), table)


def _other_ids(segment: Segment, step: Step) -> Iterator[Cause]:
    """One token of a sentence beside its own in the vocabulary; every token one place late or early."""
    source = segment.program.by_name.get(step.inputs[0])
    found = segment.trace.givens.get(step.inputs[0] if source is None else source.inputs[0])
    if found is None:
        return
    given: Host = np.asarray(found)
    count = segment.program.weights[step.inputs[TABLE]][0].size
    for place in np.ndindex(given.shape) if given.size <= MOST_TOKENS else ():
        for by in (1, -1):
            if 0 <= given[place] + by < count:
                other = given.copy()
                other[place] += by
                where = f"token {place[1]}" + (f" of sentence {place[0]}" if len(given) > 1 else "")
                says = f"when {where} has the ID {other[place]}: it is {given[place]}, counted from 0"
                yield _reading("token-off-by-one", step, other, says)
    if given.shape[1] < 2:
        return
    for by, words, end in ((1, "late", 0), (-1, "early", -1)):
        rolled = np.roll(given, by, axis=1)
        for fill in (rolled[:, end], given[:, end], *(np.full(len(given), i) for i in range(min(FILLS, count)))):
            other = rolled.copy()
            other[:, end] = fill  # something stands in the place that is left
            says = f"when every token stands one place {words}: token i of the sentence is in row i"
            yield _reading("tokens-shifted", step, other, says)


def _reading(name: str, step: Step, ids: Host, says: str) -> Cause:
    return fed(name, [step], lambda _, table: (ids, table), says)


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


# Positions that are added to the tokens (Vaswani et al. 2017, §3.5)

BASE = 10000.0
BASES = (1000.0, 100.0, 100_000.0, 1_000_000.0, 500_000.0, 1024.0)
"""Numbers that are taken in its place."""


def position_causes(segment: Segment) -> Iterator[Cause]:
    """One place too far, missing, sines and cosines in halves or in turn, other angles."""
    for group in groups(step for step in segment.steps if last(step.name) == "positions"):
        for offset, word in ((1, "more"), (-1, "less")):
            says = f"when positions count from {offset}: the first token is at position 0"
            if isinstance(group[0].op, Embed):
                says = f"when positions are one {word} than here: check where they begin"
            yield Cause("position-off-by-one", changing(_moved(step, offset) for step in group), says)
        says = "without the positions: add them to the embedding of the tokens"
        yield computed_of("position-missing", group, _nothing, says)
        says = "when the positions are added twice: add them once"
        yield computed_of("position-twice", group, lambda step, *inputs: 2.0 * step.op.forward(CPU, *inputs), says)
        if all(isinstance(step.op, Sinusoid) for step in group):
            yield from _sinusoids(group)
    if segments := [step for step in segment.steps if last(step.name) == "segments"]:
        says = "without the segments: add the row of each token's segment (token type)"
        yield computed_of("segments-missing", segments, _nothing, says)


def _moved(step: Step, offset: int) -> Step:
    if isinstance(step.op, Embed):
        return around(step, lambda places, table: (np.clip(places + offset, 0, len(table) - 1), table))
    return around(step, lambda places: (places + offset,))


def _nothing(step: Step, places: Array, *_: Array) -> Array:
    return np.zeros((*places.shape, step.shape[-1]))


def _sinusoids(group: tuple[Step, ...]) -> Iterator[Cause]:
    """Sines and cosines in other columns or of other angles."""
    ops = [step.op for step in group if isinstance(step.op, Sinusoid)]
    says = (
        "when sines and cosines alternate: all sines come before all cosines in this model"
        if ops[0].halves
        else "when all sines stand before all cosines: sine in even columns, cosine in odd ones"
    )
    halves = (with_op(step, replace(op, halves=not op.halves)) for step, op in zip(group, ops, strict=True))
    yield Cause("position-halves", changing(halves), says)
    for exponent, says in EXPONENTS:
        yield computed_of("position-exponent", group, _encoding(exponent), says)
    says = "when cosine is in even columns: sine is in even ones, cosine in odd ones"
    yield computed_of("position-swapped", group, _encoding(_paired, sine=1), says)
    for base in BASES:
        says = f"with powers of {base:g}: they are of {BASE:g}"
        yield computed_of("position-base", group, _encoding(_paired, base), says)


Exponent = Callable[[Array, int], Array]
"""The exponent of 10000 of every column of so many."""


def _paired(column: Array, width: int) -> Array:
    return 2 * (column // 2) / width


EXPONENTS: tuple[tuple[Exponent, str], ...] = (
    (
        lambda column, width: 2 * column / width,
        "when the exponent is 2j/d of column j: columns 2i and 2i + 1 share 2i/d",
    ),
    (lambda column, width: (column // 2) / width, "when the exponent is i/d: it is 2i/d"),
    (lambda column, width: column / width, "when the exponent is j/d of column j: columns 2i and 2i + 1 share 2i/d"),
    (
        lambda column, _: np.zeros(column.shape),
        "when 2i/d is divided without a remainder, to 0: divide floating-point numbers",
    ),
    (
        lambda column, width: -_paired(column, width),
        "when positions are multiplied by 10000^(2i/d): divide by it",
    ),
)


def _encoding(exponent: Exponent, base: float = BASE, sine: int = 0) -> Function:
    """Positions of these exponents; `sine`: 0 where sines are in even columns, 1 where they are in odd ones."""

    def function(step: Step, places: Array) -> Array:
        column = np.arange(step.shape[-1])
        angles = places[..., None] / base ** exponent(column, step.shape[-1])
        return np.where(column % 2 == sine, np.sin(angles), np.cos(angles))

    return function


# Rotary positions (Su et al. 2021)

THETAS = (1e4, 5e5, 1e6, 1e5, 1e3, 1.6e5, 2.5e5, 5e6, 8e6, 1e7, 100.0, 10.0)
"""θ of published models, and round ones."""

ROTATION = "x cos θ − x' sin θ, x' cos θ + x sin θ"


def rotary_causes(segment: Segment) -> Iterator[Cause]:
    """Pairs side by side or half a head apart, another θ, turned backwards, a place too far, not at all."""
    turning = [step for step in segment.program.steps if isinstance(step.op, Rotate)]
    turns = {step.sublayer: step for step in turning}
    for group in groups(step for step in segment.of(Context) if step.sublayer in turns):
        changed = []
        for step in group:
            turn = turns[step.sublayer]
            too = replace(step, name=f"{step.name}.turned", op=turn.op, inputs=(step.inputs[1], turn.inputs[1]))
            changed += [too, replace(step, inputs=(step.inputs[0], too.name))]
        yield Cause("rotary-values", changing(changed), "when values are turned too: turn queries and keys alone")
    for group in groups(segment.of(Rotate)):
        says = "when neighbouring columns are turned together: pair column i with column i + d_k/2"
        yield computed_of("rotary-interleaved", group, _other_pairs(forth=False), says)
        says = "when column i is turned with column i + d_k/2: pair neighbouring columns"
        yield computed_of("rotary-interleaved", group, _other_pairs(forth=True), says)
        for name, frequencies, says in _other_angles(group[0].op, max(step.shape[0] for step in turning)):
            yield Cause(name, changing(with_op(step, Rotate(frequencies)) for step in group), says)
        says = f"when turned backwards: {ROTATION}"
        yield fed("rotary-direction", group, lambda x, places: (x, -places), says)
        for offset in (1, -1):
            says = f"when places count from {offset}: the first token is at place 0"
            yield fed("position-off-by-one", group, _places_from(offset), says)
        yield computed_of("rotary-sign", group, _without_sign, f"without the minus: {ROTATION}")
        yield computed_of("rotary-swapped", group, _exchanged, f"when sine and cosine are exchanged: {ROTATION}")
        says = "when turned by the number of the head: turn by the place of the token"
        yield computed_of("rotary-axis", group, _by_head, says)
        says = "without the rotation: turn queries and keys before their product"
        yield computed("rotary-missing", group, lambda x, *_: x, says)


def _places_from(offset: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    return lambda x, places: (x, places + offset)


def _other_pairs(*, forth: bool) -> Function:
    """The rotation of the other pairs: columns are put in the other order, turned, and put back."""

    def function(step: Step, x: Array, places: Array) -> Array:
        width = 2 * _half(step)
        order: Host = np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])
        order = np.argsort(order) if forth else order
        order = np.concatenate([order, np.arange(width, x.shape[-1])])
        return step.op.forward(CPU, x[..., order], places)[..., np.argsort(order)]

    return function


def _half(step: Step) -> int:
    return step.op.half if isinstance(step.op, Rotate) else 0


def _without_sign(step: Step, x: Array, places: Array) -> Array:
    backwards, forwards = step.op.forward(CPU, x, -places), step.op.forward(CPU, x, places)
    return np.concatenate([backwards[..., : _half(step)], forwards[..., _half(step) :]], axis=-1)


def _exchanged(step: Step, x: Array, places: Array) -> Array:
    """A turn by 90° − θ: backwards by θ, then by 90°."""
    half, back = _half(step), step.op.forward(CPU, x, -places)
    return np.concatenate([-back[..., half : 2 * half], back[..., :half], back[..., 2 * half :]], axis=-1)


def _by_head(step: Step, x: Array, places: Array) -> Array:
    heads = np.broadcast_to(np.arange(x.shape[1]), (len(places), x.shape[1]))
    return step.op.forward(CPU, x.swapaxes(1, 2), heads).swapaxes(1, 2)


def _other_angles(op: object, heads: int) -> Iterator[tuple[str, tuple[float, ...], str]]:
    """Names, frequencies and what is said: powers of θ with another exponent than −2i/d_k, and of another θ."""
    if not isinstance(op, Rotate) or op.half < 2:
        return
    width, used = 2 * op.half, _theta(op)
    for exponent, says in (
        (0.0, "when 2i/d_k is divided without a remainder, to 0: divide floating-point numbers"),
        (1 / width, f"when the exponent is i/d_k: it is 2i/d_k, d_k = {width}"),
        (4 / width, f"when the exponent is 4i/d_k: it is 2i/d_k, d_k = {width}"),
        (2 / (width * heads), f"when the exponent is 2i/d_model: it is 2i/d_k, d_k = {width}"),
    ):
        if used:
            yield "rotary-exponent", tuple(used ** (-i * exponent) for i in range(op.half)), says
    wanted = f"θ = {used:g}" if used else "the frequencies of the configuration"
    for theta in THETAS:
        frequencies = tuple(theta ** (-i / op.half) for i in range(op.half))
        if not np.allclose(frequencies, op.frequencies, rtol=1e-6):
            yield "rotary-theta", frequencies, f"with θ = {theta:g}: this model has {wanted}"


def _theta(op: Rotate) -> float | None:
    """θ, where the frequencies are its powers."""
    theta = op.frequencies[1] ** -op.half
    powers = [theta ** (-i / op.half) for i in range(op.half)]
    if op.factor != 1.0 or not np.allclose(powers, op.frequencies, rtol=1e-4):
        return None
    return float(f"{theta:.4g}") if math.isfinite(theta) else None


# Relative bias (Raffel et al. 2020, §2.1)

ONE_SIDED = "when the buckets are shared out to both sides: a decoder gives all of them to keys before the query"
TWO_SIDED = "when all buckets are of keys before the query: half of them are of keys after it"


def distance_causes(segment: Segment) -> Iterator[Cause]:
    """Buckets for both sides or one, distances from key to query, the bias left out."""
    for group in groups(segment.of(RelativeBias)):
        ops = [step.op for step in group if isinstance(step.op, RelativeBias)]
        turned = [replace(op, bidirectional=not op.bidirectional) for op in ops]
        change = changing(map(with_op, group, turned))
        yield Cause("relative-bidirectional", change, TWO_SIDED if ops[-1].bidirectional else ONE_SIDED)
        says = "when distances are query − key: take key − query"
        yield fed("relative-flipped", group, lambda s, table, q, k: (s, table, -q, -k), says)
        says = "without the relative bias: add the row of the table for key − query"
        yield computed("relative-missing", group, lambda scores, *_: scores, says)
