"""`vocab`: the built-in vocabularies, a look into a vocabulary, and how it splits a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tui_transformer.cli.output import emit, note
from tui_transformer.cli.parsing import parse_ids
from tui_transformer.errors import InputError
from tui_transformer.files import is_file
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.encoding import Token, cut_by, decoded, joined
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies
from tui_transformer.text.word_tokenizers import unreachable

KINDS = {
    "words": "whole words",
    "characters": "single characters",
    "wordpiece": "word pieces",
    "pieces": "pieces of a tokenizer",
    "sentencepiece": "pieces of a SentencePiece model",
}

SPLIT_SAID = {
    "words": "runs of letters and digits, which an apostrophe may join",
    "runs": "runs of letters and digits",
    "spaces": "whatever stands between white space",
}
CASE_SAID = {"lower": "small letters", "kept": "as written"}
NAMED = 8
"""Entries that no text can give which are named."""


def show_list() -> None:
    """The vocabularies that come with the program: name, number of words, first words."""
    vocabularies = [load_vocabulary(name) for name in built_in_vocabularies()]
    width = max(len(words.name) for words in vocabularies)
    emit(f"{words.name:<{width}}  {words.size:>7,} words  {_first(words)}\n" for words in vocabularies)


def _first(words: Vocabulary) -> str:
    return " ".join(map(words.label, islice(words.words, 6))) + (" …" if words.size > 6 else "")


def check(where: str) -> None:
    """Kind and size of a vocabulary, and what is odd about it."""
    words = load_vocabulary(where)
    special = [words.words[token] for token in sorted(words.special_ids)]
    rows = {
        "vocabulary": visible(words.name),
        "kind": KINDS[words.kind],
        "entries": f"{words.size:,}",
        "repeated": f"{words.repeated:,}" + (" (ignored)" if words.repeated else ""),
        "special": " ".join(special),
        "padding": "none" if words.pad_id is None else f"{words.words[words.pad_id]} {words.pad_id}",
        "longest": words.label(max(words.words, key=len)),
        **_rule_rows(words),
    }
    emit(f"{name:<10}  {text}\n" for name, text in rows.items())


def _rule_rows(words: Vocabulary) -> dict[str, str]:
    """The rule for words, and the entries that it leaves out: `words:` is always the word and then its colon."""
    if words.kind != "words":
        return {}
    never = [visible(word) for word in unreachable(words)]
    named = ", ".join(never[:NAMED]) + ", …" * (len(never) > NAMED)
    return {
        "split": SPLIT_SAID[words.rule.split],
        "case": CASE_SAID[words.rule.case],
        "never": "0" if not never else f"{len(never):,} that no text can give: {named}",
    }


def show(where: str, first: int, count: int) -> None:
    """Words with their IDs, from one ID on."""
    words = load_vocabulary(where)
    if first >= words.size:
        raise InputError(f"{visible(words.name)} has no ID {first}: its IDs are 0 to {words.size - 1}")
    emit(_words(words, range(first, min(first + count, words.size))))
    if first + count < words.size:
        note(f"{words.size - first - count:,} more: --from {first + count}")


def search(where: str, query: str, count: int) -> None:
    """The words that contain the query: the word itself, beginnings, the rest."""
    words = load_vocabulary(where)
    hits = words.search(query)
    if not hits:
        raise InputError(f"no word of {visible(words.name)} contains {query[:80]!r}")
    emit(_words(words, hits[:count]))
    if len(hits) > count:
        note(f"{len(hits) - count:,} more: --count {len(hits)}")


def _words(words: Vocabulary, ids: Iterable[int]) -> Iterator[str]:
    """A line a word: its ID, the word, and what it stands for where that is something else."""
    rows = [(token, words.label(words.words[token]), words.reading(token)) for token in ids]
    width, wide = len(str(words.size - 1)), max(cells(word) for _, word, _ in rows)
    for token, word, reading in rows:
        explained = "" if reading in (word, words.words[token]) else visible(reading)
        yield f"{token:>{width}}  {fit(word, wide)}  {explained}".rstrip() + "\n"


def tokens(where: str, text: str, form: str, *, special: bool) -> None:
    """A line a token: ID, word, place in the text; then the text that the IDs stand for. As JSON, the tokens alone.

    Args:
        where: The vocabulary.
        text: What is split.
        form: "text" or "json".
        special: Whether to show what the tokenizer adds before and after a text.
    """
    tokenizer = tokenizer_for(load_vocabulary(where))
    encoded = [each for each in tokenizer.encode(text).tokens if special or not _added(each)]
    if form == "json":
        rows = [
            {"id": each.id, "token": tokenizer.vocabulary.word(each.id), "start": each.start, "end": each.end}
            for each in encoded
        ]
        emit([json.dumps({"tokens": rows}, ensure_ascii=False) + "\n"])
        return
    if not encoded:
        raise InputError("the text has no tokens: write at least one word")
    emit(_token_table(tokenizer.vocabulary, encoded))
    emit([f"\n{visible(tokenizer.decode([each.id for each in encoded]))}\n"])


def _added(token: Token) -> bool:
    return token.special and token.start == token.end


def _token_table(words: Vocabulary, encoded: Sequence[Token]) -> Iterator[str]:
    labels = [visible(token.text) if token.unknown else words.label(token.text) for token in encoded]
    width = max(map(cells, labels))
    yield f"{'id':>7}  {fit('token', max(width, 5))}  place\n"
    for token, label in zip(encoded, labels, strict=True):
        mark = "unknown" if token.unknown else "special" if token.special else ""
        place = f"{token.start}–{token.end}"
        yield f"{token.id:>7}  {fit(label, max(width, 5))}  {place:<9}  {mark}".rstrip() + "\n"


def decode(where: str, ids: str, *, around: bool) -> None:
    """The text of token IDs on a line; `around`: with begin, end and padding."""
    tokenizer, tokens = tokenizer_for(load_vocabulary(where)), parse_ids(ids, "IDs")
    emit([f"{visible(tokenizer.decode(tokens) if around else decoded(tokenizer, tokens))}\n"])


def cut(where: str, text: str) -> None:
    """A line a token: ID, piece, what it stands for, and the characters that it covers, with their place."""
    tokenizer = tokenizer_for(load_vocabulary(where))
    rows = [_explained(tokenizer.vocabulary, text, token) for token in tokenizer.encode(text).tokens]
    if not rows:
        raise InputError("the text has no tokens: write at least one word")
    _emit_table([("id", "piece", "stands for", "covers", "place"), *rows])


def _explained(words: Vocabulary, text: str, token: Token) -> tuple[str, ...]:
    reading, covered = words.reading(token.id), text[token.start : token.end]
    meaning = "special" if token.special else f"unknown: {token.text}" if token.unknown else reading
    part = "part of " if meaning.startswith("byte") else ""
    place = f"{token.start}–{token.end}" if covered else "added"
    return str(token.id), words.label(words.word(token.id)), meaning, f"{part}“{covered}”" if covered else "", place


def compare(names: Sequence[str], text: str) -> None:
    """A column a vocabulary, a row a word of the text: the tokens that it is cut into."""
    tokenizers = [tokenizer_for(load_vocabulary(name)) for given in names for name in _named(given)]
    comparison = cut_by(text, tokenizers)
    head = ("", *(each.name for each in comparison.cuts))
    counts = (
        "",
        *(f"{each.tokens} tokens" + (f", {each.unknown} unknown" * bool(each.unknown)) for each in comparison.cuts),
    )
    rows = [(word, *(joined(each.parts[i]) for each in comparison.cuts)) for i, word in enumerate(comparison.rows)]
    _emit_table([head, counts, *(row for row in rows if any(row))])


def _named(given: str) -> list[str]:
    return [given] if is_file(Path(given)) else given.split(",")


def _emit_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    emit("  ".join(map(fit, row, widths)).rstrip() + "\n" for row in rows)
