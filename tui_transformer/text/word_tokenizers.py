"""Tokenizers of lists: whole words by a rule, and single characters."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise, starmap

from tui_transformer.records import dataclass
from tui_transformer.text.encoding import Encoding, Token, check_length, too_many
from tui_transformer.text.vocabulary import Vocabulary
from tui_transformer.text.vocabulary_rules import RULE, WordRule

_JOINERS = frozenset("\u200c\u200d")
_OPENING = frozenset({"Ps", "Pi"})
_APOSTROPHES = re.compile("['’]")
_RUNS = WordRule("runs")


@dataclass(frozen=True)
class ListTokenizer(ABC):
    """Entries of a list where a text has them, the word for unknown ones elsewhere."""

    vocabulary: Vocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into entries; see `Tokenizer.encode`. Those behind the limit are only counted."""
        check_length(text)
        found = self._found(text)
        tokens = tuple(starmap(self._token, islice(found, max_tokens)))
        left = sum(1 for _ in found)
        if left and not cut:
            raise too_many(len(tokens) + left, max_tokens)
        return Encoding(text, tokens, left)

    @abstractmethod
    def _found(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        """Where the tokens of a text are, special words in the group `special`, and the entries that are looked up."""

    def _token(self, match: re.Match[str], word: str) -> Token:
        token_id, special = self.vocabulary.ids.get(word), match.lastgroup == "special"
        if token_id is None:
            return Token(self.vocabulary.ids[self.vocabulary.specials.unknown], match[0], *match.span(), unknown=True)
        return Token(token_id, word, *match.span(), special=special)


@dataclass(frozen=True)
class WordTokenizer(ListTokenizer):
    """Whole words, as the vocabulary's rule has them.

    By default a word is a run of letters and digits of any script in small letters, with the marks and joiners on them.
    Runs that an apostrophe joins are one word where the vocabulary has it ("don't"), else a word each ("It's": it, s).
    Any other character is a token if the vocabulary has it and is dropped if not. Special words count only as written,
    `[CLS]`.
    """

    def decode(self, ids: Sequence[int]) -> str:
        """Join the words with spaces, none before punctuation unless that is split at spaces too."""
        words = map(self.vocabulary.word, ids)
        return " ".join(words) if self.vocabulary.rule.split == "spaces" else join_words(words)

    def _found(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        ids, rule = self.vocabulary.ids, self.vocabulary.rule
        runs = word_pattern((), text, _RUNS)
        for match in word_pattern(self.vocabulary.special_words, text, rule).finditer(text):
            word = match[0] if match.lastgroup == "special" else rule.form(match[0])
            if word not in ids and rule.split == "words" and _APOSTROPHES.search(match[0]):
                parts = ((run, rule.form(run[0])) for run in runs.finditer(text, *match.span()))
                yield from ((run, part) for run, part in parts if run.lastgroup != "other" or part in ids)
            elif word in ids or match.lastgroup != "other":
                yield match, word


@dataclass(frozen=True)
class CharacterTokenizer(ListTokenizer):
    """Single characters (Unicode code points), as written; special words count where they are written in full."""

    def decode(self, ids: Sequence[int]) -> str:
        """The characters beside each other."""
        return "".join(map(self.vocabulary.word, ids))

    def _found(self, text: str) -> Iterator[tuple[re.Match[str], str]]:
        pattern = f"(?P<special>{_any_of(self.vocabulary.special_words)})|."
        return ((match, match[0]) for match in re.finditer(pattern, text, re.DOTALL))


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
    return re.findall(rf"{rule.pattern(_joining_characters(text))}|\S", text)


@lru_cache(maxsize=64)
def _pattern(special_words: tuple[str, ...], joining: str, rule: WordRule) -> re.Pattern[str]:
    special = _any_of(special_words)
    if rule.split == "spaces":
        special = rf"(?<!\S)(?:{special})(?!\S)"
    return re.compile(rf"(?P<special>{special})|(?P<word>{rule.pattern(joining)})|(?P<other>\S)")


def _any_of(words: tuple[str, ...]) -> str:
    """The pattern of words, the longest first; of none, one that finds nothing."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or "(?!)"


def _joining_characters(text: str) -> str:
    """The marks and joiners that occur in a text, which `re` has no class for."""
    if text.isascii():
        return ""
    return "".join(sorted(c for c in set(text) if c in _JOINERS or unicodedata.category(c)[0] == "M"))


def join_words(words: Iterable[str]) -> str:
    """Words with spaces between them, none before punctuation or after an opening bracket."""
    parts = []
    for before, word in pairwise(("", *words)):
        last, first = _category(before), _category(word)
        touches = not before or last in _OPENING or (first[0] == "P" and first not in _OPENING)
        parts.append(word if touches else f" {word}")
    return "".join(parts)


def _category(word: str) -> str:
    return unicodedata.category(word) if len(word) == 1 else "word"
