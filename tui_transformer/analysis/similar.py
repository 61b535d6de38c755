"""Words alike: cosines of rows of the embedding table, and sums and differences of words.

cos(x, y) = x · y ÷ (|x| |y|). A sum such as king − man + woman is that of the words' unit vectors; its own words are
left out of the answer (Mikolov et al. 2013, "Linguistic Regularities in Continuous Space Word Representations", §5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.engine import ops
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Step
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.targets import token_of
from tui_transformer.model.weight_table import TABLE
from tui_transformer.records import dataclass

BLOCK = 1 << 20
"""Cells that are looked at together."""

ROUNDING = 1e-12
"""Below this a sum of unit vectors is 0: `a - b + b - a` leaves what float64 rounds."""

SIGNS: Mapping[str, int] = {"+": 1, "-": -1, "−": -1}


@dataclass(frozen=True)
class Term:
    """A word that is added (1) or taken off (−1)."""

    token: int
    sign: int


def terms_of(model: Model, text: str) -> tuple[Term, ...]:
    """The words of `king - man + woman`; a sign stands alone or before its word.

    InputError where one is not one token.
    """
    terms, sign = list[Term](), 1
    for piece in text.split():
        if piece in SIGNS:
            sign = SIGNS[piece]
            continue
        token = token_of(model.tokenizer, piece[1:]) if piece[0] in SIGNS else None
        if token is None:
            token = token_of(model.tokenizer, piece)
        else:  # right before its word
            sign = SIGNS[piece[0]]
        if token is None:
            has_words = model.vocabulary is not None
            what = f"one token of the vocabulary of {model.name}: write another word"
            raise InputError(f"{piece[:40]!r} is not {what if has_words else 'a token ID, and the model has no words'}")
        if not 0 <= token < model.config.vocab_size:
            raise InputError(f"there is no token {token}: IDs go from 0 to {model.config.vocab_size - 1}")
        terms.append(Term(token, sign))
        sign = 1
    if not terms:
        raise InputError("there is no word: write one, or a sum such as king - man + woman")
    return tuple(terms)


def similar(
    trace: Trace, terms: Sequence[Term], count: int, table: str | None = None, among: Host | None = None
) -> list[tuple[int, float]]:
    """The tokens whose rows point most nearly where the sum does, with their cosines; a block of rows at a time.

    The `table` is a weight with a row for every word, by default the first; `among` says for every word whether it may
    be found (`Model.has_vector`), by default any may. InputError where there is no table, or the sum is 0.
    """
    table = table_name(trace) if table is None else table
    size, width = trace.program.shape(table)
    rows = [trace.window(table, (range(term.token, term.token + 1), range(width)))[0] for term in terms]
    signs = np.array([term.sign for term in terms])
    wanted = (signs[:, None] * _units(np.array(rows, dtype=np.float64))).sum(axis=0)
    if np.abs(wanted).max() < ROUNDING:
        raise InputError("these rows of the embedding add up to 0, which points nowhere: choose other words")
    height = max(1, BLOCK // width)
    blocks = (range(start, min(start + height, size)) for start in range(0, size, height))
    (toward,) = _units(wanted[None])
    cosines = np.concatenate(
        [_units(trace.window(table, (block, range(width))).astype(np.float64)) @ toward for block in blocks]
    )
    cosines[[term.token for term in terms]] = -np.inf
    if among is not None:
        cosines[: len(among)][~among] = -np.inf
    best = np.argsort(-cosines, kind="stable")[:count]
    return [(int(token), float(cosines[token])) for token in best if np.isfinite(cosines[token])]


def table_name(trace: Trace) -> str:
    """The weight that holds a row for every word; InputError where there is none."""
    name = next((name for name in trace.program.weights if name.endswith(TABLE)), None)
    if name is None:
        raise InputError("this model has no embedding of words: its vectors are given")
    return name


def _units(rows: Host) -> Host:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(rows / np.where(lengths == 0.0, 1.0, lengths))


POOLED = "pooled"
BIAS = -1
"""The place of the part that is of no token."""


@dataclass(frozen=True, eq=False)
class SentenceVector:
    """The vector of a sentence, and what every token gives to it, last the biases: (n + 1) × d, which add up to it."""

    whole: Host
    parts: Host

    @property
    def length(self) -> float:
        """‖whole‖."""
        return float(np.linalg.norm(self.whole))


@dataclass(frozen=True, eq=False)
class Together:
    """The cosine of two sentences (0 where a vector is 0), and what every pair of tokens gives to it.

    These shares add up to it: (n + 1) × (m + 1), last those of the biases.
    """

    cosine: float
    shares: Host

    def largest(self, count: int) -> tuple[tuple[int, int, float], ...]:
        """The pairs that give most, whatever the sign, and how much; `BIAS` for what is of no token."""
        order = np.argsort(-np.abs(self.shares), axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(order, self.shares.shape)
        firsts, seconds = ([*range(size - 1), BIAS] for size in self.shares.shape)
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return tuple((firsts[row], seconds[column], float(self.shares[row, column])) for row, column in pairs)


def sentence_vector(trace: Trace, item: int = 0) -> SentenceVector:
    """The last vector of a model that makes one of a sentence; InputError for a model that makes none."""
    steps = [step for step in trace.program.steps if step.name.split(".")[0] == POOLED]
    if not steps:
        raise InputError(
            "this model makes no vector of a sentence: name a folder of sentence-transformers with --model, one that "
            "has a modules.json"
        )
    parts: dict[str, Host] = {}
    for step in steps:
        parts[step.name] = _parts_behind(trace, step, item, parts)
    last = steps[-1].name
    return SentenceVector(_values(trace, last, item), parts[last])


def _parts_behind(trace: Trace, step: Step, item: int, before: Mapping[str, Host]) -> Host:
    """The parts of a vector behind an operation, from those of the steps before it."""
    op: Any = step.op
    if isinstance(op, ops.Concat):
        return np.hstack([before[name] for name in step.inputs])
    if isinstance(op, ops.Pool):  # share · x of every token; no bias yet
        rows, visible = (_values(trace, name, item) for name in step.inputs)
        shares = op.shares(np, rows[None], visible[None])[0]
        return np.vstack([rows * shares, np.zeros(rows.shape[-1])])
    if isinstance(op, ops.Linear):
        weight, *biases = (_values(trace, name, item) for name in step.inputs[1:])
        parts: Host = before[step.inputs[0]] @ weight
        for bias in biases:
            parts[BIAS] += bias
        return parts
    # Of a function f its f(z) ÷ z of every column; where z is 0 the parts go as the slope does, which is left at 0.
    assert isinstance(op, ops.UnitLength | ops.Tanh | ops.Relu | ops.Gelu | ops.Silu)  # noqa: S101 - poolers have no other
    own, value = (_values(trace, name, item) for name in (step.inputs[0], step.name))
    return before[step.inputs[0]] * np.divide(value, own, out=np.zeros_like(own), where=own != 0)


def _values(trace: Trace, name: str, item: int) -> Host:
    source = trace.source(name, item)
    return source.read(whole(source.shape))


def together(first: SentenceVector, second: SentenceVector) -> Together:
    """The cosine of two sentences, and what every pair of tokens gives to it."""
    lengths = first.length * second.length
    scale = 1.0 / lengths if lengths else 0.0
    return Together(float(first.whole @ second.whole) * scale, first.parts @ second.parts.T * scale)
