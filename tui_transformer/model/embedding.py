"""The embedding: from token IDs to the vectors that enter layer 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Add, Embed, Linear, NormOfSum, Sinusoid
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.description import Embedding, Norm
from tui_transformer.model.layers import matrix, norm
from tui_transformer.model.sequence import Sequence


def embed(build: Builder, tokens: Sequence, vocabulary: Axis, model: Axis, what: Embedding) -> str:
    """Rows of the table plus positions and segments, normalised where the model does so (Vaswani et al. 2017, §3.4)."""
    width = Axis("embedding", what.width) if what.width else model
    table = build.shared_weight(what.table, vocabulary, width)
    segments = tokens.other_input(build, "segments") if what.segments else ""
    unpadded = tokens.other_input(build, "unpadded") if what.positions == "fairseq" else ""
    build = build.within("embedding")
    parts = [build("tokens", Embed(what.scale), tokens.tokens, table)]  # n → n × d
    if what.projected_first and width is not model:
        parts, width = [_projection(build, parts[0], model, what)], model
    if what.positions == "learned":
        rows = build.weight("positions.weight", Axis("position", what.max_length), width)
        parts.append(build("positions", Embed(ids="pos"), tokens.places, rows))
    elif what.positions != "none":
        fairseq = what.positions == "fairseq"
        sines = Sinusoid(width.size, what.positions != "sinusoidal", fairseq, what.silent)
        parts.append(build("positions", sines, unpadded if fairseq else tokens.places))
    if what.segments:
        rows = build.weight("segments.weight", Axis("segment", what.segments), width)
        parts.append(build("segments", Embed(ids="segment"), segments, rows))
    if width is model:
        return _output(build, parts, what.norm)
    return _projected(build, _normed(build, parts, what.norm), model, what)


def with_silent(program: Program, unknown: Mapping[str, int | None]) -> Program:
    """The program in which an ID of each of these embeddings has the vector 0, whatever its row of the table holds."""
    steps = (
        replace(step, op=replace(step.op, silent=unknown[step.name]))
        if step.name in unknown and isinstance(step.op, Embed)
        else step
        for step in program.steps
    )
    return Program(tuple(steps), program.aliases, program.weights, program.givens)


def _output(build: Builder, parts: list[str], how: Norm | None) -> str:
    """The parts added up and normalised, under the names that the steps have."""
    if how is None and len(parts) > 1:
        return build("output", Add("token + position"), *parts)
    total = _normed(build, parts, how)
    build.alias("output", total)
    return total


def _normed(build: Builder, parts: list[str], how: Norm | None) -> str:
    """The sum of the parts, normalised where the model does so."""
    if how is None:
        return parts[0] if len(parts) == 1 else build("sum", Add("token + position"), *parts)
    if len(parts) == 1 or how.kind == "rms" or not how.shift:
        return norm(build, _normed(build, parts, None), how)
    axis = build.known[parts[0]][-1]
    weight, bias = build.weight("norm.weight", axis), build.weight("norm.bias", axis)
    return build("norm", NormOfSum(how.epsilon, len(parts)), *parts, weight, bias)


def _projected(build: Builder, x: str, model: Axis, what: Embedding) -> str:
    """A narrow embedding brought to the model's width (Lan et al. 2020, "ALBERT", §3.1)."""
    x = _projection(build, x, model, what)
    build.alias("output", x)
    return x


def _projection(build: Builder, x: str, model: Axis, what: Embedding) -> str:
    biased = frozenset({"projected"} if what.projection_bias else ())
    return build("projected", Linear("x W"), x, *matrix(build, "projected", x, model, biased))
