"""Rotary positions as checkpoints describe them: frequencies, how a longer context scales them, and kinds of layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from operator import truediv
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import LARGEST_SIZE, a_size, is_number, list_of, one_of, positive, shown, truth
from tui_transformer.model.description import Rotary
from tui_transformer.records import dataclass, field, fields

DEFAULT_THETA = 10000.0
LARGEST_FACTOR = 1e15
"""Of turned columns: scores have its square, and far beyond it are infinite in the precision of published models."""

FEWEST_TURNS, MOST_TURNS = 1e-9, 1e9
NOT_NULL = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")
"""Keys that the published code reads whenever they are there: null is none of the default values."""


@dataclass(frozen=True)
class Rope:
    """The keys of `rope_parameters`.

    Attributes:
        rope_type: One of `TYPES`.
        rope_theta: θ of θ^(−2i/width).
        partial_rotary_factor: The part of a head's columns that is turned.
        factor: How many times longer the context was made.
        low_freq_factor: With `llama3`: waves longer than the old context ÷ this are scaled.
        high_freq_factor: With `llama3`: waves shorter than the old context ÷ this are kept.
        original_max_position_embeddings: With `llama3`, `yarn` and `longrope`: the old context, in tokens.
        beta_fast: With `yarn`: waves that turn more often than this in the old context are kept.
        beta_slow: With `yarn`: waves that turn less often than this in the old context are scaled.
        truncate: With `yarn`: the two bounds are rounded to whole pairs of columns.
        attention_factor: With `yarn` and `longrope`: what turned columns are multiplied by; None to work it out.
        mscale: With `yarn`: with `mscale_all_dim`, what it is worked out from.
        mscale_all_dim: The same.
        short_factor: With `longrope`: what the frequency of every pair is divided by.
        long_factor: The same, in sentences that are longer than the old context.
        context: With `dynamic`: frequencies change in sentences of more tokens than this; it is
            `max_position_embeddings`.

    Raises:
        UsageError: A kind that is not implemented, or a number that cannot be.
    """

    rope_type: str = "default"
    rope_theta: float = DEFAULT_THETA
    partial_rotary_factor: float = 1.0
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    context: int = 2048

    def __post_init__(self) -> None:
        one_of(TYPES)("rope_type", self.rope_type)
        _number("rope_theta", self.rope_theta, 1.0, math.inf)
        _number("factor", self.factor, 1.0, float(LARGEST_SIZE))
        _number("partial_rotary_factor", self.partial_rotary_factor, 0.0, 1.0)
        _number("low_freq_factor", self.low_freq_factor, 0.0, math.inf)
        _number("high_freq_factor", self.high_freq_factor, self.low_freq_factor, math.inf)
        if self.high_freq_factor == self.low_freq_factor:
            raise UsageError(f"high_freq_factor {shown(self.high_freq_factor)} is not larger than low_freq_factor")
        for key in ("beta_fast", "beta_slow"):
            _number(key, getattr(self, key), FEWEST_TURNS, MOST_TURNS)
        if self.attention_factor is not None:
            _number("attention_factor", self.attention_factor, 0.0, LARGEST_FACTOR)
        for key in ("mscale", "mscale_all_dim"):
            _number(key, getattr(self, key) or 1.0, 0.0, LARGEST_FACTOR)
        truth("truncate", self.truncate)
        for key in PAIR_FACTORS:
            factors = getattr(self, key)
            if not isinstance(factors, tuple):
                raise UsageError(f"{key} {shown(factors)} is not a list of numbers")
            for each in factors:
                positive(key, each)
        a_size("max_position_embeddings", self.context)
        if self.rope_type == "yarn" and self.rope_theta == 1.0:
            raise UsageError("rope_theta 1 gives every pair of columns the same wave: yarn has nothing to tell apart")
        a_size("original_max_position_embeddings", self.original_max_position_embeddings)
        made_longer = self.rope_type == "longrope" and self.factor != 1.0 and self.attention_factor is None
        if made_longer and self.original_max_position_embeddings == 1:
            raise UsageError("original_max_position_embeddings 1 has no logarithm to divide by: use 2 or more")

    def checked_width(self, model_type: str, head_width: int, *, in_part: bool = False) -> int:
        """The same as `width`, for heads of a family; `in_part`: a part of the columns may be turned."""
        if self.partial_rotary_factor != 1.0 and not in_part:
            raise UsageError(f"partial_rotary_factor other than 1 is not supported in {model_type} models")
        return self.width(head_width)

    def width(self, head_width: int) -> int:
        """The columns of a head that are turned; UsageError where they are not pairs."""
        width = int(head_width * self.partial_rotary_factor)
        if width < 2 or width % 2:
            raise UsageError(
                f"partial_rotary_factor {self.partial_rotary_factor:g} of {head_width} columns of a head is {width}: "
                "rotary positions turn pairs of columns"
            )
        if width == 2 and self.rope_type == "dynamic":
            raise UsageError("rope_type dynamic of 2 columns has no frequency to scale: it is not supported")
        for key in PAIR_FACTORS if self.rope_type == "longrope" else ():
            if len(getattr(self, key)) != width // 2:
                raise UsageError(f"{key} has {len(getattr(self, key))} numbers for {width // 2} pairs of columns")
        return width

    def rotary(self, head_width: int) -> Rotary:
        """The turns of the columns of a head."""
        width = self.width(head_width)
        frequencies, factor = self.frequencies(width), self.turned_factor()
        contexts = {"dynamic": self.context, "longrope": self.original_max_position_embeddings}
        if self.rope_type not in contexts:
            return Rotary(frequencies, factor)
        return Rotary(frequencies, factor, contexts[self.rope_type], partial(self.frequencies, width))

    def turned_factor(self) -> float:
        """What turned columns are multiplied by, unless the file says it.

        With `yarn` 0.1 ln(factor) + 1 (Peng et al. 2023, §3.4), or the ratio of two such; with `longrope`
        √(1 + ln(factor) ÷ ln(old context)) (as published with Phi-3).
        """
        if self.rope_type not in ("yarn", "longrope"):
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        growth = math.log(self.factor)
        if self.rope_type == "longrope":
            return math.sqrt(1.0 + growth / math.log(self.original_max_position_embeddings)) if growth else 1.0
        if self.mscale and self.mscale_all_dim:
            return (0.1 * self.mscale * growth + 1.0) / (0.1 * self.mscale_all_dim * growth + 1.0)
        return 0.1 * growth + 1.0

    def frequencies(self, width: int, tokens: int | None = None) -> tuple[float, ...]:
        """Frequency θ^(−2i/width) for every pair i of columns, scaled (Su et al. 2021, §3.2.2); in radians a token.

        With `linear` ÷ factor: position interpolation (Chen et al. 2023, equation 4). With `longrope` ÷ a number of the
        pair, with `dynamic` as they are; `tokens` are those of a sentence that is longer than the model was made for:
        then with `longrope` ÷ the other number, with `dynamic` of a larger θ (NTK-aware scaling, 2023, as published):
        θ · (factor · tokens ÷ context − (factor − 1))^(width ÷ (width − 2)).
        """
        theta = self.rope_theta
        if tokens is not None and self.rope_type == "dynamic":
            growth = self.factor * tokens / self.context - (self.factor - 1.0)
            theta *= growth ** (width / (width - 2))
            _number("rope_theta", theta, 1.0, math.inf)
        plain = tuple(theta ** (-2 * pair / width) for pair in range(width // 2))
        match self.rope_type:
            case "linear":
                return tuple(frequency / self.factor for frequency in plain)
            case "llama3":
                return tuple(_llama3(self, frequency) for frequency in plain)
            case "yarn":
                return _yarn(self, plain, width)
            case "longrope":
                return tuple(map(truediv, plain, self.short_factor if tokens is None else self.long_factor))
            case _:
                return plain


def read_rope(
    raw: Mapping[str, Any],
    *,
    theta: tuple[str, ...] = ("rope_theta",),
    default: float = DEFAULT_THETA,
    partial: tuple[str, ...] = ("partial_rotary_factor",),
    whole: float = 1.0,
    context: int = 2048,
) -> Rope:
    """Rotary positions as a `config.json` has them, in `rope_parameters` (new) or beside `rope_scaling` (old).

    Args:
        raw: The JSON object.
        theta: Old names of θ, the first that is there counts.
        default: θ where the file says nothing.
        partial: Old names of the part that is turned.
        whole: The part where the file says nothing.
        context: `max_position_embeddings` where the file says nothing.

    Raises:
        UsageError: A kind of scaling that is not implemented, or one without its numbers.
    """
    given = _table(raw)
    nulls = [key for key in NOT_NULL if key in given and given[key] is None]
    for name, names in (("rope_theta", theta), ("partial_rotary_factor", partial if whole != 1.0 else ())):
        nulls += [key for key in names if name not in given and key in raw and raw[key] is None]
    if nulls:
        raise UsageError(f"{nulls[0]} is null, which is no number: leave it out for the default")
    kind = given.get("rope_type", given.get("type", "default"))
    one_of(TYPES)("rope_type", kind)
    keys = [each.name for each in fields(Rope) if each.name not in ("rope_type", "context")]
    values = {key: given[key] for key in keys if given.get(key) is not None}
    for name, names, usual in (("rope_theta", theta, default), ("partial_rotary_factor", partial, whole)):
        values.setdefault(name, next((raw[key] for key in names if raw.get(key) is not None), usual))
    values["context"] = raw.get("max_position_embeddings", context)
    if kind in OF_AN_OLD_CONTEXT:
        old = {"original_max_position_embeddings": values["context"]} | values
        values["original_max_position_embeddings"] = {**old, **raw}["original_max_position_embeddings"]
        values["truncate"] = given.get("truncate", True) or False  # null is no
    if values.get("factor") is None and (kind == "longrope" or (kind == "yarn" and "factor" in given)):
        new, old_context = values["context"], values["original_max_position_embeddings"]
        a_size("max_position_embeddings", new)
        a_size("original_max_position_embeddings", old_context)
        values["factor"] = float(max(new / old_context, 1.0 if kind == "longrope" else 0.0))
    for key in PAIR_FACTORS:
        values |= {key: tuple(values[key])} if isinstance(values.get(key), list) else {}
    for key in NEEDED.get(kind, ()):
        if key not in values:
            raise UsageError(f"rope_parameters of type {kind} has no {key}")
    return Rope(rope_type=kind, **values)


def _table(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The numbers of rotary positions; empty where there are none."""
    given = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    other = raw.get("rope_parameters")
    if not isinstance(other, Mapping | None):
        raise UsageError(f"rope_parameters {shown(other)} is not a table of numbers")
    if not isinstance(given, Mapping) or any(isinstance(value, Mapping) for value in given.values()):
        raise UsageError(f"rope_parameters {shown(given)} is not one table of numbers for all layers")
    return given


def _llama3(rope: Rope, frequency: float) -> float:
    """Long waves ÷ factor, short ones as they are, a mixture between (`apply_scaling` of Meta's Llama 3.1 code).

    With turns = old context · frequency ÷ 2π, how often the wave turns in the old context:
    share = (turns − low) ÷ (high − low), cut to 0 … 1, and frequency · (share + (1 − share) ÷ factor).
    """
    turns = rope.original_max_position_embeddings * frequency / (2.0 * math.pi)
    share = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    share = min(max(share, 0.0), 1.0)
    return frequency * (share + (1.0 - share) / rope.factor)


def _yarn(rope: Rope, frequencies: tuple[float, ...], width: int) -> tuple[float, ...]:
    """Short waves as they are, long ones ÷ factor, a mixture between (Peng et al. 2023, §3.2 and §3.3).

    The mixture grows evenly with the number of the pair, from the one that turns `beta_fast` times in the old context
    to the one that turns `beta_slow` times; both as the published code rounds and cuts them. So often turns the pair i,
    a real number, with old context · θ^(−2i/width) ÷ 2π = turns.
    """
    old = rope.original_max_position_embeddings
    wanted = (old / (turns * 2.0 * math.pi) for turns in (rope.beta_fast, rope.beta_slow))
    low, high = (width * math.log(each) / (2.0 * math.log(rope.rope_theta)) for each in wanted)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    span = high - low if high != low else 0.001
    shares = (min(max((pair - low) / span, 0.0), 1.0) for pair in range(len(frequencies)))
    return tuple(each * (share / rope.factor + 1.0 - share) for each, share in zip(frequencies, shares, strict=True))


TYPES = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
PAIR_FACTORS = ("short_factor", "long_factor")
OF_AN_OLD_CONTEXT = ("llama3", "yarn", "longrope")  # they count from the context before it was stretched

NEEDED = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": ("factor",),
    "longrope": PAIR_FACTORS,
}


def _number(key: str, value: object, lowest: float, largest: float) -> None:
    """A finite number in a range; 0 is in none."""
    if not is_number(value, -math.inf) or value == 0:
        raise UsageError(f"{key} {shown(value)} is not a finite number other than 0")
    if not lowest <= value <= largest:
        above = f"from {lowest:g}" if largest == math.inf else f"between {lowest:g} and {largest:g}"
        raise UsageError(f"{key} {shown(value)} is not a number {above}")


# Kinds of layers: `layer_types` of a `config.json` says which see all keys and which a window

FULL, SLIDING = "full_attention", "sliding_attention"


layer_kinds = list_of(FULL, SLIDING)


def check_layer_kinds(kinds: tuple[str, ...] | None, layers: int, window: int | None) -> None:
    """Raise UsageError where `layer_types` names other than all layers, or windows where there are none."""
    if kinds is not None and len(kinds) != layers:
        raise UsageError(f"layer_types names {len(kinds)} layers of {layers}")
    if window is None and SLIDING in (kinds or ()):
        raise UsageError(f"layer_types says {SLIDING}, but there is no sliding_window in use")


@dataclass(frozen=True)
class LayerRopes:
    """The tables of `rope_parameters`, one for every kind of layer.

    Attributes:
        full_attention: Of layers that see all keys.
        sliding_attention: Of layers with a window.
    """

    full_attention: Rope = field(default_factory=Rope)
    sliding_attention: Rope = field(default_factory=Rope)


def read_layer_ropes(
    raw: Mapping[str, Any], theta: float, sliding_theta: float, sliding_key: str, context: int
) -> LayerRopes:
    """The rotary positions of both kinds of layers in a `config.json`, as `read_rope` reads those of one.

    Old files have θ and `rope_scaling` of the full layers beside the other settings; none of it holds for those with a
    window, whose θ is there under a key of its own (`sliding_key`), if at all.
    """
    tables = raw.get("rope_parameters") or {}
    if not isinstance(tables, Mapping) or not set(tables) <= {FULL, SLIDING}:
        raise UsageError(f"rope_parameters {shown(tables)} is not a table for each of {FULL} and {SLIDING}")
    plain = {name: value for name, value in raw.items() if name != "rope_scaling"}
    ropes = []
    for kind, key, default, scaling in (
        (FULL, "rope_theta", theta, raw.get("rope_scaling") or {}),
        (SLIDING, sliding_key, sliding_theta, {}),
    ):
        table = tables.get(kind) or {}
        if not isinstance(table, Mapping) or not isinstance(scaling, Mapping):
            raise UsageError(f"rope_parameters of {kind} {shown(table)} is not a table of numbers")
        given = {**plain, "rope_parameters": {**table, **scaling}}
        ropes.append(read_rope(given, theta=(key,), default=default, context=context))
    return LayerRopes(*ropes)
