"""Tokenizers: text to tokens with IDs and places in the text, and back.

All kinds are made from a `Vocabulary` by `tokenizer_for`; anything that has the methods of `Tokenizer` serves
the rest of the program.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Protocol, cast

from tui_transformer.errors import InputError
from tui_transformer.text.specials import UNKNOWN
from tui_transformer.text.vocabulary import Vocabulary, has_capitals, normal_form

if TYPE_CHECKING:
    import tokenizers

    from tui_transformer.text.pairs import Piece
    from tui_transformer.text.sentence_pieces import SentencePieceVocabulary
    from tui_transformer.text.tokenizer_file import PieceVocabulary

MAX_CHARACTERS = 1_000_000
_JOINERS = frozenset("\u200c\u200d")
_OPENING = frozenset({"Ps", "Pi"})
_SURROGATES = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[^\W_]\S*")


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its ID, its text (of the vocabulary, or an unknown word as written) and its place in the text."""

    id: int
    text: str
    start: int
    end: int
    unknown: bool = False
    special: bool = False


@dataclass(frozen=True)
class Encoding:
    """A text and its tokens.

    Attributes:
        cut: How many tokens were left out to keep to a limit.
        segments: Of each token of a pair of sentences, which it is of; None where all are of one.
    """

    text: str
    tokens: tuple[Token, ...]
    cut: int = 0
    segments: tuple[int, ...] | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The IDs of the tokens."""
        return tuple(token.id for token in self.tokens)


class Tokenizer(Protocol):
    """Turns text into tokens of a vocabulary, and IDs into text."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the IDs stand for."""

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into tokens.

        Args:
            text: At most `MAX_CHARACTERS` characters.
            max_tokens: The most tokens allowed, those that the tokenizer adds included.
            cut: Whether to leave out what exceeds `max_tokens`, rather than to refuse the text.

        Raises:
            InputError: If the text is too long.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of IDs.

        Raises:
            InputError: If an ID is not in the vocabulary.
        """


@dataclass(frozen=True)
class WordTokenizer:
    """Whole words, lower-cased.

    A word is a run of letters and digits of any script, with the marks and joiners on them; an apostrophe between two
    of these belongs to the word, so "don't" is one word. Any other character is a token if the vocabulary has it and is
    dropped if not. Special words count only as written, `[CLS]`.
    """

    vocabulary: Vocabulary

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
        return _join(map(self.vocabulary.word, ids))

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        ids = self.vocabulary.ids
        for match in word_pattern(self.vocabulary.special_words, text).finditer(text):
            if match.lastgroup != "other" or normal_form(match[0]) in ids:
                yield match

    def _token(self, match: re.Match[str]) -> Token:
        written = match[0]
        if match.lastgroup == "special":
            return Token(self.vocabulary.ids[written], written, *match.span(), special=True)
        word = normal_form(written)
        token_id = self.vocabulary.ids.get(word)
        if token_id is None:
            return Token(self.vocabulary.ids[self.vocabulary.specials.unknown], written, *match.span(), unknown=True)
        return Token(token_id, word, *match.span())


def word_pattern(special_words: tuple[str, ...], text: str) -> re.Pattern[str]:
    """What finds the tokens of a text, in groups `special`, `word` and `other`."""
    return _pattern(special_words, _joining_characters(text))


def words_in(text: str) -> list[str]:
    """The words and other characters of a text without special words, as they are written."""
    return _bare_pattern(_joining_characters(text)).findall(text)


@lru_cache(maxsize=64)
def _pattern(special_words: tuple[str, ...], joining: str) -> re.Pattern[str]:
    special = "|".join(map(re.escape, sorted(special_words, key=len, reverse=True))) or "(?!)"
    return re.compile(rf"(?P<special>{special})|(?P<word>{_word(joining)})|(?P<other>\S)")


@lru_cache(maxsize=64)
def _bare_pattern(joining: str) -> re.Pattern[str]:
    return re.compile(rf"{_word(joining)}|\S")


def _word(joining: str) -> str:
    """A word as a regular expression, with the marks and joiners that occur."""
    run = rf"[^\W_]+(?:[{joining}]+[^\W_]*)*" if joining else r"[^\W_]+"
    return f"{run}(?:['’]{run})*"


def _joining_characters(text: str) -> str:
    """Give the marks and joiners that occur in a text, which `re` has no class for."""
    if text.isascii():
        return ""
    return "".join(sorted(c for c in set(text) if c in _JOINERS or unicodedata.category(c)[0] == "M"))


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
            _refuse_many_words(text, max_tokens)
        pieces = self._rust.encode(without_surrogates(text))
        frame = self._frame(len(text))
        left = 0 if max_tokens is None else max(0, len(pieces) + len(frame) - max_tokens)
        if left and (not cut or left > len(pieces)):
            raise too_many(len(pieces) + len(frame), max_tokens)
        kept = islice(zip(pieces.ids, pieces.offsets, strict=True), len(pieces) - left)
        tokens = (self._token(text, token_id, *offsets) for token_id, offsets in kept)
        return Encoding(text, (*frame[:1], *tokens, *frame[1:]), left)

    def pair(self, first: str, second: str) -> Sequence[Piece]:
        """[CLS] first [SEP] second [SEP]; see `pairs.Pairs`."""
        from tui_transformer.text.pairs import Piece

        cut = [self._rust.encode(without_surrogates(text)) for text in (first, second)]
        ids = self.vocabulary.ids
        if "[CLS]" not in ids or "[SEP]" not in ids:
            return ()
        pieces = [Piece(ids["[CLS]"], None, 0, 0, 0)]
        for number, found in enumerate(cut):
            pieces += [Piece(i, number, *place, number) for i, place in zip(found.ids, found.offsets, strict=True)]
            pieces.append(Piece(ids["[SEP]"], None, 0, 0, number))
        return pieces

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces to words and the words with spaces, none before punctuation."""
        return _join(_merge(map(self.vocabulary.word, ids)))

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
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        rust = Tokenizer(models.WordPiece(vocab=self.vocabulary.ids, unk_token=UNKNOWN))
        rust.normalizer = normalizers.BertNormalizer(lowercase=not has_capitals(self.vocabulary))
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.add_special_tokens(list(self.vocabulary.special_words))
        return rust


def without_surrogates(text: str) -> str:
    """The text in as many characters, without those that UTF-8 cannot write."""
    return _SURROGATES.sub("\ufffd", text)


def check_length(text: str) -> None:
    """Raise InputError for more than `MAX_CHARACTERS`."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"the text has {len(text):,} characters, the limit is {MAX_CHARACTERS:,}: use a shorter one")


def _refuse_many_words(text: str, limit: int) -> None:
    """Refuse before the work what has more words than tokens are allowed, as each word is one piece or more."""
    words = sum(1 for _ in _WORD.finditer(text))
    if words > limit:
        raise too_many(words, limit, "at least ")


def too_many(count: int, limit: int | None, precision: str = "") -> InputError:
    """The refusal of a text of so many tokens."""
    return InputError(f"the text has {precision}{count:,} tokens, the limit is {limit:,}: use a shorter one, or --cut")


def _join(words: Iterable[str]) -> str:
    pairs = pairwise(("", *words))
    return "".join(word if _touches(before, word) else f" {word}" for before, word in pairs)


def _touches(before: str, word: str) -> bool:
    category = _category(word)
    return not before or _category(before) in _OPENING or (category[0] == "P" and category not in _OPENING)


def _category(word: str) -> str:
    return unicodedata.category(word) if len(word) == 1 else "word"


def _merge(pieces: Iterable[str]) -> list[str]:
    words: list[str] = []
    for piece in pieces:
        if words and piece.startswith("##") and len(piece) > 2:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return words


def _by_pieces(vocabulary: Vocabulary) -> Tokenizer:
    from tui_transformer.text.tokenizer_file import PieceTokenizer

    return PieceTokenizer(cast("PieceVocabulary", vocabulary))


def _by_characters(vocabulary: Vocabulary) -> Tokenizer:
    from tui_transformer.text.characters import CharacterTokenizer

    return CharacterTokenizer(vocabulary)


def _by_sentence_pieces(vocabulary: Vocabulary) -> Tokenizer:
    from tui_transformer.text.sentence_pieces import SentencePieceTokenizer

    return SentencePieceTokenizer(cast("SentencePieceVocabulary", vocabulary))


_KINDS: dict[str, Callable[[Vocabulary], Tokenizer]] = {
    "words": WordTokenizer,
    "characters": _by_characters,
    "wordpiece": WordPieceTokenizer,
    "pieces": _by_pieces,
    "sentencepiece": _by_sentence_pieces,
}


def tokenizer_for(vocabulary: Vocabulary) -> Tokenizer:
    """Make the tokenizer that a vocabulary is for."""
    return _KINDS[vocabulary.kind](vocabulary)


def target_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """What cuts the text of a decoder beside an encoder: the same, or Marian's second model."""
    target: Tokenizer = getattr(tokenizer, "target", tokenizer)
    return target
