"""Headings that people print above a matrix: "Attention scores, head 0:", "Layer 1 after softmax", "Q"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui_transformer.diagnosis.naming.name import Stack, Target, present, spelled, stacks
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
    **dict.fromkeys(
        ("context", "attention output", "weights v", "head output", "z", "attn output"), ("context", "output", "concat")
    ),
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

LOGITS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("logits", "output logits", "final logits"), ("output.logits",)),
    **dict.fromkeys(("probabilities", "output probabilities", "token probabilities"), ("output.probabilities",)),
}
"""Headings → steps of the output."""

LAYER_NUMBER = re.compile(r"\b(?:(encoder|decoder)\.)?(?:layer|block|l|encoder|decoder)\.(\d+)\b")
HEAD_NUMBER = re.compile(r"\bheads?\.(\d+)\b")
SILENT = frozenset(
    {"matrix", "of", "the", "for", "in", "after", "before", "shape", "self", "step", "result", "final", "x"}
)
"""Words of a heading that say nothing."""


@dataclass(frozen=True, eq=False)
class Headings:
    """Finds what a heading stands for: the layer and the head by their numbers, the step by the words around them."""

    program: Program
    stacks: Mapping[str, Stack]
    steps: Mapping[str, tuple[str, ...]]

    def get(self, key: str, /) -> tuple[Target, ...] | None:
        """The step of a heading in the spelling of `spelled`."""
        layer, head = LAYER_NUMBER.search(key), HEAD_NUMBER.search(key)
        rest = HEAD_NUMBER.sub("", LAYER_NUMBER.sub("", key))
        words = [word for word in rest.split(".") if word]
        stack = self._stack(layer, words)
        templates = self._meant([word for word in words if word not in self.stacks] or words)
        if stack is None or not templates:
            return None
        number = int(layer[2]) if layer else 0
        named = (each.format(stack=stack.name, i=number, embedding=stack.embedding) for each in templates)
        steps = present(self.program, *named)
        if not steps:
            return None
        headed = head is not None and len(self.program.by_name[steps[0]].axes) == 3
        return (Target(steps, head=int(head[1]) if head and headed else None),)

    def _stack(self, layer: re.Match[str] | None, words: Sequence[str]) -> Stack | None:
        """The stack that the heading names, else the first."""
        text = layer[0] if layer else ""
        named = (stack for name, stack in self.stacks.items() if name in text or name in words)
        return next(named, next(iter(self.stacks.values()), None))

    def _meant(self, words: Sequence[str]) -> tuple[str, ...]:
        """The steps of the longest known heading among the words, where the others say nothing else."""
        for kept in (list(words), [word for word in words if word not in SILENT]):
            for size in range(len(kept), 0, -1):
                for start in range(len(kept) - size + 1):
                    found = self.steps.get(" ".join(kept[start : start + size]), ())
                    rest = kept[:start] + kept[start + size :]
                    if found and self._same(rest, found):
                        return found
        return ()

    def _same(self, rest: Sequence[str], steps: tuple[str, ...]) -> bool:
        """Whether words beside a heading say the same again, or nothing."""
        said = [word for word in rest if word not in SILENT]
        return not said or bool(set(self.steps.get(" ".join(said), ())) & set(steps))


def words(model: Model, program: Program) -> Headings:
    """Headings with the number of the layer and of the head in them, or of the first layer."""
    del model
    templates: dict[str, tuple[str, ...]] = {}
    for table, place in (
        (SUBLAYER, "{{stack}}.{{i}}.self_attention.{}"),
        (FEED_FORWARD, "{{stack}}.{{i}}.feed_forward.{}"),
        (LAYER, "{{stack}}.{{i}}.{}"),
        (OUTSIDE, "{{embedding}}embedding.{}"),
        (LOGITS, "{}"),
    ):
        for heading, steps in table.items():
            templates.setdefault(heading, tuple(place.format(step) for step in steps))
    return Headings(program, {stack.name: stack for stack in stacks(program)}, templates)


def plain(name: str) -> str:
    """A heading without sizes in it, as "3x4"."""
    return spelled(re.sub(r"[(\[{]?\s*\d+\s*[x×,]\s*\d+\s*[)\]}]?", " ", name))
