"""Tokenizers of lists: whole words by a rule, single characters, and pieces of words as BERT cuts them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from tui_transformer.text.encoding import (
    Encoding,
    Piece,
    Token,
    check_length,
    encoded,
    over,
    too_many,
    without_surrogates,
)
from tui_transformer.text.vocabulary import Vocabulary, has_capitals
from tui_transformer.text.vocabulary_rules import RULE, UNKNOWN, WordRule

if TYPE_CHECKING:
    import tokenizers

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
                for run in runs.finditer(text, *match.span()):
                    if run.lastgroup != "other" or rule.form(run[0]) in ids:
                        yield run
            elif known or match.lastgroup != "other":
                yield match

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


@dataclass(frozen=True)
class CharacterTokenizer:
    """Single characters (Unicode code points), as written; special words count where they are written in full."""

    vocabulary: Vocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into characters; see `Tokenizer.encode`."""
        check_length(text)
        return encoded(text, self._pattern.finditer(text), self._token, max_tokens=max_tokens, cut=cut)

    def decode(self, ids: Sequence[int]) -> str:
        """The characters beside each other."""
        return "".join(map(self.vocabulary.word, ids))

    def _token(self, match: re.Match[str]) -> Token:
        character, words = match[0], self.vocabulary
        token_id = words.ids.get(character)
        if token_id is None:
            return Token(words.ids[words.specials.unknown], character, *match.span(), unknown=True)
        return Token(token_id, character, *match.span(), special=len(character) > 1)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        special = sorted(self.vocabulary.special_words, key=len, reverse=True)
        return re.compile("|".join([*map(re.escape, special), "."]), re.DOTALL)


_WORD = re.compile(r"[^\W_]\S*")


@dataclass(frozen=True)
class WordPieceTokenizer:
    """BERT's word pieces (Devlin et al. 2019), by the Rust library `tokenizers`.

    The text is cleaned, lower-cased and stripped of accents, unless the vocabulary itself has capitals, and split at
    white space and punctuation; each word is the longest pieces from its left. [CLS] … [SEP] stand around the pieces
    where the vocabulary has both.
    """

    vocabulary: Vocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into word pieces; see `Tokenizer.encode`. A cut text keeps its [SEP]."""
        check_length(text)
        if max_tokens is not None and not cut:
            words = sum(1 for _ in _WORD.finditer(text))
            if words > max_tokens:  # refused before the work, as each word is one piece or more
                raise too_many(words, max_tokens, "at least ")
        pieces = self._rust.encode(without_surrogates(text))
        frame = self._frame(len(text))
        left = over(len(pieces) + len(frame), max_tokens, len(pieces), cut=cut)
        kept = islice(zip(pieces.ids, pieces.offsets, strict=True), len(pieces) - left)
        tokens = (self._token(text, token_id, *offsets) for token_id, offsets in kept)
        return Encoding(text, (*frame[:1], *tokens, *frame[1:]), left)

    def pair(self, first: str, second: str) -> Sequence[Piece]:
        """[CLS] first [SEP] second [SEP]; see `encoding.Pairs`."""
        cut = [self._rust.encode(without_surrogates(text)) for text in (first, second)]
        ids = self.vocabulary.ids
        if "[CLS]" not in ids or "[SEP]" not in ids:
            return ()
        pieces = [Piece(ids["[CLS]"], None, 0, 0, 0)]
        for number, sentence in enumerate(cut):
            pieces += [
                Piece(i, number, *place, number) for i, place in zip(sentence.ids, sentence.offsets, strict=True)
            ]
            pieces.append(Piece(ids["[SEP]"], None, 0, 0, number))
        return pieces

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces to words and the words with spaces, none before punctuation."""
        words: list[str] = []
        for piece in map(self.vocabulary.word, ids):
            if words and piece.startswith("##") and len(piece) > 2:
                words[-1] += piece[2:]
            else:
                words.append(piece)
        return join_words(words)

    def _token(self, text: str, token_id: int, start: int, end: int) -> Token:
        written = text[start:end]
        if token_id == self.vocabulary.unknown_id and written != UNKNOWN:
            return Token(token_id, written, start, end, unknown=True)
        special = token_id in self.vocabulary.special_ids
        return Token(token_id, self.vocabulary.words[token_id], start, end, special=special)

    def _frame(self, length: int) -> tuple[Token, ...]:
        """Give the tokens before and after a text of so many characters, which take none of its characters."""
        ids = self.vocabulary.ids
        if "[CLS]" not in ids or "[SEP]" not in ids:
            return ()
        places = (("[CLS]", 0), ("[SEP]", length))
        return tuple(Token(ids[word], word, place, place, special=True) for word, place in places)

    @cached_property
    def _rust(self) -> tokenizers.Tokenizer:
        rust = bert_pieces(self.vocabulary.ids, UNKNOWN, lower=not has_capitals(self.vocabulary))
        rust.add_special_tokens(list(self.vocabulary.special_words))
        return rust


def bert_pieces(ids: dict[str, int], unknown: str, *, lower: bool, accents: bool | None = None) -> tokenizers.Tokenizer:
    """BERT's tokenizer of these pieces; where accents are not said to be stripped, small letters lose them."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    rust = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=accents)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return rust
