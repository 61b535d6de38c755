"""Headings that people print above a matrix: "Attention scores, head 0:", "Layer 1 after softmax", "Q"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_transformer.diagnosis.naming.name import Table, Target, present, spelled, stacks, table
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

SCORES = ("scores", "scaled", "capped", "biased", "masked")

SUBLAYER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("q", "query", "queries", "query matrix", "q matrix", "wq x", "x wq"), ("query",)),
    **dict.fromkeys(("k", "key", "keys", "key matrix", "k matrix", "wk x", "x wk"), ("key",)),
    **dict.fromkeys(("v", "value", "values", "value matrix", "v matrix", "wv x", "x wv"), ("value",)),
    **dict.fromkeys(("qk", "q k", "q kt", "qkt", "q k t", "scores", "attention scores", "raw scores"), SCORES),
    **dict.fromkeys(("attn scores", "dot product", "dot products", "score"), SCORES),
    **dict.fromkeys(("scaled", "scaled scores", "scaled attention scores", "scores scaled"), SCORES[1:]),
    **dict.fromkeys(("qk scaled", "scaled qk", "scaled dot product"), SCORES[1:]),
    **dict.fromkeys(("masked", "masked scores", "scores masked", "after mask", "masked attention scores"), ("masked",)),
    **dict.fromkeys(("softmax", "after softmax", "attention weights", "weights", "attn weights"), ("weights",)),
    **dict.fromkeys(("attention", "probs", "attention probs", "softmax scores", "softmax output"), ("weights",)),
    **dict.fromkeys(("context", "attention output", "weights v", "head output", "z", "attn output"), ("context", "output", "concat")),
    **dict.fromkeys(("concat", "concatenated", "concatenated heads", "concat heads"), ("concat",)),
    **dict.fromkeys(("output projection", "multi head", "multi head output", "mha output"), ("output",)),
    **dict.fromkeys(("multi head attention", "multihead attention", "mha", "attention out"), ("output",)),
    **dict.fromkeys(("multi head attention output", "self attention output", "projection"), ("output",)),
    **dict.fromkeys(("self attention",), ("output", "context")),
}
"""Headings → steps of the self-attention."""

FEED_FORWARD: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ffn hidden", "feed forward hidden", "hidden", "linear", "linear 1", "fc 1"), ("hidden",)),
    **dict.fromkeys(("relu", "gelu", "activation", "after relu", "after gelu", "relu output"), ("activation",)),
    **dict.fromkeys(("ffn", "feed forward", "ffn output", "feed forward output", "mlp", "mlp output"), ("output",)),
    **dict.fromkeys(("linear 2", "fc 2", "ff output"), ("output",)),
}
"""Headings → steps of the feed-forward layer."""

LAYER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "residual", "add 1", "residual 1"), ("self_attention.residual",)),
    **dict.fromkeys(("add 2", "residual 2"), ("feed_forward.residual",)),
    **dict.fromkeys(("norm 1", "layer norm 1", "ln 1", "add norm", "add norm 1", "norm"), ("self_attention.norm",)),
    **dict.fromkeys(("layer norm", "after layer norm 1", "add and norm", "add and norm 1"), ("self_attention.norm",)),
    **dict.fromkeys(("norm 2", "layer norm 2", "ln 2", "add norm 2", "add and norm 2"), ("feed_forward.norm",)),
    **dict.fromkeys(("output", "layer output", "encoder output", "block output", "encoder layer output"), ("output",)),
}
"""Headings → steps of a layer."""

OUTSIDE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("embedding", "embeddings", "token embedding", "token embeddings"), ("tokens", "output")),
    **dict.fromkeys(("word embedding", "word embeddings", "input embedding", "input embeddings"), ("tokens", "output")),
    **dict.fromkeys(("positional encoding", "position encoding", "positions", "pe"), ("positions", "output")),
    **dict.fromkeys(("positional encodings", "position embedding", "position embeddings"), ("positions",)),
    **dict.fromkeys(("positional embedding", "positional embeddings"), ("positions",)),
    **dict.fromkeys(("x", "input", "inputs", "encoder input", "embedding positions"), ("output",)),
    **dict.fromkeys(("embedding positional encoding", "input positional encoding"), ("output",)),
    **dict.fromkeys(("embedding with positions", "embedding with positional encoding"), ("output",)),
}
"""Headings → steps of the embedding."""

LAYER_WORDS = r"(?:(?:encoder|decoder)\.)?(?:layer|block|encoder|decoder|l)"


def words(model: Model, program: Program) -> Table:
    """Every heading, with and without the number of the layer and of the head, before or behind."""
    del model
    return table(_names(program))


def _names(program: Program) -> Iterator[tuple[str, Target]]:
    for stack in stacks(program):
        for i in range(stack.layers):
            layer = f"{stack.name}.{i}"
            for heading, steps in _headings(layer, stack.embedding):
                found = present(program, *steps)
                if found:
                    heads = program.by_name[found[0]].shape[0] if len(program.by_name[found[0]].axes) == 3 else 0
                    yield from _numbered(heading, i, stack.name, found, heads)
    for heading in ("logits", "output logits", "final logits"):
        yield heading, Target(present(program, "output.logits"))
    for heading in ("probabilities", "output probabilities", "softmax logits", "next token probabilities"):
        yield heading, Target(present(program, "output.probabilities"))


def _headings(layer: str, embedding: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Headings of a layer and of the embedding before it, with the steps that they may mean."""
    for heading, steps in SUBLAYER.items():
        yield heading, tuple(f"{layer}.self_attention.{step}" for step in steps)
    for heading, steps in FEED_FORWARD.items():
        yield heading, tuple(f"{layer}.feed_forward.{step}" for step in steps)
    for heading, steps in LAYER.items():
        yield heading, tuple(f"{layer}.{step}" for step in steps)
    if layer.endswith(".0"):
        for heading, steps in OUTSIDE.items():
            yield heading, tuple(f"{embedding}embedding.{step}" for step in steps)


def _numbered(heading: str, layer: int, stack: str, steps: tuple[str, ...], heads: int) -> Iterator[tuple[str, Target]]:
    whole = Target(steps)
    places = [f"layer {layer}", f"{stack} {layer}", f"{stack} layer {layer}", f"block {layer}", f"l {layer}"]
    if layer == 0:
        places.append("")
    for place in places:
        yield f"{place} {heading}", whole
        yield f"{heading} {place}", whole
        for head in range(heads):
            target = Target(steps, head=head)
            for said in (f"{place} {heading} head {head}", f"{place} head {head} {heading}", f"{heading} {place} head {head}"):
                yield said, target
            yield f"head {head} {place} {heading}", target


def plain(name: str) -> str:
    """A heading without what says nothing: "Matrix", "of", "shape 3x4", articles."""
    text = re.sub(r"[(\[{]?\s*\d+\s*[x×,]\s*\d+\s*[)\]}]?", " ", name)
    skipped = {"matrix", "of", "the", "for", "in", "after", "shape", "self", "attention"}
    found = [word for word in spelled(text).split(".") if word not in skipped]
    return ".".join(found)
