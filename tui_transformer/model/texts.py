"""The words of a model: texts to tokens, and tokens to words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.loading import Parts
from tui_transformer.text.dispatch import target_tokenizer
from tui_transformer.text.display import token_label
from tui_transformer.text.encoding import Encoding, Token, Tokenizer, check_length, encode_pair
from tui_transformer.text.known_words import Unknown, unknown_count
from tui_transformer.text.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Texts(Parts):
    """A model that reads texts: its words, and the tokens of what it is given."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words, where there are any."""
        return None if self.tokenizer is None else self.tokenizer.vocabulary

    def word(self, token_id: int) -> str:
        """The word of an ID; the ID itself where the vocabulary has none."""
        return _word(self.vocabulary, token_id)

    @property
    def most_tokens(self) -> int:
        """How many tokens a text may have: those that the model was made for, or fewer for its sentence vectors."""
        return min(self.config.max_length, self._most_of_sentences or self.config.max_length)

    @property
    def _readable(self) -> int:
        return min(self.config.longest, self._most_of_sentences or self.config.longest)

    @property
    def _most_of_sentences(self) -> int | None:
        sentence = self.config.sentence
        return None if sentence is None else sentence.most_tokens

    @property
    def target_vocabulary(self) -> Vocabulary | None:
        """The words of what the model writes: those of the decoder, where it has its own beside the encoder's."""
        return None if self.vocabulary is None else self.vocabulary.written

    @property
    def target_size(self) -> int:
        """How many token IDs there are of these: as many as there are logits."""
        return self.config.target_vocab_size

    def target_word(self, token_id: int) -> str:
        """The word of an ID that the model writes; the ID itself where the vocabulary has none."""
        return _word(self.target_vocabulary, token_id)

    def token_id(self, word: str) -> int:
        """The ID of a word that the model writes: as `Vocabulary.token_id`.

        Raises:
            InputError: It is no word of the vocabulary.
        """
        check_text(word)
        if self.target_vocabulary is None:
            raise InputError(f"{self.name} has no vocabulary: its tokens are IDs")
        return self.target_vocabulary.token_id(word)

    def label(self, word: str) -> str:
        """A word, or a token as it was written, as it stands beside a row; safe to show."""
        return token_label(word) if self.vocabulary is None else self.vocabulary.label(word)

    def word_label(self, token_id: int) -> str:
        """The word of an ID as it stands beside a row; safe to show."""
        return self.label(self.word(token_id))

    def target_label(self, token_id: int) -> str:
        """The word of an ID that the model writes, as it stands beside a row; safe to show."""
        words, word = self.target_vocabulary, self.target_word(token_id)
        return token_label(word) if words is None else words.label(word)

    @property
    def has_decoder(self) -> bool:
        """Whether there is a second sequence, which a decoder reads beside the encoder's output."""
        return self.config.has_decoder

    def encode(self, text: str, *, cut: bool = False, pair: str | None = None) -> Encoding:
        """The tokens of a text, or of a pair of sentences with their segments.

        Raises:
            InputError: No vocabulary, no tokens, more tokens than the model reads (cut instead, where asked), or a pair
                for a tokenizer that has none.
        """
        if pair is not None and self.tokenizer is not None:
            check_text(text, pair)
            check_length(text + pair)
            most = self.most_tokens if cut else self._readable
            return self._known(encode_pair(self.tokenizer, text, pair, most, cut=cut), self.vocabulary)
        return self._encoded(self.tokenizer, text, cut=cut)

    def _encoded(self, tokenizer: Tokenizer | None, text: str, *, cut: bool) -> Encoding:
        check_text(text)
        if tokenizer is None:
            raise InputError(f"{self.name} has no vocabulary: give token IDs (--ids), or one with --vocab")
        most = self.most_tokens if cut else self._readable
        try:
            encoding = tokenizer.encode(text, max_tokens=most, cut=cut)
        except InputError as error:  # where they are too many for sentence vectors alone, what reads them is said
            further = self.config.longest
            if cut or most == further or len(tokenizer.encode(text, max_tokens=further, cut=True).tokens) <= most:
                raise
            raise InputError(f"{error}; --max-length reads up to {further:,}") from error
        if not encoding.tokens:
            raise InputError("the sentence has no tokens: write at least one word")
        return self._known(encoding, tokenizer.vocabulary)

    def _known(self, encoding: Encoding, words: Vocabulary | None) -> Encoding:
        """The same; refused where a word is unknown, if that counts as a mistake."""
        unknown = Unknown()
        unknown.add(encoding)
        said = unknown.describe(words, "the text", self.name) if self.unknown == "error" else None
        if said is not None:
            raise InputError(f"{said}; --unknown token reads them as one that it has, zero as the vector 0")
        return encoding

    def knows(self, text: str) -> bool:
        """Whether the vocabulary has every word of a text."""
        check_text(text)
        return self.tokenizer is not None and not unknown_count(self.tokenizer.encode(text))

    def encode_target(self, text: str = "", *, cut: bool = False) -> Encoding:
        """The tokens of what a decoder beside an encoder has written so far, its start token in front.

        What the tokenizer puts around a text is left out: the decoder has not come to the end.

        Raises:
            InputError: The model reads one sentence only, or the text cannot be read.
        """
        self.check_decoder()
        start = self.config.start_id or 0
        tokenizer = None if self.tokenizer is None else target_tokenizer(self.tokenizer)
        encoding = self._encoded(tokenizer, text, cut=cut) if text.strip() else Encoding(text, ())
        written = (token for token in encoding.tokens if not (token.special and token.start == token.end))
        tokens = (Token(start, self.target_word(start), 0, 0), *written)
        kept = tokens[: self.config.max_length] if cut else tokens
        return Encoding(text, kept, encoding.cut + len(tokens) - len(kept))

    def check_decoder(self) -> None:
        """Raise InputError where there is no second sentence."""
        if not self.has_decoder:
            raise InputError(f"{self.name} reads no second sentence: only an encoder-decoder has one for its decoder")

    @property
    def reads_again(self) -> bool:
        """Whether the decoder reads the same sentence as the encoder: in a classifier of both stacks."""
        return self.has_decoder and getattr(self.config, "labels", None) is not None

    def read_again(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Token IDs of such a decoder: its start token (mBART's is the sentence's last), then all but the last."""
        start = self.config.start_id or 0
        if getattr(self.config, "last_starts", False):  # so many tokens on as are no padding, as published
            start = ids[sum(token != self.config.pad_id for token in ids) - 1]
        return (start, *ids[:-1])


def _word(words: Vocabulary | None, token_id: int) -> str:
    return words.word(token_id) if words is not None and token_id < words.size else str(token_id)


def check_text(*texts: object) -> None:
    """Raise UsageError where something else is given for a text."""
    for text in texts:
        if isinstance(text, list | tuple):
            raise UsageError("one text is meant here, not a list of them: model.trace takes several")
        if not isinstance(text, str):
            raise UsageError(f"a text is meant here, not {type(text).__name__}")
