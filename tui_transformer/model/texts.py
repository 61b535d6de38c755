"""What a model reads: texts to tokens, tokens to words, and the inputs of a program from token IDs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.base_config import BaseConfig, counted, unpadded
from tui_transformer.model.loading import Parts
from tui_transformer.model.sequence import Lengths
from tui_transformer.records import dataclass
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
        return self._most_tokens(cut=True)

    def _most_tokens(self, *, cut: bool) -> int:
        """The same; uncut, a text may have more than the model was made for, where positions are computed."""
        tokens, sentence = self.config.max_length if cut else self.config.longest, self.config.sentence
        return tokens if sentence is None or sentence.most_tokens is None else min(tokens, sentence.most_tokens)

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
            encoding = encode_pair(self.tokenizer, text, pair, self._most_tokens(cut=cut), cut=cut)
            return self._known(encoding, self.vocabulary)
        return self._encoded(self.tokenizer, text, cut=cut)

    def _encoded(self, tokenizer: Tokenizer | None, text: str, *, cut: bool) -> Encoding:
        check_text(text)
        if tokenizer is None:
            raise InputError(f"{self.name} has no vocabulary: give token IDs (--ids, ids=), or --vocab (vocabulary=)")
        most = self._most_tokens(cut=cut)
        try:
            encoding = tokenizer.encode(text, max_tokens=most, cut=cut)
        except InputError as error:  # where they are too many for sentence vectors alone, what reads them is said
            further = self.config.longest
            if cut or most == further or len(tokenizer.encode(text, max_tokens=further, cut=True).tokens) <= most:
                raise
            raise InputError(f"{error}; --max-length (max_length=) reads up to {further:,}") from error
        if not encoding.tokens:
            raise InputError("the sentence has no tokens: write at least one word")
        return self._known(encoding, tokenizer.vocabulary)

    def _known(self, encoding: Encoding, words: Vocabulary | None) -> Encoding:
        """The same; refused where a word is unknown, if that counts as a mistake."""
        unknown = Unknown()
        unknown.add(encoding)
        said = unknown.describe(words, "the text", self.name) if self.unknown == "error" else None
        if said is not None:
            reads = "--unknown token (unknown='token') reads them as one that it has, zero as the vector 0"
            raise InputError(f"{said}; {reads}")
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
        return self.has_decoder and self.config.labels is not None

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


DECODER = "decoder."
"""In front of the inputs of a decoder beside an encoder."""

Givens = dict[str, Host]


def checked_ids(ids: Sequence[Any] | Host | None, config: BaseConfig, words: int) -> Host:
    """Token IDs as batch × tokens, every one inside a vocabulary of so many words.

    Raises:
        InputError: They are no rows of token IDs, or more than the model reads.
    """
    try:
        rows = np.atleast_2d(np.asarray(ids))
    except ValueError as error:
        raise InputError("token IDs are whole numbers, in rows of the same length") from error
    if rows.size == 0:
        raise InputError("there are no token IDs: give at least one")
    if rows.ndim != 2 or rows.dtype.kind not in "iu":
        raise InputError("token IDs are whole numbers, in rows of the same length")
    outside = rows[(rows < 0) | (rows >= words)]
    if outside.size:
        raise InputError(f"token ID {outside[0]} is outside the vocabulary: IDs go from 0 to {words - 1}")
    if rows.shape[1] > config.longest:
        raise InputError(f"{rows.shape[1]} tokens are more than the {config.longest} that the model reads")
    return rows.astype(np.int64)


def givens_of(rows: Host, config: BaseConfig, prefix: str = "", visible: Host | None = None) -> Givens:
    """IDs, their places, and which are visible: by default all but runs of the pad ID at the beginning and end."""
    if visible is None:
        visible = unpadded_ids(rows, config, begins=bool(prefix))  # a decoder may begin with the pad ID
    ends = rows == (None if config.labels is None else config.labels.end_id)  # where a classifier goes by them
    values = {
        "ids": rows,
        "places": _places(rows, visible, config),
        "visible": visible,
        "order": counted(rows),
        "unpadded": unpadded(rows, config.pad_id),
        "segments": np.zeros_like(rows),
        "ended": visible & (until_last(ends) | ~ends.any(axis=1, keepdims=True)),
    }
    return {f"{prefix}input.{name}": value for name, value in values.items()}


def _places(rows: Host, visible: Host, config: BaseConfig) -> Host:
    """The places of tokens; in a decoder the first that is no padding has the first place, the next the second."""
    places = config.places(rows)
    if visible.all() or not getattr(config, "places_by_mask", False):
        return places
    ahead = visible.argmax(axis=1)[:, None]  # padding at the beginning
    hidden = np.maximum(np.arange(rows.shape[1]) - ahead, 0)
    return np.take_along_axis(places, np.where(visible, visible.cumsum(axis=1) - 1, hidden), axis=1)


def until_last(marks: Host) -> Host:
    """True up to the last mark of every row."""
    marked: Host = np.logical_or.accumulate(marks[:, ::-1], axis=1)[:, ::-1]
    return marked


def unpadded_ids(rows: Host, config: BaseConfig, *, begins: bool) -> Host:
    """True from the first to the last ID that is not padding; `begins`: the first ID is none, whatever it is."""
    pad_id = config.pad_id if getattr(config, "padding_mask", True) else None
    if pad_id is None:
        return all_visible(rows)
    real = rows != pad_id
    real[:, 0] |= begins
    visible: Host = np.logical_or.accumulate(real, axis=1) | ~real.any(axis=1, keepdims=True)
    if getattr(config, "end_is_padding", True):
        visible &= until_last(real)
    return visible


def checked_mask(mask: Sequence[Any] | Host | None, rows: Host) -> Host | None:
    """Which tokens are real (1) and which are padding (0), batch × tokens; None where nothing is said.

    Raises:
        InputError: It does not fit the tokens, or a row of it hides everything.
    """
    if mask is None:
        return None
    wanted = "a mask has a 1 for every token and a 0 for padding"
    try:
        marks = np.atleast_2d(np.asarray(mask))
    except ValueError as error:
        raise InputError(f"{wanted}, in rows of the same length") from error
    if marks.dtype.kind not in "iub" or not np.isin(marks, (0, 1)).all():
        raise InputError(f"{wanted}: no other number")
    if marks.ndim != 2 or marks.shape[1] != rows.shape[1] or len(marks) not in (1, len(rows)):
        had = " × ".join(map(str, marks.shape))
        raise InputError(f"{wanted}: this is {had}, for {len(rows)} × {rows.shape[1]} tokens")
    if not marks.any(axis=1).all():
        raise InputError(f"{wanted}: a row of it has no 1")
    return np.broadcast_to(marks.astype(np.bool_), rows.shape)


def as_counted(lengths: Lengths, givens: Mapping[str, Host], config: BaseConfig) -> Lengths:
    """The same lengths, with the tokens that are no padding where a sentence of so many is turned otherwise."""
    most = int(givens["input.visible"].sum(axis=1).max())
    alike = most == lengths.tokens or config.keeps(most, lengths.tokens)
    return lengths if alike else lengths._replace(counted=most)


def padded(rows: Sequence[Sequence[int]], pad_id: int | None) -> tuple[list[list[int]], list[list[int]]]:
    """Rows made equally long with the pad ID (0 where there is none) at the end, and the mask that tells it."""
    width = max(map(len, rows), default=0)
    ids = [[*row, *[pad_id or 0] * (width - len(row))] for row in rows]
    return ids, [[int(i < len(row)) for i in range(width)] for row in rows]


def all_visible(rows: Host) -> Host:
    """No token is padding."""
    return np.ones(rows.shape, dtype=np.bool_)


def segments_of(segments: Sequence[int] | None, rows: Host, config: BaseConfig) -> Givens:
    """The segment of every token, where one is given and the model has them.

    Raises:
        InputError: They do not fit the tokens or the model.
    """
    known: int = getattr(config, "segments", 0)
    if segments is None or not known:
        return {}
    row = np.array(segments, dtype=np.int64)
    if row.shape != rows.shape[1:] or row.min() < 0 or row.max() >= known:
        raise InputError(f"segments are one number from 0 to {known - 1} for each of {rows.shape[1]} tokens")
    return {"input.segments": np.broadcast_to(row, rows.shape)}
