"""Pieces of words as BERT cuts them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from tui_transformer.text.encoding import Encoding, Piece, Token, check_length, too_many, without_surrogates
from tui_transformer.text.specials import UNKNOWN
from tui_transformer.text.vocabulary import Vocabulary, has_capitals
from tui_transformer.text.words import join_words

if TYPE_CHECKING:
    import tokenizers

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
        return join_words(_merge(map(self.vocabulary.word, ids)))

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


def _refuse_many_words(text: str, limit: int) -> None:
    """Refuse before the work what has more words than tokens are allowed, as each word is one piece or more."""
    words = sum(1 for _ in _WORD.finditer(text))
    if words > limit:
        raise too_many(words, limit, "at least ")


def _merge(pieces: Iterable[str]) -> list[str]:
    words: list[str] = []
    for piece in pieces:
        if words and piece.startswith("##") and len(piece) > 2:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return words
