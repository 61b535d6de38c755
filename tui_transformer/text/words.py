"""Whole words as tokens, by a rule for what a word is."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tui_transformer.text.encoding import Encoding, Token, check_length, encoded
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.text.word_rule import RULE, WordRule

_JOINERS = frozenset("\u200c\u200d")
_OPENING = frozenset({"Ps", "Pi"})


_APOSTROPHES = re.compile("['’]")
_RUNS = WordRule("runs")


@dataclass(frozen=True)
class WordTokenizer:
    """Whole words, as the vocabulary's rule has them.

    By default a word is a run of letters and digits of any script in small letters, with the marks and joiners on them.
    Runs that an apostrophe joins are one word where the vocabulary has it ("don't"), else a word each ("It's": it, s).
    Any other character is a token if the vocabulary has it and is dropped if not. Special words count only as written,
    `[CLS]`.
    """

    vocabulary: Vocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into words; see `Tokenizer.encode`."""
        check_length(text)
        return encoded(text, iter(self._matches(text)), self._token, max_tokens=max_tokens, cut=cut)

    def decode(self, ids: Sequence[int]) -> str:
        """Join the words with spaces, none before punctuation unless that is split at spaces too."""
        words = map(self.vocabulary.word, ids)
        return " ".join(words) if self.vocabulary.rule.split == "spaces" else join_words(words)

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        ids, rule = self.vocabulary.ids, self.vocabulary.rule
        runs = word_pattern((), text, _RUNS)
        for match in word_pattern(self.vocabulary.special_words, text, rule).finditer(text):
            known = match.lastgroup == "special" or rule.form(match[0]) in ids
            if not known and rule.split == "words" and _APOSTROPHES.search(match[0]):
                yield from (run for run in runs.finditer(text, *match.span()) if self._counts(run))
            elif known or match.lastgroup != "other":
                yield match

    def _counts(self, match: re.Match[str]) -> bool:
        """Any word is a token, another character where the vocabulary has it."""
        return match.lastgroup != "other" or self.vocabulary.rule.form(match[0]) in self.vocabulary.ids

    def _token(self, match: re.Match[str]) -> Token:
        written = match[0]
        if match.lastgroup == "special":
            return Token(self.vocabulary.ids[written], written, *match.span(), special=True)
        word = self.vocabulary.rule.form(written)
        token_id = self.vocabulary.ids.get(word)
        if token_id is None:
            return Token(self.vocabulary.ids[self.vocabulary.specials.unknown], written, *match.span(), unknown=True)
        return Token(token_id, word, *match.span())


def unreachable(vocabulary: Vocabulary) -> Iterator[str]:
    """The entries of a list of words that no text can give: `words:` is always the word and then its colon."""
    rule = vocabulary.rule
    for word in vocabulary.words:
        match = word_pattern(vocabulary.special_words, word, rule).fullmatch(word)
        if match is None or (match.lastgroup != "special" and rule.form(word) != word):
            yield word


def word_pattern(special_words: tuple[str, ...], text: str, rule: WordRule = RULE) -> re.Pattern[str]:
    """The pattern that finds the tokens of a text, in groups `special`, `word` and `other`."""
    return _pattern(special_words, _joining_characters(text), rule)


def words_in(text: str, rule: WordRule = RULE) -> list[str]:
    """The words and other characters of a text without special words, as they are written."""
    return _bare_pattern(_joining_characters(text), rule).findall(text)


@lru_cache(maxsize=64)
def _pattern(special_words: tuple[str, ...], joining: str, rule: WordRule) -> re.Pattern[str]:
    special = "|".join(map(re.escape, sorted(special_words, key=len, reverse=True))) or "(?!)"
    if rule.split == "spaces":
        special = rf"(?<!\S)(?:{special})(?!\S)"
    return re.compile(rf"(?P<special>{special})|(?P<word>{rule.pattern(joining)})|(?P<other>\S)")


@lru_cache(maxsize=64)
def _bare_pattern(joining: str, rule: WordRule) -> re.Pattern[str]:
    return re.compile(rf"{rule.pattern(joining)}|\S")


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
