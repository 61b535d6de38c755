"""Tokens and positions: the wrong rows of a table, other angles, and relative distances that are counted otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Change,
    Function,
    Row,
    Segment,
    changing,
    computed,
    groups,
    instead,
    last,
    result_of,
    transposed,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import OtherPairs
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.ops import Add, Context, Embed, RelativeBias, Rotate, Sinusoid
from tui_transformer.engine.program import Step

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
                scaled = changing(_scaled(step, factor) for step in group)
                yield Cause(name, scaled, f"when embedding rows {says}")
        turned = Change(weights={step.inputs[1]: transposed for step in group})
        yield Cause("embedding-transposed", turned, "when the table is read as d_model × vocabulary: a token has a row")
        for by, word in ((1, "after"), (-1, "before")):
            says = f"with the row {word} each token's: rows count from 0"
            for inside in (lambda ids, count: np.clip(ids, 0, count - 1), np.remainder):  # where there is no such row
                yield computed("token-off-by-one", group, _beside(by, inside), says)
        if len(group) == 1:
            yield from _other_ids(segment, group[0])
    for step in segment.program.steps:
        tokens = segment.program.by_name.get(step.inputs[0]) if isinstance(step.op, Add) else None
        if tokens is not None and isinstance(tokens.op, Embed) and last(tokens.name) == "tokens":
            scaled_there, width = tokens.op.scale != 1.0, step.shape[-1]
            late = instead(step, lambda _, *parts, width=width: math.sqrt(width) * sum(parts))
            says = "multiply the embedding rows alone, before" if scaled_there else "add them as they are"
            says = f"when the sum with the positions is multiplied by √d_model = √{width}: {says}"
            change = changing((_scaled(tokens, 1.0), late) if scaled_there else (late,))
            yield Cause("embedding-scaled-late", change, says)


def _scaled(step: Step, factor: float) -> Step:
    return with_op(step, replace(step.op, scale=factor)) if isinstance(step.op, Embed) else step


def _beside(by: int, inside: Callable[[Array, int], Array]) -> Function:
    return lambda step, ids, table: result_of(step, inside(ids + by, len(table)), table)


def _other_ids(segment: Segment, step: Step) -> Iterator[Cause]:
    """One token of a sentence beside its own in the vocabulary; every token one place late or early."""
    source = segment.program.by_name.get(step.inputs[0])
    found = segment.trace.givens.get(step.inputs[0] if source is None else source.inputs[0])
    if found is None:
        return
    given: Host = np.asarray(found)
    count = segment.program.weights[step.inputs[1]][0].size
    for place in np.ndindex(given.shape) if given.size <= MOST_TOKENS else ():
        for by in (1, -1):
            if 0 <= given[place] + by < count:
                other = given.copy()
                other[place] += by
                where = f"token {place[1]}" + (f" of sentence {place[0]}" if len(given) > 1 else "")
                says = f"when {where} has the ID {other[place]}: it is {given[place]}, counted from 0"
                yield computed("token-off-by-one", [step], _of_ids(other), says)
    if given.shape[1] < 2:
        return
    for by, words, end in ((1, "late", 0), (-1, "early", -1)):
        rolled = np.roll(given, by, axis=1)
        for fill in (rolled[:, end], given[:, end], *(np.full(len(given), i) for i in range(min(FILLS, count)))):
            other = rolled.copy()
            other[:, end] = fill  # something stands in the place that is left
            says = f"when every token stands one place {words}: token i of the sentence is in row i"
            yield computed("tokens-shifted", [step], _of_ids(other), says)


def _of_ids(ids: Host) -> Function:
    return lambda step, _, table: result_of(step, ids, table)


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
            yield computed("position-off-by-one", group, _places_from(offset), says)
        says = "without the positions: add them to the embedding of the tokens"
        yield computed("position-missing", group, _nothing, says)
        says = "when the positions are added twice: add them once"
        yield computed("position-twice", group, lambda step, *inputs: 2.0 * result_of(step, *inputs), says)
        ops = [(step, step.op) for step in group if isinstance(step.op, Sinusoid)]
        if len(ops) == len(group):
            says = "when all sines stand before all cosines: sine in even columns, cosine in odd ones"
            if ops[0][1].halves:
                says = "when sines and cosines alternate: all sines come before all cosines in this model"
            change = changing(with_op(step, replace(op, halves=not op.halves)) for step, op in ops)
            yield Cause("position-halves", change, says)
            for name, function, says in OTHER_ANGLES:
                yield computed(name, group, function, says)
    if segments := [step for step in segment.steps if last(step.name) == "segments"]:
        says = "without the segments: add the row of each token's segment (token type)"
        yield computed("segments-missing", segments, _nothing, says)


def _places_from(offset: int) -> Function:
    """The embedding of positions that count from another number; in a table as far as it has rows."""

    def function(step: Step, places: Array, *table: Array) -> Array:
        moved = np.clip(places + offset, 0, len(table[0]) - 1) if table else places + offset
        return result_of(step, moved, *table)

    return function


def _nothing(step: Step, places: Array, *_: Array) -> Array:
    return np.zeros((*places.shape, step.shape[-1]))


Exponent = Callable[[Array, int], Array]
"""The exponent of 10000 of every column of so many."""


def _paired(column: Array, width: int) -> Array:
    return 2 * (column // 2) / width


def _encoding(exponent: Exponent, base: float = BASE, sine: int = 0) -> Function:
    """Positions of these exponents; `sine`: 0 where sines are in even columns, 1 where they are in odd ones."""

    def function(step: Step, places: Array) -> Array:
        column = np.arange(step.shape[-1])
        angles = places[..., None] / base ** exponent(column, step.shape[-1])
        return np.where(column % 2 == sine, np.sin(angles), np.cos(angles))

    return function


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
    (lambda column, width: -_paired(column, width), "when positions are multiplied by 10000^(2i/d): divide by it"),
)
OTHER_ANGLES: tuple[Row, ...] = (
    *(("position-exponent", _encoding(exponent), says) for exponent, says in EXPONENTS),
    (
        "position-swapped",
        _encoding(_paired, sine=1),
        "when cosine is in even columns: sine is in even ones, cosine in odd ones",
    ),
    *(("position-base", _encoding(_paired, b), f"with powers of {b:g}: they are of {BASE:g}") for b in BASES),
)


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
        for is_inverse, says in (
            (False, "when neighbouring columns are turned together: pair column i with column i + d_k/2"),
            (True, "when column i is turned with column i + d_k/2: pair neighbouring columns"),
        ):
            change = changing(paired_otherwise(step, is_inverse=is_inverse) for step in group)
            yield Cause("rotary-interleaved", change, says)
        for name, frequencies, says in _other_angles(group[0].op, max(step.shape[0] for step in turning)):
            yield Cause(name, changing(with_op(step, Rotate(frequencies)) for step in group), says)
        for name, function, says in ROTATIONS:
            yield computed(name, group, function, says)


def paired_otherwise(step: Step, *, is_inverse: bool = False) -> Step:
    """The rotation of neighbouring columns, in place of those half a head apart; or the other way round."""
    op = step.op
    return with_op(step, OtherPairs(op.frequencies, op.factor, is_inverse)) if isinstance(op, Rotate) else step


def _turned_from(offset: int) -> Function:
    return lambda step, x, places: result_of(step, x, places + offset)


def _halves(step: Step, x: Array, places: Array) -> list[Array]:
    """What is turned backwards: the first half of the columns, the second, and those that are not turned."""
    half = step.op.half if isinstance(step.op, Rotate) else 0
    return np.split(result_of(step, x, -places), [half, 2 * half], axis=-1)


def _without_sign(step: Step, x: Array, places: Array) -> Array:
    first = _halves(step, x, places)[0]
    return np.concatenate([first, result_of(step, x, places)[..., first.shape[-1] :]], axis=-1)


def _exchanged(step: Step, x: Array, places: Array) -> Array:
    """A turn by 90° − θ: backwards by θ, then by 90°."""
    first, second, rest = _halves(step, x, places)
    return np.concatenate([-second, first, rest], axis=-1)


def _by_head(step: Step, x: Array, places: Array) -> Array:
    heads = np.broadcast_to(np.arange(x.shape[1]), (len(places), x.shape[1]))
    return result_of(step, x.swapaxes(1, 2), heads).swapaxes(1, 2)


ROTATIONS: tuple[Row, ...] = (
    ("rotary-direction", lambda step, x, places: result_of(step, x, -places), f"when turned backwards: {ROTATION}"),
    ("position-off-by-one", _turned_from(1), "when places count from 1: the first token is at place 0"),
    ("position-off-by-one", _turned_from(-1), "when places count from -1: the first token is at place 0"),
    ("rotary-sign", _without_sign, f"without the minus: {ROTATION}"),
    ("rotary-swapped", _exchanged, f"when sine and cosine are exchanged: {ROTATION}"),
    ("rotary-axis", _by_head, "when turned by the number of the head: turn by the place of the token"),
    ("rotary-missing", lambda _, x, *__: x, "without the rotation: turn queries and keys before their product"),
)


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
        ops = [(step, step.op) for step in group if isinstance(step.op, RelativeBias)]
        change = changing(with_op(step, replace(op, bidirectional=not op.bidirectional)) for step, op in ops)
        yield Cause("relative-bidirectional", change, TWO_SIDED if ops[-1][1].bidirectional else ONE_SIDED)
        says = "when distances are query − key: take key − query"
        yield computed("relative-flipped", group, lambda step, s, table, q, k: result_of(step, s, table, -q, -k), says)
        says = "without the relative bias: add the row of the table for key − query"
        yield computed("relative-missing", group, lambda _, scores, *__: scores, says)
