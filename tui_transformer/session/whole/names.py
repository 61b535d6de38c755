"""What the picture of a step depends on: the textbook's name over its box, its heads, rows and columns."""

from __future__ import annotations

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.ops import (
    Disentangle,
    DistanceBias,
    Mask,
    OfExpert,
    Op,
    RelativeBias,
    Scale,
    SoftCap,
    SoftmaxWithSink,
    WeightedExperts,
)
from tui_transformer.engine.program import Program, Step, by_program
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass

SYMBOLS = {
    "query": "Q",
    "key": "K",
    "value": "V",
    "scores": "Q Kᵀ",
    "weights": "softmax",
    "distance_query": "Q of distances",
    "distance_key": "K of distances",
    "query_distance_scores": "Q · K of distances",
    "key_distance_scores": "K · Q of distances",
    "context": "· V",
    "concat": "heads joined",
    "residual": "added",
    "norm": "norm",
    "hidden": "x W₁",
    "gate": "x W_g",
    "gated": "gate · x W₁",
    "router": "x W_r",
    "expert_weights": "shares of experts",
    "output_norm": "norm",
    "output_scaled": "scaled",
    "distances": "distances",
    "distances_norm": "norm of distances",
}
"""By the last part of a step's name; any other has the guide's title."""

OUTPUTS = {"self_attention": "W_O", "cross_attention": "W_O", "feed_forward": "a W₂"}
DONE_TO: dict[str, str] = {"norm": ", norm", "rotated": ", rotated"}
"""Operations on Q and K, by the last part of a step's name."""

SCORES: tuple[tuple[type[Op], str], ...] = (
    (SoftCap, ", capped"),
    (DistanceBias, " + ALiBi"),
    (RelativeBias, " + bias"),
    (Disentangle, " + distances"),
)
"""Operations on the scores, likewise."""

EMBEDDING = {"tokens": "embedding", "positions": "position", "segments": "segment", "output": "x"}
ACTIVATIONS = {
    "Relu": "ReLU",
    "ReluSquared": "ReLU²",
    "Gelu": "GELU",
    "GeluTanh": "GELU (tanh)",
    "QuickGelu": "quick GELU",
    "Silu": "SiLU",
    "ClampedSwish": "Swish, clamped",
    "Tanh": "tanh",
}

BANDS = {
    "embedding": "From words to vectors",
    "self_attention": "Self-attention",
    "cross_attention": "Cross-attention",
    "feed_forward": "Feed-forward",
    "encoder.norm": "Encoder norm",
    "output": "Answer",
}
INSIDE = {**BANDS, "output": "Features"}
"""The same by the last word of the name: what stands at the output of a layer are features of it."""


@dataclass(frozen=True)
class Outline:
    """A step as its picture shows it.

    Attributes:
        title: Its name as a textbook writes it: `Q`, `Q Kᵀ ÷ √8`, `softmax`.
        shape: Rows × columns of one head, in words.
        heads: How many there are; 1 where it has none.
        rows: How many there are. A vector with a number a token stands upright, one of the model's width lies.
        columns: How many there are.
        sequence: The tokens that the rows stand for; "" for none.
        across: The tokens that the columns stand for.
        is_vector: Whether it has one axis.
        every_head: Whether all heads are drawn: of the attention weights.
    """

    title: str
    shape: str
    heads: int
    rows: int
    columns: int
    sequence: str
    across: str
    is_vector: bool
    every_head: bool


@by_program
def outline(program: Program, name: str) -> Outline:
    """What the picture of a step depends on."""
    axes, step = program.axes(name), program.step(name)
    rows, columns, is_vector = axes[-2:][0], axes[-1], len(axes) == 1
    lies = is_vector and not columns.sequence
    sizes = tuple(axis.size for axis in axes[-2:])
    return Outline(
        symbol(program, name),
        shape_text((1, *sizes) if lies else sizes),
        axes[0].size if len(axes) == 3 else 1,
        1 if lies else rows.size,
        columns.size,
        rows.sequence,
        columns.sequence,
        is_vector,
        every_head=step.square and name.rpartition(".")[2] == "weights",
    )


@by_program
def symbol(program: Program, name: str) -> str:
    """The name of a step as a textbook writes it: `Q`, `Q Kᵀ ÷ √8`, `softmax`."""
    step = program.step(name)
    sublayer, _, last = name.rpartition(".")
    if sublayer.endswith("attention"):
        return _of_attention(program, step)
    if isinstance(step.op, WeightedExperts):
        return "shared expert" if sublayer.endswith("shared") else "Σ share · expert"
    if isinstance(step.op, OfExpert):
        return f"{_of_expert(last)} of expert {step.op.expert}"
    if sublayer.endswith("shared"):
        return f"{_of_expert(last)}, shared expert"
    if sublayer.endswith("embedding"):
        return EMBEDDING.get(last, last)
    if isinstance(step.op, Scale):
        return "scaled"
    if last == "output":
        return OUTPUTS.get(sublayer.rpartition(".")[2], last)
    if sublayer.startswith("output") and last == "hidden":
        return "x W"
    return ACTIVATIONS.get(type(step.op).__name__) or SYMBOLS.get(last) or step_text(name).title


def _of_expert(last: str) -> str:
    return OUTPUTS["feed_forward"] if last == "output" else SYMBOLS.get(last, last)


def _of_attention(program: Program, step: Step) -> str:
    """The operations on Q, K or the scores so far, or the name of another step."""
    sublayer, _, last = step.name.rpartition(".")
    which, _, done = last.partition("_")
    if which in ("query", "key") and (not done or done in DONE_TO):
        source = symbol(program, step.inputs[0]) if done else SYMBOLS[which]
        return source + DONE_TO.get(done, "")
    if isinstance(step.op, SoftmaxWithSink):
        return "softmax with a sink"
    if isinstance(step.op, Mask):
        return symbol(program, step.inputs[0]) + ", masked" * step.op.causal
    if isinstance(step.op, Scale):
        return f"Q Kᵀ {step.op.formula.removeprefix('score ')}" if step.op.of == "score" else "scaled"
    suffix = next((text for kind, text in SCORES if isinstance(step.op, kind)), None)
    if suffix is not None:
        return symbol(program, step.inputs[0]) + suffix
    return OUTPUTS[sublayer.rpartition(".")[2]] if last == "output" else SYMBOLS.get(last) or step_text(step.name).title


def band_title(name: str, *, both: bool) -> str:
    """The name of a band: what it does, in which layer, and in which stack where there are two."""
    words = BANDS.get(name) or INSIDE.get(name.rpartition(".")[2]) or step_text(name).label
    stack, _, rest = name.partition(".")
    layer = rest.partition(".")[0]
    parts = [words] + [f"{stack} layer {layer}" if both else f"layer {layer}"] * layer.isdigit()
    return " · ".join(parts)
