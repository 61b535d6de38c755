"""The embedding: from token IDs to the vectors that enter layer 0."""

from __future__ import annotations

from dataclasses import dataclass

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Add, Embed, NormOfSum, Sinusoid
from tui_transformer.engine.program import Builder
from tui_transformer.model.layers import Layout, Norm, Sequence


@dataclass(frozen=True)
class Embedding:
    """What is added up before layer 0.

    Attributes:
        table: The weight of the token embedding, which an encoder and a decoder may share.
        scale: What its rows are multiplied by.
        positions: "sinusoidal", "halves" (sines, then cosines), "learned" or "none".
        max_length: Rows of a learned table of positions.
        segments: Segments (token types), 0 for none.
        norm: Of the sum, where the model has it.
    """

    table: str = "embedding.tokens.weight"
    scale: float = 1.0
    positions: str = "none"
    max_length: int = 0
    segments: int = 0
    norm: Norm | None = None


def embed(build: Builder, tokens: Sequence, vocabulary: Axis, layout: Layout, what: Embedding) -> str:
    """Rows of the table plus positions and segments, normalised where the model does so (Vaswani et al. 2017, §3.4)."""
    table = build.shared_weight(what.table, vocabulary, layout.model)
    segments = build.given(_beside(tokens.places, "segments"), *build.known[tokens.places]) if what.segments else ""
    build = build.within("embedding")
    parts = [build("tokens", Embed(what.scale), tokens.tokens, table)]  # n → n × d
    if what.positions == "learned":
        rows = build.weight("positions.weight", Axis("position", what.max_length), layout.model)
        parts.append(build("positions", Embed(ids="pos"), tokens.places, rows))
    elif what.positions != "none":
        parts.append(build("positions", Sinusoid(layout.d_model, what.positions == "halves"), tokens.places))
    if what.segments:
        rows = build.weight("segments.weight", Axis("segment", what.segments), layout.model)
        parts.append(build("segments", Embed(ids="segment"), segments, rows))
    return _sum(build, parts, layout, what.norm)


def _sum(build: Builder, parts: list[str], layout: Layout, norm: Norm | None) -> str:
    """The parts added up, under the names that the steps have."""
    if norm is not None:
        weight, bias = build.weight("norm.weight", layout.model), build.weight("norm.bias", layout.model)
        total = build("norm", NormOfSum(norm.epsilon, len(parts)), *parts, weight, bias)
        build.alias("output", total)
        return total
    if len(parts) == 1:
        build.alias("output", parts[0])
        return parts[0]
    return build("output", Add("token + position"), *parts)


def _beside(name: str, last: str) -> str:
    """Another input of the same sequence."""
    return f"{name.rpartition('.')[0]}.{last}"
