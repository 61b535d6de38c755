"""The cache of keys and values at a place of the text: what is drawn of it, and the memory that it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.parts import readable
from tui_transformer.engine.program import Program
from tui_transformer.explorer.widgets.cache_map import CachePicture
from tui_transformer.generation.cache import KEY, is_cross
from tui_transformer.generation.writing import State, Writer

CHEAP = 300_000_000
"""Floating-point operations that the attention of the newest token may take beside writing it."""


@dataclass(frozen=True)
class Memory:
    """Description of the cache; `cross` and `shared` are "" where there is no such thing."""

    own: str
    cross: str = ""
    shared: str = ""


def sublayers(writer: Writer) -> tuple[str, ...]:
    """The self-attention of every layer that writes."""
    names = writer.cache_shapes(1)
    return tuple(name.removesuffix(f".{KEY}") for name in names if name.endswith(KEY) and not is_cross(name))


def picture(writer: Writer, state: State, layer: int, words: tuple[str, ...]) -> CachePicture:
    """The cache of one layer after a state was computed, and where its newest token looks, if that is cheap."""
    name = sublayers(writer)[layer]
    attention, note = _attention(writer, state, f"{name}.weights")
    queries = shared_queries(writer.model.program(1, 1), name)
    return CachePicture(queries, words, state.computed, writer.model.config.max_length, attention, note)


def shared_queries(program: Program, sublayer: str) -> tuple[tuple[int, ...], ...]:
    """For every key head of an attention, the query heads that read it."""
    query, key = (program.shape(name)[0] for name in program.step(f"{sublayer}.scores").inputs)
    share = query // key
    return tuple(tuple(range(head * share, (head + 1) * share)) for head in range(key))


def _attention(writer: Writer, state: State, name: str) -> tuple[tuple[tuple[float, ...], ...], str]:
    """How much the newest token looks at each token, for every query head; or why it is not known."""
    trace = writer.trace(state)
    cost = trace.pending([name])
    if cost > CHEAP:
        return (), f"not computed: {cost / 1e9:.1f} GFLOP"
    return tuple(map(tuple, trace[name][:, -1].tolist())), ""


def memory(writer: Writer, state: State) -> Memory:
    """The memory of keys and values, worked out from their shapes."""
    count, limit = len(state.ids), writer.model.config.max_length
    if not state.settings.use_cache:
        return Memory(f"no cache: nothing is kept, and every token computes all {count:,} rows again")
    item = writer.model.backend.dtype.itemsize
    shapes = writer.cache_shapes(count)
    own = {name: shape for name, shape in shapes.items() if not is_cross(name)}
    cross = {name: shape for name, shape in shapes.items() if is_cross(name)}
    now = size(own, item)
    text = f"{_product(own, 'tokens', item)} = {readable(now)} now, {readable(now * limit // count)} at {limit:,}"
    fixed = f"{_product(cross, 'source tokens', item)} = {readable(size(cross, item))}, computed once" if cross else ""
    return Memory(text, fixed, _shared(writer))


def size(shapes: Mapping[str, Shape], item: int) -> int:
    """Bytes of arrays of these shapes."""
    return sum(map(math.prod, shapes.values())) * item


def _product(shapes: Mapping[str, Shape], tokens: str, item: int) -> str:
    """The factors of the size: all layers are alike."""
    heads, count, width = next(iter(shapes.values()))
    layers = len(shapes) // 2
    return (
        f"2 (K, V) × {layers} layer{'s' * (layers > 1)} × {heads} key head{'s' * (heads > 1)} × {count:,} {tokens}"
        f" × d_k {width} × {item} bytes"
    )


def _shared(writer: Writer) -> str:
    queries = shared_queries(writer.model.program(1, 1), sublayers(writer)[0])
    heads = sum(map(len, queries))
    if heads == len(queries):
        return ""
    return f"{heads} query heads read {len(queries)} key heads: 1/{heads // len(queries)} of the memory of {heads}"
