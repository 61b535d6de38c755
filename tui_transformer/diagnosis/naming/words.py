"""Headings that people print above a matrix: "Attention scores, head 0:", "Layer 1 after softmax", "l1_relu", "Q"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tui_transformer.diagnosis.naming.name import Stack, Target, present, spelled, stacks
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

SCORES = ("scores", "scaled", "capped", "biased", "masked")
Table = Mapping[str, tuple[str, ...]]


def _each(phrases: str, *steps: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys((phrase.strip() for phrase in phrases.split(",")), steps)


ATTENTION: Table = {
    **_each("q, query, queries, wq, w q, wq x, x wq, linears 0", "query"),
    **_each("k, key, keys, wk, w k, wk x, x wk, linears 1", "key"),
    **_each("v, value, values, wv, w v, wv x, x wv, linears 2", "value"),
    **_each("qk, q k, q kt, qk t, qkt, q k t, scores, score, raw scores, dot product, dot products", *SCORES),
    **_each("attn logits, attention logits, attn score, attn scores, attention score, attention scores", *SCORES),
    **_each("scores raw, energy, similarity, before softmax, pre softmax, attention scores qk t", *SCORES),
    **_each("scaled, scaled scores, scaled attention scores, scores scaled, scaled attn scores", *SCORES[1:]),
    **_each("qk scaled, scaled qk, scaled dot product, scaled dot products, after scaling", *SCORES[1:]),
    **_each("qk t sqrt d k, qk t sqrt dk, q k t sqrt d k, q k sqrt d k, qkt sqrt d k, qkt sqrt dk", *SCORES[1:]),
    **_each("masked, masked scores, scores masked, after mask, masked attention scores, masked attn scores", "masked"),
    **_each("softmax, after softmax, attention weights, weights, attn weights, attention, attn", "weights"),
    **_each("probs, attention probs, attn probs, probabilities, attention probabilities, a", "weights"),
    **_each("softmax scores, softmax output, softmax out, attention matrix, attention map, attn map", "weights"),
    **_each("attention scores after softmax, attention weights softmax, softmax attention", "weights"),
    **_each("softmax qk t sqrt dk, softmax qk t sqrt d k, softmax q k t sqrt d k, alpha, alphas", "weights"),
    **_each("context, weights v, head output, head out, z, context vectors", "context", "concat"),
    **_each("attention output, attn output, attn out, attention out, self attention", "output", "context", "concat"),
    **_each("self attn, attn result, attention result", "output", "context", "concat"),
    **_each("concat, concatenated, concatenated heads, concat heads, heads concat, heads", "concat"),
    **_each("output projection, out proj, o proj, proj, projection, wo, w o, o, out projection, linears 3", "output"),
    **_each("c proj", "output"),
    **_each("wei, attn wei", "weights"),
    **_each("masked self attention, masked attention, masked multi head attention, masked mha", "output", "masked"),
    **_each("multi head, multihead, mha, multi head attention, multihead attention, multi head output", "output"),
    **_each("multihead output, mha output, mha out, multi head attention output, self attention output", "output"),
    **_each("multihead attention output, multi head out, multihead out, self attn output, self attn out", "output"),
}
"""Headings → steps of an attention."""

FEED_FORWARD: Table = {
    **_each(
        "hidden, linear, linear 1, linear1, fc 1, fc, w 1, ffn 1, ff 1, up, up proj, layer 1, 1, dense 1", "hidden"
    ),
    **_each("hidden layer, pre activation, before activation, before relu, before gelu, inner, h, 0", "hidden"),
    **_each("relu, gelu, silu, activation, act, act fn, activated, after relu, after gelu, nonlinearity", "activation"),
    **_each("relu output, gelu output, after activation, hidden relu, hidden gelu, hidden after relu", "activation"),
    **_each("linear 2, linear2, fc 2, w 2, ffn 2, ff 2, down, down proj, layer 2, dense 2, c proj, 3", "output"),
    **_each("out, output, result", "output"),
    **_each("2", "output", "activation"),
    **_each("c fc", "hidden"),
}
"""Headings → steps of the feed-forward layer."""

GATED: Table = {
    **_each("w 1, gate, gate proj", "gate"),
    **_each("w 3, up, up proj", "hidden"),
    **_each("w 2", "output"),
}
"""The same where there is a gate: the names of Llama's first program."""

OF_FEED_FORWARD = ("0", "1", "2", "3", "h", "up", "down", "out", "output", "result", "layer 1", "layer 2", "inner")
"""Headings that mean this only where the feed-forward layer is named too."""

NORM = {
    **_each("add, residual, add 1, residual 1, x attention, x attn, x self attention, skip 1", "0.residual"),
    **_each("add 2, residual 2, x ffn, x feed forward, skip 2", "1.residual"),
    **_each("add 3, residual 3, skip 3", "2.residual"),
    **_each("norm, norm 1, layer norm 1, layernorm 1, ln 1, add norm, add norm 1, addnorm 1, layer norm", "0.norm"),
    **_each("add and norm, add and norm 1, layernorm, ln, addnorm", "0.norm"),
    **_each("norm 2, layer norm 2, layernorm 2, ln 2, add norm 2, add and norm 2, addnorm 2", "1.norm"),
    **_each("norm 3, layer norm 3, layernorm 3, ln 3, add norm 3, add and norm 3, addnorm 3", "2.norm"),
}
"""Headings → what is after each sublayer, counted in their order."""

LAST_NORM = frozenset(
    {"norm", "ln", "ln f", "f", "final norm", "final ln", "final layer norm", "layer norm", "last norm"}
)
"""The norm behind the last layer, where there is one."""

LAYER: Table = _each("output, out, layer output, encoder output, decoder output, block output, result, x", "output")
"""Headings → steps of a layer, where its number is there."""

OUTSIDE: Table = {
    **_each("embedding, embeddings, token embedding, token embeddings, embedding matrix, emb", "tokens", "output"),
    **_each("word embedding, word embeddings, input embedding, input embeddings, tok emb", "tokens", "output"),
    **_each("token emb, tok embeddings, embedded, embedded tokens, wte, x emb, embed", "tokens", "output"),
    **_each(
        "positional encoding, position encoding, positions, pe, pos, pos enc, pos encoding, wpe", "positions", "output"
    ),
    **_each("positional encodings, position encodings, position embedding, position embeddings", "positions"),
    **_each("positional embedding, positional embeddings, pos emb, pos embedding, pos embeddings", "positions"),
    **_each("x, input, inputs, encoder input, embedding positions, embedded input, final embedding", "output"),
    **_each("embedding positional encoding, input positional encoding, embedding pe, embeddings pe", "output"),
    **_each("embedding with positions, embedding with positional encoding, emb with pos, x 0", "output"),
    **_each("embed plus pos, input embedding with pe, input with pos, emb pos, emb pe, embeddings pos", "output"),
    **_each("embeddings positional encoding, embedding with pe, embeddings with positions", "output"),
}
"""Headings → steps of the embedding."""

END: Table = {
    **_each("logits, output logits, final logits, lm head, fc out, classifier, generator, unembed", "output.logits"),
    **_each("output, out, outputs", "output.logits"),
    **_each("generator proj, head out, output projection, out proj, final linear", "output.logits"),
    **_each("probabilities, output probabilities, token probabilities, probs, output probs", "output.probabilities"),
    **_each("softmax, softmax out, softmax output, final softmax, y hat, final probabilities", "output.probabilities"),
}
"""Headings → steps of the end; a matrix of an attention that is called the same has another shape."""

POSITIONS = frozenset({"positional", "position", "positions", "pos", "pe"})
ADDED = frozenset({"with", "plus", "added", "adding", "add", "after", "sum", "combined", "and"})
"""Words beside those of positions that say that they were added."""

LAYER_NUMBER = re.compile(
    r"\b(?:(?:encoder|decoder|enc|dec|transformer)\.)?(?:layers?|blocks?|l|h|enc|dec|encoder|decoder)\.(\d+)\b"
)
BETWEEN = re.compile(r"[xh]\.(\d+)")
"""Rows between layers: x0, h1."""

HEAD_NUMBER = re.compile(r"\bheads?\.(\d+)\b")
ABBREVIATED = {"enc": "encoder", "dec": "decoder"}
OF_ATTENTION = frozenset({"attn", "attention", "self", "mha", "multihead", "sa", "msa"})
OF_CROSS = frozenset({"cross", "src"})
OF_HIDDEN = frozenset({"ffn", "ffwd", "ff", "mlp", "feedforward", "feed", "forward"})
OF_PROJECTIONS = frozenset({"proj", "projection", "projected", "linear", "w", "x", "matrix"})
"""Words beside q, k and v that say nothing more."""

SIZES = re.compile(r"[(\[{]?\s*\d+\s*[x×,]\s*\d+\s*[)\]}]?")
SILENT = frozenset({"matrix", "of", "the", "for", "in", "after", "shape", "self", "step", "result", "final", "by"})
"""Words of a heading that say nothing."""

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Headings:
    """Finds what a heading stands for: the layer and the head by their numbers, the step by the words around them."""

    program: Program
    stacks: Sequence[Stack]
    first: tuple[int, int] = (0, 0)
    """The numbers of the first layer and of the first head."""

    def get(self, key: str, /) -> tuple[Target, ...] | None:
        """The step of a heading in the spelling of `spelled`."""
        layer, said = LAYER_NUMBER.search(key), HEAD_NUMBER.search(key)
        head = int(said[1]) - self.first[1] if said else None
        behind = _words(key[layer.end() :] if layer else "")
        around = _words(LAYER_NUMBER.sub("", key, count=1))
        stack = self._stack(_words(key))
        if stack is None:
            return None
        if between := BETWEEN.fullmatch(key):
            return self._between(stack, int(between[1]))
        number = int(layer[1]) - self.first[0] if layer else None
        if number is not None and number < 0:
            return None
        for words in (around, behind) if behind else (around,):
            bare = [word for word in words if word not in ("encoder", "decoder")]
            whole = number is None and len(bare) < len(words) and bare in (["output"], ["out"], [])
            if whole or words == ["memory"]:
                steps = present(self.program, f"{stack.name}.norm", stack.exit)
            else:
                steps = self._steps(stack, number, bare or words)
            kept = steps if head is None else tuple(step for step in steps if self._has(step, head))
            if kept:
                return (Target(kept, head=head),)
        return None

    def _has(self, step: str, head: int) -> bool:
        axes = self.program.by_name[step].axes
        return len(axes) != 3 or 0 <= head < axes[0].size

    def _stack(self, words: Sequence[str]) -> Stack | None:
        return next((stack for stack in self.stacks if stack.name in words), next(iter(self.stacks), None))

    def _steps(self, stack: Stack, number: int | None, words: Sequence[str]) -> Names:
        """The steps that the words stand for; a number behind them is that of the layer where they say it of none."""
        steps = self._present(stack, number, words)
        if number is not None or len(words) < 2 or not words[-1].isdigit():
            return steps
        return tuple(dict.fromkeys((*steps, *self._present(stack, int(words[-1]), words[:-1]))))

    def _between(self, stack: Stack, number: int) -> tuple[Target, ...] | None:
        """The stream that enters a layer, or leaves it: people count from either."""
        before = stack.entrance if number == 0 else f"{stack.name}.{number - 1}.output"
        steps = present(self.program, before, f"{stack.name}.{number}.output")
        return (Target(steps),) if steps else None

    def _present(self, stack: Stack, number: int | None, words: Sequence[str]) -> Names:
        kept = list(words)
        if "before" in kept[1:]:
            kept = kept[: kept.index("before")]
        named = self._named(stack, number, kept)
        return present(self.program, *named)

    def _named(self, stack: Stack, number: int | None, words: Sequence[str]) -> Iterator[str]:
        """Full names of the steps that words may stand for."""
        layer = f"{stack.name}.{number or 0}."
        loud = [word for word in words if word not in SILENT]
        if not loud and number is not None:
            yield f"{layer}output"
        for spoken in dict.fromkeys((tuple(words), tuple(loud))):
            yield from (f"{layer}{step}" for step in self._of_layer(stack, spoken, numbered=number is not None))
            if number is None:
                phrase = " ".join(spoken)
                outside = OUTSIDE.get(phrase) or (("output",) if _with_positions(spoken) else ())
                yield from (f"{stack.embedding}embedding.{step}" for step in outside)
                yield from END.get(phrase, ())
                yield from (f"{stack.name}.norm" for _ in range(phrase in LAST_NORM))

    def _of_layer(self, stack: Stack, words: tuple[str, ...], *, numbered: bool) -> Iterator[str]:
        """Steps of a layer, without its name."""
        phrase, cross = " ".join(words), any(word in OF_CROSS for word in words)
        sublayer = "cross_attention" if cross else "self_attention"
        rest = [word for word in words if word not in OF_CROSS]
        attention = [word for word in rest if word not in OF_ATTENTION]
        feed = [word for word in rest if word not in OF_HIDDEN]
        if numbered:
            yield from LAYER.get(phrase, ())
        yield from self._normed(stack, phrase)
        if len(feed) < len(rest):
            named = FEED_FORWARD.get(" ".join(feed), ()) if feed else ("output",)
            gated = GATED.get(" ".join(feed), ()) if "gate" in self._parts(stack) else ()
            yield from (f"feed_forward.{step}" for step in (*gated, *named, *_of_sublayer(feed)))
            return
        if phrase not in OF_FEED_FORWARD:
            yield from (f"feed_forward.{step}" for step in FEED_FORWARD.get(phrase, ()))
        for spoken in (attention if len(attention) < len(rest) else [], rest):
            yield from (f"{sublayer}.{step}" for step in _of_attention(spoken))
        if len(attention) < len(rest):
            yield from (f"{sublayer}.{step}" for step in _of_sublayer(attention))
        if rest and not attention:
            yield from (f"{sublayer}.{step}" for step in ("weights", "output", "context", "concat"))

    def _normed(self, stack: Stack, phrase: str) -> Iterator[str]:
        """The norm and sum after a sublayer, by its number."""
        for step in NORM.get(phrase, ()):
            place, _, part = step.partition(".")
            if int(place) < len(self._sublayers[stack.name]):
                yield f"{self._sublayers[stack.name][int(place)]}.{part}"

    def _parts(self, stack: Stack) -> set[str]:
        inside = f"{stack.name}.0.feed_forward."
        return {name.removeprefix(inside) for name in self.program.by_name if name.startswith(inside)}

    @cached_property
    def _sublayers(self) -> Mapping[str, Sequence[str]]:
        """The sublayers of the first layer of each stack, in order."""
        by_stack = {}
        for stack in self.stacks:
            inside = (step.sublayer for step in self.program.steps if step.layer == f"{stack.name}.0")
            by_stack[stack.name] = list(dict.fromkeys(each.rpartition(".")[2] for each in inside))
        return by_stack


def _with_positions(words: Sequence[str]) -> bool:
    return bool(POSITIONS & set(words)) and bool(ADDED & set(words))


def _of_sublayer(words: Sequence[str]) -> tuple[str, ...]:
    step = next(iter(NORM.get(" ".join(words), ())), "")
    return (step.partition(".")[2],) if step.startswith("0.") else ()


def _of_attention(words: Sequence[str]) -> tuple[str, ...]:
    """Steps of an attention; what is beside q, k and v may say that they are products."""
    steps = ATTENTION.get(" ".join(words), ())
    if steps:
        return steps
    bare = ATTENTION.get(" ".join(word for word in words if word not in OF_PROJECTIONS), ())
    return bare if bare in (("query",), ("key",), ("value",)) else ()


def _words(key: str) -> list[str]:
    """The words of a heading without the number of a head; abbreviations written out."""
    words = [word for word in HEAD_NUMBER.sub("", key).split(".") if word]
    return [ABBREVIATED.get(word, word) for word in words]


def words(model: Model, program: Program) -> Headings:
    """Headings with the number of the layer and of the head in them, or of the first layer."""
    del model
    return Headings(program, stacks(program))


def numbers_in(key: str) -> tuple[int | None, int | None]:
    """The layer and the head that a name in the spelling of `spelled` says."""
    layer, head = LAYER_NUMBER.search(key), HEAD_NUMBER.search(key)
    return int(layer[1]) if layer else None, int(head[1]) if head else None


def plain(name: str) -> str:
    """A heading without sizes in it, as "3x4"."""
    return spelled(SIZES.sub(" ", name) if "x" in name or "×" in name or "," in name else name)
