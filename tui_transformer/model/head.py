"""The head of a language model: a logit for every word, then shares that sum to 1."""

from __future__ import annotations

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Linear, Scale, SoftCap, Softmax, Unembed
from tui_transformer.engine.program import Builder
from tui_transformer.model.description import Head, Transform
from tui_transformer.model.layers import ACTIVATIONS, matrix, norm


def word_head(build: Builder, x: str, vocabulary: Axis, how: Head) -> str:
    """Logits with the embedding table again or a matrix of their own, capped where the model does so; their shares."""
    build = build.within("output")
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    biases = (build.weight("logits.bias", vocabulary),) if how.bias else ()
    if how.tied is not None:
        logits = build("logits", Unembed(how.scale), x, how.tied, *biases)  # n × d → n × v
    else:
        if how.scale != 1.0:
            x = build("scaled", Scale(how.scale, f"· {how.scale:g}", "x"), x)
        weight = build.weight("logits.weight", build.known[x][-1], vocabulary)
        logits = build("logits", Linear("x W"), x, weight, *biases)
    if how.cap is not None:
        logits = build("capped", SoftCap(how.cap), logits)
    return build("probabilities", Softmax(), logits)


def _transform(build: Builder, x: str, how: Transform) -> str:
    """A matrix, an activation and a norm (Devlin et al. 2018, as published)."""
    out = Axis("model", how.width) if how.width else build.known[x][-1]
    x = build("hidden", Linear("x W"), x, *matrix(build, "hidden", x, out, frozenset({"hidden"} if how.bias else ())))
    if how.activation:
        x = build("activation", ACTIVATIONS[how.activation](), x)
    return x if how.norm is None else norm(build, x, how.norm)
