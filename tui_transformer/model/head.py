"""The head: a logit for every word or for every label and their shares, or one vector for the sentence."""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import (
    Linear,
    Op,
    Pool,
    Scale,
    SideBySide,
    Sigmoid,
    SoftCap,
    Softmax,
    Unembed,
    UnitLength,
)
from tui_transformer.engine.program import LABEL, Builder
from tui_transformer.model.description import Dense, Head, LabelHead, SentenceHead, Transform
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


POOLED = "pooled"
POOL_NAMES: Mapping[str, str] = {
    "first": "first",
    "max": "max",
    "mean": "mean",
    "mean over √n": "mean_sqrt",
    "weighted mean": "weighted_mean",
    "last": "last",
}
"""The steps of several vectors that stand side by side, by how they are pooled."""

SHARES: Mapping[str, type[Op]] = {"softmax": Softmax, "sigmoid": Sigmoid}


def label_head(build: Builder, x: str, tokens: Sequence, how: LabelHead) -> str:
    """Logits of labels, of the sentence or of every token (Devlin et al. 2018, §4), and their shares."""
    build = build.within("output")
    if how.pool:
        seen = tokens.other_input(build, "ended") if how.until_end else tokens.visible
        x = build("pooled", Pool(how.pool), x, seen)  # n × d → d
    if how.transform is not None:
        x = _transform(build.within("transform"), x, how.transform)
    labels = Axis(LABEL, len(how.labels), words=how.labels)
    biased = frozenset({"logits"} if how.bias else ())
    logits = build("logits", Linear("x W"), x, *matrix(build, "logits", x, labels, biased))
    return build("probabilities", SHARES[how.shares](), logits) if how.shares else logits


def sentence_head(build: Builder, x: str, tokens: Sequence, how: SentenceHead) -> str:
    """One vector for the sentence, as the modules behind the layers make it (Reimers & Gurevych 2019, §3)."""
    x = _pooled(build, x, tokens, how.pools)
    scope, made = build.within(POOLED), set[str]()
    for place, module in enumerate(how.then):
        name = "normalized" if module is None else "dense"
        inner = scope.within(str(place)) if name in made else scope
        made.add(name)
        x = inner(name, UnitLength(), x) if module is None else _dense(inner, x, module)
    return x


def _pooled(build: Builder, x: str, tokens: Sequence, pools: tuple[str, ...]) -> str:
    if len(pools) == 1:
        return build(POOLED, Pool(pools[0]), x, tokens.visible)  # n × d → d
    parts = [build(f"{POOLED}.{POOL_NAMES[how]}", Pool(how), x, tokens.visible) for how in pools]
    return build(POOLED, SideBySide(), *parts)  # d each → k · d


def _dense(build: Builder, x: str, how: Dense) -> str:
    out = Axis("dimension", how.width)
    x = build("dense", Linear("x W"), x, *matrix(build, "dense", x, out, frozenset({"dense"} if how.bias else ())))
    return build("activation", ACTIVATIONS[how.activation](), x) if how.activation else x


def _transform(build: Builder, x: str, how: Transform) -> str:
    """A matrix, an activation and a norm (Devlin et al. 2018, as published)."""
    out = Axis("dimension", how.width) if how.width else build.known[x][-1]
    x = build("hidden", Linear("x W"), x, *matrix(build, "hidden", x, out, frozenset({"hidden"} if how.bias else ())))
    if how.activation:
        x = build("activation", ACTIVATIONS[how.activation](), x)
    return x if how.norm is None else norm(build, x, how.norm)
