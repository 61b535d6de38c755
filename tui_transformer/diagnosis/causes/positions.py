"""Tokens, positions and distances: the wrong rows of a table, other angles, other columns that are turned together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np

from tui_transformer.diagnosis.causes.attention import factor_of
from tui_transformer.diagnosis.causes.cause import (
    Cause,
    Change,
    Segment,
    altered,
    as_it_is,
    cause,
    computed,
    groups,
    instead,
    reading,
    result_of,
    transposed,
    with_op,
)
from tui_transformer.diagnosis.causes.ops import OtherPairs
from tui_transformer.diagnosis.naming.words import kind, last
from tui_transformer.engine.backend import Array, Host
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Add, Context, DistanceBias, Embed, RelativeBias, Rotate, Scores, Sinusoid
from tui_transformer.engine.program import Step
from tui_transformer.records import replace

MOST_TOKENS = 32
"""Most tokens among which one alone is looked for."""

FILLS = 4
"""Tokens that may stand where a sentence was shifted: those that padding and beginnings usually are."""


def embedding_causes(segment: Segment) -> Iterator[Cause]:
    """Rows times √d_model or not (Vaswani et al. 2017, §3.4), the row beside the right one, shifted tokens."""
    for group in groups(step for step in segment.of(Embed) if last(step.name) == "tokens"):
        root, width = math.sqrt(group[0].shape[-1]), group[0].shape[-1]
        scale = getattr(group[0].op, "scale", 1.0)
        for key, factor in (
            ("embedding-unscaled", 1.0),
            ("embedding-scaled", root),
            ("embedding-scaled/divided", 1 / root),
        ):
            says = f"√d_model = √{width}"
            right = says if math.isclose(scale, root) else spoken(scale, 6)
            wanted = "take them as they are" if scale == 1.0 else f"multiply them by {right}"
            if not math.isclose(factor, scale):
                yield cause(key, (altered(step, scale=factor) for step in group), root=says, wanted=wanted)
        yield cause("embedding-transposed", Change(weights={step.inputs[1]: transposed for step in group}))
        for by, word in ((1, "after"), (-1, "before")):
            for inside in (lambda ids, count: np.clip(ids, 0, count - 1), np.remainder):  # where there is no such row
                yield computed("token-off-by-one", group, partial(_beside, by, inside), word=word)
        if len(group) == 1:
            for key, ids, words in _other_ids(segment, group[0]):
                yield computed(key, group, lambda step, _, table, ids=ids: result_of(step, ids, table), **words)
    for step in segment.program.steps:
        tokens = segment.program.by_name.get(step.inputs[0]) if isinstance(step.op, Add) else None
        if tokens is not None and kind(step.name) == step.name and last(tokens.name) == "tokens":
            width = step.shape[-1]
            late = instead(step, lambda _, *parts, width=width: math.sqrt(width) * sum(parts))
            if getattr(tokens.op, "scale", 1.0) != 1.0:
                yield cause("embedding-scaled-late/rows", (altered(tokens, scale=1.0), late), width=width)
            else:
                yield cause("embedding-scaled-late", (late,), width=width)


def _beside(by: int, inside: Callable[[Array, int], Array], step: Step, ids: Array, table: Array) -> Array:
    return result_of(step, inside(ids + by, len(table)), table)


def _other_ids(segment: Segment, step: Step) -> Iterator[tuple[str, Host, dict[str, object]]]:
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
                yield "token-off-by-one/alone", other, {"where": where, "other": other[place], "given": given[place]}
    if given.shape[1] < 2:
        return
    for by, word, end in ((1, "late", 0), (-1, "early", -1)):
        rolled = np.roll(given, by, axis=1)
        for fill in (rolled[:, end], given[:, end], *(np.full(len(given), i) for i in range(min(FILLS, count)))):
            other = rolled.copy()
            other[:, end] = fill  # something stands in the place that is left
            yield "tokens-shifted", other, {"word": word}


# Positions that are added to the tokens (Vaswani et al. 2017, §3.5)

BASE = 10000.0
BASES = (1000.0, 100.0, 100_000.0, 1_000_000.0, 500_000.0, 1024.0)
"""Numbers that are taken in its place."""


def position_causes(segment: Segment) -> Iterator[Cause]:
    """One place too far, missing, sines and cosines in halves or in turn, other angles."""
    for group in groups(step for step in segment.steps if last(step.name) == "positions"):
        table = "/table" if isinstance(group[0].op, Embed) else ""
        for by, word in ((1, "more"), (-1, "less")):
            yield computed(f"position-off-by-one{table}", group, partial(_places_from, by), offset=by, word=word)
        yield computed("position-missing", group, _nothing)
        yield computed("position-twice", group, lambda step, *inputs: 2.0 * result_of(step, *inputs))
        if all(isinstance(step.op, Sinusoid) for step in group):
            halves = (altered(step, halves=not getattr(step.op, "halves", False)) for step in group)
            here = "/here" if getattr(group[0].op, "halves", False) else ""
            yield cause(f"position-halves{here}", halves)
            for way, exponent in EXPONENTS.items():
                yield computed(f"position-exponent/{way}", group, partial(_encoding, exponent, BASE, 0))
            yield computed("position-swapped", group, partial(_encoding, _paired, BASE, 1))
            for base in BASES:
                yield computed("position-base", group, partial(_encoding, _paired, base, 0), base=base)
    if segments := [step for step in segment.steps if last(step.name) == "segments"]:
        yield computed("segments-missing", segments, _nothing)


def _places_from(offset: int, step: Step, places: Array, *table: Array) -> Array:
    """The embedding of positions that count from another number; in a table as far as it has rows."""
    return result_of(step, np.clip(places + offset, 0, len(table[0]) - 1) if table else places + offset, *table)


def _nothing(step: Step, places: Array, *_: Array) -> Array:
    return np.zeros((*places.shape, step.shape[-1]))


Exponent = Callable[[Array, int], Array]
"""The exponent of 10000 of every column of so many."""


def _paired(column: Array, width: int) -> Array:
    return 2 * (column // 2) / width


def _encoding(exponent: Exponent, base: float, sine: int, step: Step, places: Array) -> Array:
    """Positions of these exponents; `sine`: 0 where sines are in even columns, 1 where they are in odd ones."""
    column = np.arange(step.shape[-1])
    angles = places[..., None] / base ** exponent(column, step.shape[-1])
    return np.where(column % 2 == sine, np.sin(angles), np.cos(angles))


EXPONENTS: Mapping[str, Exponent] = {
    "2j": lambda column, width: 2 * column / width,
    "i": lambda column, width: (column // 2) / width,
    "j": lambda column, width: column / width,
    "integer": lambda column, _: np.zeros(column.shape),
    "sign": lambda column, width: -_paired(column, width),
}


# Rotary positions (Su et al. 2021)

THETAS = (1e4, 5e5, 1e6, 1e5, 1e3, 1.6e5, 2.5e5, 5e6, 8e6, 1e7, 100.0, 10.0)
"""θ of published models, and round ones."""


def rotary_causes(segment: Segment) -> Iterator[Cause]:
    """Pairs side by side or half a head apart, another θ, turned backwards, a place too far, not at all."""
    turning = [step for step in segment.program.steps if isinstance(step.op, Rotate)]
    turns = {step.sublayer: step for step in turning}
    for group in groups(step for step in segment.of(Context) if step.sublayer in turns):
        yield cause("rotary-values", (each for s in group for each in _of_turned(s, (1,), turns[s.sublayer])))
    for group in groups(step for step in segment.of(Scores) if turns and step.sublayer not in turns):
        yield cause("rotary-added", (each for s in group for each in _of_turned(s, (0, 1), turning[0])))
    for group in groups(segment.of(Rotate)):
        yield cause("rotary-interleaved/pairs", map(paired_otherwise, group))
        yield cause("rotary-interleaved/halves", (paired_otherwise(step, is_inverse=True) for step in group))
        for key, frequencies, words in _other_angles(group[0], max(step.shape[0] for step in turning)):
            yield cause(key, (with_op(step, Rotate(frequencies)) for step in group), **words)
        yield computed("rotary-direction", group, lambda step, x, places: result_of(step, x, -places))
        for offset in (1, -1):
            turned = partial(lambda by, step, x, places: result_of(step, x, places + by), offset)
            yield computed("position-off-by-one/rotary", group, turned, offset=offset)
        yield computed("rotary-sign", group, _without_sign)
        yield computed("rotary-swapped", group, _exchanged)
        yield computed("rotary-axis", group, _by_head)
        yield computed("rotary-missing", group, as_it_is)


def _of_turned(step: Step, places: Iterable[int], turn: Step) -> Iterator[Step]:
    """The step of inputs that are turned before, as another step turns its own."""
    for place in places:
        turned = replace(turn, name=f"{step.inputs[place]}.turned", inputs=(step.inputs[place], turn.inputs[1]))
        yield turned
        step = reading(step, turned.name, place)
    yield step


def paired_otherwise(step: Step, *, is_inverse: bool = False) -> Step:
    """The rotation of neighbouring columns, in place of those half a head apart; or the other way round."""
    op = step.op
    return with_op(step, OtherPairs(op.frequencies, op.factor, is_inverse)) if isinstance(op, Rotate) else step


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


def _other_angles(step: Step, heads: int) -> Iterator[tuple[str, tuple[float, ...], dict[str, object]]]:
    """Causes, frequencies and words: powers of θ with another exponent than −2i/d_k, and of another θ."""
    op, head = step.op, step.shape[-1]
    if not isinstance(op, Rotate) or op.half < 2:
        return
    width, theta, own = 2 * op.half, op.frequencies[1] ** -op.half, "the frequencies of the configuration"
    columns = f"{width}, the columns that are turned" if width != head else f"d_k, d_k = {width}"
    powers = [theta ** (-i / op.half) for i in range(op.half)]
    if op.factor == 1.0 and math.isfinite(theta) and np.allclose(powers, op.frequencies, rtol=1e-4):
        theta = float(f"{theta:.4g}")
        own = f"θ = {spoken(theta, 6)}"
        d = "d_k" if width == head else str(width)
        exponents = {
            "integer": 0.0,
            "2i/d_model": 2 / (head * heads),
            f"2i/{head}": 2 / head,
            f"i/{d}": 1 / width,
            f"4i/{d}": 4 / width,
        }
        for said, exponent in exponents.items():
            key = "rotary-exponent/integer" if said == "integer" else "rotary-exponent"
            yield key, tuple(theta ** (-i * exponent) for i in range(op.half)), {"said": said, "columns": columns}
        for part in {head, head // 2, head // 4} - {0, 1, width}:
            frequencies = tuple(theta ** (-2 * i / part) for i in range(part // 2))
            yield "rotary-part", frequencies, {"other": part, "width": width, "head": head}
    else:
        steepest = (op.frequencies[0] / op.frequencies[1]) ** op.half  # the fastest columns are scaled alike, or not
        yield "rotary-scaling-missing", tuple(steepest ** (-i / op.half) for i in range(op.half)), {}
        if op.factor != 1.0:
            yield "rotary-factor-missing", op.frequencies, {"factor": op.factor}
    for other in THETAS:
        frequencies = tuple(other ** (-i / op.half) for i in range(op.half))
        if not np.allclose(frequencies, op.frequencies, rtol=1e-6):
            yield "rotary-theta", frequencies, {"theta": other, "wanted": own}


# Distances that are added to scores


def distance_causes(segment: Segment) -> Iterator[Cause]:
    """Buckets for both sides or one, distances from key to query, other slopes, nothing (Raffel et al. 2020, §2.1)."""
    for group in groups(segment.of(RelativeBias)):
        both = getattr(group[-1].op, "bidirectional", False)
        turned = (altered(step, bidirectional=not getattr(step.op, "bidirectional", False)) for step in group)
        yield cause(f"relative-bidirectional/{'two' if both else 'one'}", turned)
        yield computed("relative-flipped", group, lambda step, s, table, q, k: result_of(step, s, table, -q, -k))
        yield computed("relative-missing", group, as_it_is)
    for group in groups(segment.of(DistanceBias)):
        yield computed("relative-missing/slopes", group, as_it_is)
        slopes = np.array(getattr(group[0].op, "slopes", ()))
        others = {"sign": -slopes, "heads": slopes[::-1], "one": slopes * 0 + slopes[0]}
        others["first"] = slopes / slopes[0] if slopes[0] != 1.0 else slopes * slopes[-1]
        if (factor := factor_of(segment, group[0])) != 1.0:
            others["scaled"] = slopes * factor
        for key, other in others.items():
            for distance in DISTANCES:
                yield computed(f"slopes/{key}", group, partial(_less_distance, other, distance))


DISTANCES: tuple[Callable[[Array, Array], Array], ...] = (
    lambda query, key: np.abs(query - key),
    lambda query, key: query - key,
    lambda query, key: -key + 0 * query,
)
"""Alike where a query sees keys before it alone: the softmax takes out what is added to a row."""


def _less_distance(
    slopes: Array, distance: Callable[[Array, Array], Array], _: Step, scores: Array, queries: Array, keys: Array
) -> Array:
    return scores - slopes[:, None, None] * distance(queries[:, None, :, None], keys[:, None, None, :])
