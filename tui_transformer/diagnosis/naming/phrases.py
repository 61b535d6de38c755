"""Words for steps: names in one spelling, what a name of a dump stands for, and the phrases of headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.model import Model


@dataclass(frozen=True, eq=False)
class Target:
    """The step that a name of a dump stands for.

    Attributes:
        steps: The step; others after it are taken where the values are theirs and not those of the first.
        head: The head that it holds, where it holds one alone.
        columns: The columns of it that are the step's, where it holds several steps side by side.
        paired: Columns i and i + d_k/2 of a head may lie side by side, as in GGUF files.
        scale: The step is these values times so much, or these values.
        offset: The step is these values plus so much, or these values.
        note: What the name was taken for, where that is not plain.
        unless: Another name; where the dump has that, this one holds something else.
    """

    steps: tuple[str, ...]
    head: int | None = None
    columns: Host | None = None
    paired: bool = False
    scale: float = 1.0
    offset: Host | None = None
    note: str = ""
    unless: str = ""


HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
WORD = re.compile(r"[a-z]+|\d+")

Table = Mapping[str, tuple[Target, ...]]
"""Names, in the spelling of `spelled`, and what they stand for; a fused matrix stands for several steps."""

Convention = Callable[[Model, Program], Table]


def spelled(name: str) -> str:
    """A name in lower case, its words and numbers between points: `h.0.attn.c_attn` is `h.0.attn.c.attn`."""
    return ".".join(words_of(name))


def words_of(name: str) -> list[str]:
    """The words and numbers of a name, in lower case."""
    return WORD.findall(name if name.islower() else HUMP.sub(".", name).lower())


def phrases(text: str) -> frozenset[str]:
    """Phrases between commas, in as many lines as they need."""
    return frozenset(" ".join(each.split()) for each in text.split(","))


def table(targets: Iterable[tuple[str, Target]]) -> dict[str, tuple[Target, ...]]:
    """Names with what they stand for; the first that gives a name a meaning keeps it."""
    by_name: dict[str, tuple[Target, ...]] = {}
    for name, target in targets:
        by_name.setdefault(spelled(name), (target,))
    return by_name


def present(program: Program, *steps: str) -> tuple[str, ...]:
    """The steps among these that a program has, under their own names."""
    own = (program.aliases.get(step, step) for step in steps)
    return tuple(dict.fromkeys(step for step in own if step in program.by_name))


def last_logits(program: Program) -> tuple[str, ...]:
    """The logits that the probabilities are of, and what they were before they were capped, back to the product."""
    names: list[str] = []
    step = program.by_name.get("output.probabilities")
    while step is not None and step.name != "output.logits" and step.inputs[0].startswith("output."):
        step = program.by_name.get(step.inputs[0])
        names += [] if step is None else [step.name]
    return tuple(names) or present(program, "output.logits")


@dataclass(frozen=True)
class Stack:
    """The encoder or the decoder of a program.

    Attributes:
        name: "encoder" or "decoder".
        layers: How many.
        embedding: What is in front of the names of its embedding: "" or "decoder.".
    """

    name: str
    layers: int
    embedding: str

    @property
    def entrance(self) -> str:
        """The rows that enter layer 0."""
        return f"{self.embedding}embedding.output"

    @property
    def exit(self) -> str:
        """The rows that leave the last layer."""
        return f"{self.name}.{self.layers - 1}.output"


def stacks(program: Program) -> list[Stack]:
    """The stacks of a program, in order."""
    counts: dict[str, int] = {}
    for step in program.steps:
        parts = step.name.split(".")
        if len(parts) > 2 and parts[0] in ("encoder", "decoder") and parts[1].isdigit():
            counts[parts[0]] = max(counts.get(parts[0], 0), int(parts[1]) + 1)
    prefix = "decoder." if len(counts) > 1 else ""
    return [Stack(name, count, prefix if name == "decoder" else "") for name, count in counts.items()]


SCORES = ("scores", "scaled", "capped", "biased", "masked")
Phrases = Mapping[str, tuple[str, ...]]


def _each(phrases: str, *steps: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys((phrase.strip() for phrase in phrases.split(",")), steps)


ATTENTION: Phrases = {
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

FEED_FORWARD: Phrases = {
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

GATED: Phrases = {
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

LAYER: Phrases = _each("output, out, layer output, encoder output, decoder output, block output, result, x", "output")
"""Headings → steps of a layer, where its number is there."""

OUTSIDE: Phrases = {
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

END: Phrases = {
    **_each("logits, output logits, final logits, lm head, fc out, classifier, generator, unembed", "output.logits"),
    **_each("output, out, outputs", "output.logits"),
    **_each("generator proj, head out, output projection, out proj, final linear", "output.logits"),
    **_each("probabilities, output probabilities, token probabilities, probs, output probs", "output.probabilities"),
    **_each("softmax, softmax out, softmax output, final softmax, y hat, final probabilities", "output.probabilities"),
}
"""Headings → steps of the end; a matrix of an attention that is called the same has another shape."""

ABBREVIATED = {"enc": "encoder", "dec": "decoder"}
SIZES = re.compile(r"[(\[{]?\s*\d+\s*[x×,]\s*\d+\s*[)\]}]?")
SILENT = frozenset({"matrix", "of", "the", "for", "in", "after", "shape", "self", "step", "result", "final", "by"})
"""Words of a heading that say nothing."""


def plain(name: str) -> str:
    """A heading without sizes in it, as "3x4"."""
    return spelled(SIZES.sub(" ", name) if "x" in name or "×" in name or "," in name else name)


STACKS = {"encoder": "encoder", "decoder": "decoder", "enc": "encoder", "dec": "decoder"}
"""Sections, and the stack that they are of."""

BEGINNING = phrases(
    """
    input, inputs, tokens, token ids, input ids, ids, input tokens, input token ids, token id, embedding,
    embeddings, token embedding, token embeddings, word embedding, word embeddings, input embedding, input
    embeddings, sentence, input sentence, input text, text
    """
)
"""What a sentence begins with."""

PARTS = {
    "self attention": phrases(
        """
        self attention, self attn, attention, attn, multi head attention, multihead attention, mha, multi head
        self attention, multihead self attention, masked self attention, masked multi head attention, attention
        layer, attention sublayer, self attention layer, self attention sublayer, scaled dot product attention
        """
    ),
    "cross attention": phrases(
        """
        cross attention, cross attn, encoder decoder attention, cross attention layer, cross attention sublayer,
        multi head cross attention
        """
    ),
    "feed forward": phrases(
        """
        feed forward, feedforward, ffn, ff, mlp, feed forward network, feed forward layer, position wise feed
        forward, positionwise feed forward, feed forward sublayer, position wise feed forward network, position
        wise ffn, feedforward network, feed forward neural network
        """
    ),
}
"""Sections of a layer."""

OF_MODEL = phrases(
    """
    logits, logit, vocab, vocabulary, unembed, unembedding, lm, embedding, embeddings, embed, embedded,
    positional, prediction, predictions, predicted, answer, classifier, pooler, pooled, perplexity, loss
    """
)
LAST = frozenset({"final", "last", "model"})
RESULTS = frozenset({"output", "outputs", "result", "results"})
WITHIN_HEADS = frozenset({"attention", "attn", "relative", "score", "scores", "weights", "head", "heads", "bias"})
OF_LAYER = phrases(
    """
    add, residual, norm, normalized, layernorm, addnorm, ln, concat, concatenated, concatenation, merged, ffn,
    mlp, relu, gelu, silu, feed, feedforward, forward, projection, projected, block, layer, skip
    """
)
AFTER_PART = phrases("add, residual, addnorm, norm, layernorm, layer")

SETTINGS = phrases(
    """
    d model, dmodel, model dim, embedding dim, embed dim, embedding size, hidden size, hidden dim, d k, dk, d v,
    dv, d ff, dff, head dim, head size, n, d, heads, num heads, n heads, number of heads, nhead, layers, num
    layers, n layers, number of layers, vocab size, vocabulary size, seq len, seq length, sequence length, n
    tokens, num tokens, number of tokens, max len, max length, max seq len, batch size, batch, seed, dropout,
    dropout rate, eps, epsilon, learning rate, lr, scale, scale factor, scaling factor, sqrt d k, sqrt dk, n
    layer, n head, n embd, n vocab, n ctx
    """
)
"""Headings of single numbers that say how a program is set."""


@lru_cache(maxsize=256)
def phrase_of(text: str) -> str:
    """The words of a heading, between spaces, numbers left out."""
    parts = [word for word in plain(text).split(".") if not word.isdigit()]
    return " ".join(ABBREVIATED.get(word, word) if len(parts) > 1 else word for word in parts)


def of_model(phrase: str) -> bool:
    """True if a heading is of the model, and not of one of its layers."""
    said = phrase.split()
    if not said or WITHIN_HEADS & set(said) - {"weights"}:
        return False
    if phrase in BEGINNING or OF_MODEL & set(said):
        return True
    return said[0] in LAST or phrase in ("ln f", "norm f", "token probabilities", "output probabilities", "next token")


def part_of_layer(phrase: str) -> str:
    """The part of a layer that a heading is about, and of nothing in it; "" where it is about something else."""
    bare = re.sub(r"^(?:\w )?(?:the )?|(?: (?:block|module|computation|step))$", "", phrase) if phrase else ""
    return next((part for part, spoken in PARTS.items() if phrase in spoken or bare in spoken), "")


def is_spoken(phrase: str) -> bool:
    """True if these are words for a step, whatever layer and head they are of."""
    short = " ".join(word for word in phrase.split() if word not in SILENT)
    known = phrase in _every() or short in _every() or of_model(phrase)
    return (len(phrase) > 1 and known) or phrase in ("q", "k", "v")


@cache
def saying() -> frozenset[str]:
    """Words of which a phrase has one where it is of a step, or says something of what follows."""
    spoken = _every() | BEGINNING | OF_MODEL | LAST | OF_LAYER | AFTER_PART | RESULTS | {*STACKS, "next token"}
    words = {max(phrase.split(), key=len) for phrase in spoken if not phrase.isdigit()}
    return frozenset(words | {short for short, whole in ABBREVIATED.items() if whole in words})


@cache
def _every() -> frozenset[str]:
    tables = (ATTENTION, FEED_FORWARD, GATED, NORM, LAYER, OUTSIDE, END)
    spoken = {spelled(phrase).replace(".", " ") for table in tables for phrase in table}
    return frozenset(spoken | LAST_NORM | {phrase for part in PARTS.values() for phrase in part})
