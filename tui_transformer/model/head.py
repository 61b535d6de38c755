"""The head: a logit for every word or for every label, then their shares."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Linear, Op, Pool, Scale, Sigmoid, SoftCap, Softmax, Unembed
from tui_transformer.engine.program import LABEL, Builder
from tui_transformer.model.description import Head, LabelHead, Transform
from tui_transformer.model.layers import ACTIVATIONS, matrix, norm
from tui_transformer.model.sequence import Sequence


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


SHARES: Mapping[str, type[Op]] = {"softmax": Softmax, "sigmoid": Sigmoid}


def label_head(build: Builder, x: str, tokens: Sequence, how: LabelHead) -> str:
    """Logits of labels, of the sentence or of every token (Devlin et al. 2018, §4), and their shares."""
    build = build.within("output")
    if how.pool:
        x = build("pooled", Pool(how.pool), x, tokens.visible)  # n × d → d
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    labels = Axis(LABEL, len(how.labels), words=how.labels)
    biased = frozenset({"logits"} if how.bias else ())
    logits = build("logits", Linear("x W"), x, *matrix(build, "logits", x, labels, biased))
    return build("probabilities", SHARES[how.shares](), logits) if how.shares else logits


def _transform(build: Builder, x: str, how: Transform) -> str:
    """A matrix, an activation and a norm (Devlin et al. 2018, as published)."""
    out = Axis("model", how.width) if how.width else build.known[x][-1]
    x = build("hidden", Linear("x W"), x, *matrix(build, "hidden", x, out, frozenset({"hidden"} if how.bias else ())))
    if how.activation:
        x = build("activation", ACTIVATIONS[how.activation](), x)
    return x if how.norm is None else norm(build, x, how.norm)
