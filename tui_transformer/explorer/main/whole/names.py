"""What stands over a box: the textbook's name of a step, and its shape."""

from __future__ import annotations

from tui_transformer.engine.axis import Axes, shape_text
from tui_transformer.engine.ops import Mask, OfExpert, Scale, WeightedExperts
from tui_transformer.engine.program import Program
from tui_transformer.guide.texts import step_text

SYMBOLS = {
    "query": "Q",
    "key": "K",
    "value": "V",
    "query_norm": "Q, norm",
    "key_norm": "K, norm",
    "query_rotated": "Q, rotated",
    "key_rotated": "K, rotated",
    "scores": "Q Kᵀ",
    "scaled": "Q Kᵀ",
    "capped": "Q Kᵀ, capped",
    "biased": "Q Kᵀ + bias",
    "weights": "softmax",
    "context": "· V",
    "concat": "heads joined",
    "residual": "added",
    "norm": "norm",
    "hidden": "x W₁",
    "gate": "x W_g",
    "gated": "gate · x W₁",
    "router": "x W_r",
    "expert_weights": "shares",
}
"""By the last part of a step's name; any other has the guide's title."""

OUTPUTS = {"self_attention": "W_O", "cross_attention": "W_O", "feed_forward": "a W₂"}
EXPERT_OUTPUT = "a W₂"
EMBEDDING = {"tokens": "embedding", "positions": "position", "segments": "segment", "output": "x"}
ACTIVATIONS = {"Relu": "ReLU", "Gelu": "GELU", "GeluTanh": "GELU (tanh)", "Silu": "SiLU"}

BANDS = {
    "embedding": "From words to vectors",
    "self_attention": "Self-attention",
    "cross_attention": "Cross-attention",
    "feed_forward": "Feed-forward",
    "encoder.norm": "Encoder output",
    "output": "Answer",
}


def symbol(program: Program, name: str) -> str:
    """The name of a step as a textbook writes it: `Q`, `Q Kᵀ ÷ √8`, `softmax`."""
    step = program.step(name)
    sublayer, _, last = name.rpartition(".")
    if isinstance(step.op, Mask):
        return symbol(program, step.inputs[0]) + ", masked" * step.op.causal
    if isinstance(step.op, Scale) and step.op.of == "score":
        return f"Q Kᵀ {step.op.formula.removeprefix('score ')}"
    if isinstance(step.op, WeightedExperts):
        return "Σ share · expert"
    if isinstance(step.op, OfExpert) and last == "output":
        return f"{EXPERT_OUTPUT} of {step.op.expert}"
    if sublayer.endswith("embedding"):
        return EMBEDDING.get(last, last)
    if last == "output":
        return OUTPUTS.get(sublayer.rpartition(".")[2], last)
    return ACTIVATIONS.get(type(step.op).__name__) or SYMBOLS.get(last) or step_text(name).title


def shape(axes: Axes) -> str:
    """Rows × columns of one head."""
    return shape_text(tuple(axis.size for axis in axes[-2:]))


def band_title(name: str, *, both: bool) -> str:
    """The name of a band: what it does, in which layer, and in which stack where there are two."""
    words = BANDS.get(name) or BANDS.get(name.rpartition(".")[2]) or step_text(name).label
    stack, _, rest = name.partition(".")
    layer = rest.partition(".")[0]
    parts = [words] + [f"{stack} layer {layer}" if both else f"layer {layer}"] * layer.isdigit()
    return " · ".join(parts)
