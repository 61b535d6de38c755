"""Whole words as tokens, by a rule for what a word is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from tui_transformer.text.encoding import Encoding, Token, check_length, too_many
from tui_transformer.text.vocabulary import Vocabulary, normal_form

_JOINERS = frozenset("\u200c\u200d")
_OPENING = frozenset({"Ps", "Pi"})


@dataclass(frozen=True)
class WordRule:
    """Rule for what a word is and how it is looked up.

    Attributes:
        pattern: The regular expression of a word, given the marks and joiners that occur in the text.
        form: The form in which a written word is looked up.
    """

    pattern: Callable[[str], str]
    form: Callable[[str], str]


def _with_apostrophes(joining: str) -> str:
    """Runs of letters and digits of any script, with their marks and joiners; an apostrophe may join two."""
    run = rf"[^\W_]+(?:[{joining}]+[^\W_]*)*" if joining else r"[^\W_]+"
    return f"{run}(?:['’]{run})*"


DEFAULT_RULE = "lower case"
RULES: Mapping[str, WordRule] = {DEFAULT_RULE: WordRule(_with_apostrophes, normal_form)}


@dataclass(frozen=True)
class WordTokenizer:
    """Whole words, lower-cased.

    A word is a run of letters and digits of any script, with the marks and joiners on them; an apostrophe between two
    of these belongs to the word, so "don't" is one word. Any other character is a token if the vocabulary has it and is
    dropped if not. Special words count only as written, `[CLS]`.
    """

    vocabulary: Vocabulary
    rule: str = DEFAULT_RULE

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into words; see `Tokenizer.encode`."""
        check_length(text)
        matches = self._matches(text)
        tokens = tuple(map(self._token, islice(matches, max_tokens)))
        left = sum(1 for _ in matches)
        if left and not cut:
            raise too_many(len(tokens) + left, max_tokens)
        return Encoding(text, tokens, left)

    def decode(self, ids: Sequence[int]) -> str:
        """Join the words with spaces, none before punctuation."""
        return join_words(map(self.vocabulary.word, ids))

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        ids, form = self.vocabulary.ids, RULES[self.rule].form
        for match in word_pattern(self.vocabulary.special_words, text, self.rule).finditer(text):
            if match.lastgroup != "other" or form(match[0]) in ids:
                yield match

    def _token(self, match: re.Match[str]) -> Token:
        written = match[0]
        if match.lastgroup == "special":
            return Token(self.vocabulary.ids[written], written, *match.span(), special=True)
        word = RULES[self.rule].form(written)
        token_id = self.vocabulary.ids.get(word)
        if token_id is None:
            return Token(self.vocabulary.ids[self.vocabulary.specials.unknown], written, *match.span(), unknown=True)
        return Token(token_id, word, *match.span())


def word_pattern(special_words: tuple[str, ...], text: str, rule: str = DEFAULT_RULE) -> re.Pattern[str]:
    """What finds the tokens of a text, in groups `special`, `word` and `other`."""
    return _pattern(special_words, _joining_characters(text), rule)


def words_in(text: str, rule: str = DEFAULT_RULE) -> list[str]:
    """The words and other characters of a text without special words, as they are written."""
    return _bare_pattern(_joining_characters(text), rule).findall(text)


@lru_cache(maxsize=64)
def _pattern(special_words: tuple[str, ...], joining: str, rule: str) -> re.Pattern[str]:
    special = "|".join(map(re.escape, sorted(special_words, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"(?P<special>{special})|(?P<word>{RULES[rule].pattern(joining)})|(?P<other>\S)")


@lru_cache(maxsize=64)
def _bare_pattern(joining: str, rule: str) -> re.Pattern[str]:
    return re.compile(rf"{RULES[rule].pattern(joining)}|\S")


def _joining_characters(text: str) -> str:
    """Give the marks and joiners that occur in a text, which `re` has no class for."""
    if text.isascii():
        return ""
    return "".join(sorted(c for c in set(text) if c in _JOINERS or unicodedata.category(c)[0] == "M"))


def join_words(words: Iterable[str]) -> str:
    """Words with spaces between them, none before punctuation or after an opening bracket."""
    pairs = pairwise(("", *words))
    return "".join(word if _touches(before, word) else f" {word}" for before, word in pairs)


def _touches(before: str, word: str) -> bool:
    category = _category(word)
    return not before or _category(before) in _OPENING or (category[0] == "P" and category not in _OPENING)


def _category(word: str) -> str:
    return unicodedata.category(word) if len(word) == 1 else "word"
