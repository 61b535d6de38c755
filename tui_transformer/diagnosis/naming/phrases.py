"""What words of a heading say of the headings after it, and whether they are words for a step at all."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from tui_transformer.diagnosis.naming.name import phrases, spelled
from tui_transformer.diagnosis.naming.words import (
    ABBREVIATED,
    ATTENTION,
    END,
    FEED_FORWARD,
    GATED,
    LAST_NORM,
    LAYER,
    NORM,
    OUTSIDE,
    SILENT,
    plain,
)

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
OF_ATTENTION = frozenset({"attention", "attn", "relative", "score", "scores", "weights", "head", "heads", "bias"})
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
    """Whether a heading is of the model, and not of one of its layers."""
    said = phrase.split()
    if not said or OF_ATTENTION & set(said) - {"weights"}:
        return False
    if phrase in BEGINNING or OF_MODEL & set(said):
        return True
    return said[0] in LAST or phrase in ("ln f", "norm f", "token probabilities", "output probabilities", "next token")


def ends_head(phrase: str) -> bool:
    """Whether a heading is of all heads together."""
    return bool(OF_LAYER & set(phrase.split()))


def ends_part(phrase: str) -> bool:
    """Whether a heading is of what comes after a part of a layer, or of the whole layer."""
    said = set(phrase.split())
    return bool(AFTER_PART & said) or part_of_layer(phrase) != ""


def part_of_layer(phrase: str) -> str:
    """The part of a layer that a heading is about, and of nothing in it; "" where it is about something else."""
    bare = re.sub(r"^(?:\w )?(?:the )?|(?: (?:block|module|computation|step))$", "", phrase) if phrase else ""
    return next((part for part, spoken in PARTS.items() if phrase in spoken or bare in spoken), "")


def is_spoken(phrase: str) -> bool:
    """Whether these are words for a step, whatever layer and head they are of."""
    said = [word for word in phrase.split() if word not in SILENT]
    short = " ".join(said)
    return (len(phrase) > 1 and (phrase in _every() or short in _every() or of_model(phrase))) or phrase in (
        "q",
        "k",
        "v",
    )


def is_setting(phrase: str) -> bool:
    """Whether a heading over a single number is that of a setting, and of no value."""
    return phrase in SETTINGS


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
