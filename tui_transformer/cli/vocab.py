"""`vocab`: the built-in vocabularies, a look into a vocabulary, and how it splits a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tui_transformer.cli.output import emit, note
from tui_transformer.errors import InputError
from tui_transformer.text.display import cells, fit, visible
from tui_transformer.text.tokenizer import Token, tokenizer_for
from tui_transformer.text.vocabulary import Vocabulary, built_in_vocabularies, load_vocabulary

KINDS = {"words": "whole words", "wordpiece": "word pieces", "pieces": "pieces of a tokenizer"}


def show_list() -> None:
    """The vocabularies that come with the program: name, number of words, first words."""
    found = [load_vocabulary(name) for name in built_in_vocabularies()]
    width = max(len(words.name) for words in found)
    emit(f"{words.name:<{width}}  {words.size:>7,} words  {_first(words)}\n" for words in found)


def _first(words: Vocabulary) -> str:
    return visible(" ".join(islice(words.words, 6))) + (" …" if words.size > 6 else "")


def check(where: str) -> None:
    """What kind a vocabulary is, how many words it has, and what is odd about it."""
    words = load_vocabulary(where)
    special = [words.words[token] for token in sorted(words.special_ids)]
    rows = {
        "vocabulary": visible(words.name),
        "kind": KINDS[words.kind],
        "entries": f"{words.size:,}",
        "repeated": f"{words.repeated:,}" + (" (ignored)" if words.repeated else ""),
        "special": " ".join(special),
        "padding": "none" if words.pad_id is None else f"{words.words[words.pad_id]} {words.pad_id}",
        "longest": visible(max(words.words, key=len)),
    }
    emit(f"{name:<10}  {text}\n" for name, text in rows.items())


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
    found = words.search(query)
    if not found:
        raise InputError(f"no word of {visible(words.name)} contains {query[:80]!r}")
    emit(_words(words, found[:count]))
    if len(found) > count:
        note(f"{len(found) - count:,} more: --count {len(found)}")


def _words(words: Vocabulary, ids: Iterable[int]) -> Iterator[str]:
    width = len(str(words.size - 1))
    return (f"{token:>{width}}  {visible(words.words[token])}\n" for token in ids)


def tokens(where: str, text: str) -> None:
    """A line a token: ID, word, place in the text; then the text that the IDs stand for."""
    tokenizer = tokenizer_for(load_vocabulary(where))
    encoding = tokenizer.encode(text)
    if not encoding.tokens:
        raise InputError("the text has no tokens: write at least one word")
    emit(_token_table(encoding.tokens))
    emit([f"\n{visible(tokenizer.decode(encoding.ids))}\n"])


def _token_table(found: tuple[Token, ...]) -> Iterator[str]:
    width = max(cells(token.text) for token in found)
    yield f"{'id':>7}  {fit('token', max(width, 5))}  place\n"
    for token in found:
        mark = "unknown" if token.unknown else "special" if token.special else ""
        place = f"{token.start}–{token.end}"
        yield f"{token.id:>7}  {fit(token.text, max(width, 5))}  {place:<9}  {mark}".rstrip() + "\n"
