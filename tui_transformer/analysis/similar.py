"""Words alike: cosines of rows of the embedding table, and sums and differences of words.

cos(x, y) = x · y ÷ (|x| |y|). A sum such as king − man + woman is that of the words' unit vectors; its own words are
left out of the answer (Mikolov et al. 2013, "Linguistic Regularities in Continuous Space Word Representations", §5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.targets import token_of

TABLE = "embedding.tokens.weight"
BLOCK = 1 << 20
"""Cells that are looked at together."""


@dataclass(frozen=True)
class Term:
    """A word that is added (1) or taken off (−1)."""

    token: int
    sign: int


def terms_of(model: Model, text: str) -> tuple[Term, ...]:
    """The words of `king - man + woman`; a sign stands alone or before its word.

    Raises:
        InputError: There is none, or one is not one token.
    """
    pieces = re.findall(r"[+\-−](?=\s)|[^\s]+", text)
    terms: list[Term] = []
    sign = 1
    for piece in pieces:
        if piece in ("+", "-", "−"):
            sign = 1 if piece == "+" else -1
            continue
        token = token_of(model, piece)
        if token is None:
            raise InputError(f"{piece[:40]!r} is not one token of the vocabulary of {model.name}: write another word")
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

    Args:
        trace: Of the model.
        terms: The sum.
        count: Tokens at most.
        table: The weight with a row for every word; by default the first.
        among: For every word whether it may be found (`Model.has_vector`); by default any may.

    Raises:
        InputError: The model has no table of words, or the sum is 0.
    """
    table = table_name(trace) if table is None else table
    size, width = trace.program.shape(table)
    rows = [trace.window(table, (range(term.token, term.token + 1), range(width)))[0] for term in terms]
    wanted = np.sum([term.sign * _unit(row) for term, row in zip(terms, rows, strict=True)], axis=0)
    if not wanted.any():
        raise InputError("these rows of the embedding add up to 0, which points nowhere: choose other words")
    height = max(1, BLOCK // width)
    blocks = (range(start, min(start + height, size)) for start in range(0, size, height))
    along = [_units(trace.window(table, (block, range(width))).astype(np.float64)) @ _unit(wanted) for block in blocks]
    cosines = np.concatenate(along)
    cosines[[term.token for term in terms]] = -np.inf
    if among is not None:
        cosines[: len(among)][~among] = -np.inf
    best = np.argsort(-cosines, kind="stable")[:count]
    return [(int(token), float(cosines[token])) for token in best if np.isfinite(cosines[token])]


def table_name(trace: Trace) -> str:
    """The weight that holds a row for every word.

    Raises:
        InputError: There is none.
    """
    name = next((name for name in trace.program.weights if name.endswith(TABLE)), None)
    if name is None:
        raise InputError("this model has no embedding of words: its vectors are given")
    return name


def _unit(vector: Host) -> Host:
    unit: Host = _units(np.asarray(vector, dtype=np.float64)[None])[0]
    return unit


def _units(rows: Host) -> Host:
    """Rows of length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    result: Host = rows / np.where(lengths == 0.0, 1.0, lengths)
    return result
