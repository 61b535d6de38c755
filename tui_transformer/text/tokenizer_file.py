"""Tokenizers of published models, by the library `tokenizers`: `tokenizer.json`; see also `tokenizer_parts`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError
from tui_transformer.text.encoding import Encoding, Piece, Token, check_length, too_many, without_surrogates
from tui_transformer.text.files import read_text, shown_path
from tui_transformer.text.pieces import Style, piece_label, piece_text
from tui_transformer.text.specials import Specials
from tui_transformer.text.vocabulary import MAX_ENTRIES, Vocabulary

if TYPE_CHECKING:
    import tokenizers

PADDINGS = ("[PAD]", "<pad>", "<|pad|>")
BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "[CLS]", "<|endoftext|>")
ENDS = ("</s>", "<eos>", "<|end_of_text|>", "[SEP]", "<|endoftext|>")


@dataclass(frozen=True, eq=False)
class PieceVocabulary(Vocabulary):
    """The pieces of a tokenizer in order of ID, as the tokenizer writes them; an ID without a piece has "".

    Attributes:
        rust: The tokenizer itself.
        unknown: The ID that stands for what the pieces cannot write, where there is one.
        style: How the pieces are written.
    """

    rust: tokenizers.Tokenizer = field(repr=False)
    unknown: int | None
    style: Style

    @property
    def unknown_id(self) -> int | None:
        """The ID that stands for what the pieces cannot write, where there is one."""
        return self.unknown

    @property
    def pad_id(self) -> int | None:
        """The ID of padding, where a piece has one of its names."""
        return self._first_of(self.specials.padding, *PADDINGS)

    @property
    def begin_id(self) -> int | None:
        """The ID that a sequence begins with, where a piece has one of its names."""
        return self._first_of(self.specials.begin, *BEGINNINGS)

    @property
    def end_id(self) -> int | None:
        """The ID that ends a sequence, where a piece has one of its names."""
        return self._first_of(self.specials.end, *ENDS)

    def _first_of(self, *names: str) -> int | None:
        return next((self.ids[name] for name in names if name in self.ids), None)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The IDs that the file calls special, and the unknown one."""
        added = self.rust.get_added_tokens_decoder()
        special = {token_id for token_id, token in added.items() if token.special}
        return frozenset(special if self.unknown is None else special | {self.unknown})

    @property
    def rows(self) -> int:
        """The rows that an embedding table must have; a tokenizer's added tokens may be more than the table has."""
        added = self.rust.get_added_tokens_decoder()
        return next((i + 1 for i in reversed(range(self.size)) if i not in added), 0)

    def reading(self, token_id: int) -> str:
        """The meaning of the piece of an ID, in plain words; see `piece_text`."""
        word = self.word(token_id)
        return word if token_id in self.special_ids else piece_text(word, self.style)

    def label(self, word: str) -> str:
        """A piece as it stands beside a row, with one sign for a space whatever the tokenizer's own is."""
        return piece_label(word, self.style)

    def file(self) -> tuple[str, str]:
        """The name and content of the file that this can be read from again."""
        return "tokenizer.json", self.rust.to_str()


@dataclass(frozen=True)
class PieceTokenizer:
    """Splits text as the tokenizer's file says, with the tokens that its post-processor adds."""

    vocabulary: PieceVocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into pieces; see `Tokenizer.encode`. A cut text keeps the tokens that are added at its end."""
        check_length(text)
        with refused("the text cannot be split by this tokenizer"):
            cut_text = self.vocabulary.rust.encode(without_surrogates(text))
        added = cut_text.special_tokens_mask
        own = [i for i, mark in enumerate(added) if not mark]
        left = 0 if max_tokens is None else max(0, len(added) - max_tokens)
        if left and (not cut or left > len(own)):
            raise too_many(len(added), max_tokens)
        first, dropped = own[0] if own else len(added), frozenset(own[len(own) - left :])
        places = [
            ((0, 0) if i < first else (len(text), len(text))) if mark else offset
            for i, (mark, offset) in enumerate(zip(added, cut_text.offsets, strict=True))
        ]
        ids = cut_text.ids  # the library makes a new list each time that it is asked
        kept = (i for i in range(len(added)) if i not in dropped)
        return Encoding(text, tuple(self._token(text, ids[i], places[i]) for i in kept), left)

    def pair(self, first: str, second: str) -> Sequence[Piece]:
        """Two sentences as the post-processor puts them together; see `encoding.Pairs`."""
        with refused("the sentences cannot be split by this tokenizer"):
            pair = self.vocabulary.rust.encode(without_surrogates(first), without_surrogates(second))
        places = zip(pair.ids, pair.sequence_ids, pair.offsets, pair.type_ids, strict=True)
        return [Piece(token_id, sentence, *place, segment) for token_id, sentence, place, segment in places]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, special ones as they are written."""
        for token_id in ids:
            self.vocabulary.word(token_id)
        with refused("the IDs cannot be turned into text"):
            return self.vocabulary.rust.decode(list(ids), skip_special_tokens=False)

    def _token(self, text: str, token_id: int, place: tuple[int, int]) -> Token:
        word, written = self.vocabulary.words[token_id], text[slice(*place)]
        if token_id == self.vocabulary.unknown and written not in ("", word):
            return Token(token_id, written, *place, unknown=True)
        return Token(token_id, word, *place, special=token_id in self.vocabulary.special_ids)


def load_tokenizer_file(path: Path) -> PieceVocabulary:
    """Open a `tokenizer.json`.

    Raises:
        InputError: The file is missing or broken, or describes a tokenizer that is not known.
    """
    from tokenizers import Tokenizer

    text = read_text(path)
    with refused(f"{shown_path(path)} is no tokenizer that can be read"):
        rust = Tokenizer.from_str(text)
    return vocabulary_of(rust, path, _unknown(rust, text))


def _unknown(rust: tokenizers.Tokenizer, text: str) -> int | None:
    """The ID of the unknown piece; the library gives that of Unigram to nobody, so it is read from the file."""
    from tokenizers.models import Unigram

    if isinstance(rust.model, Unigram):
        # the library has read it already: it is JSON, an object, and has a model
        unknown = json.loads(text)["model"].get("unk_id")
        return unknown if isinstance(unknown, int) else None
    word = getattr(rust.model, "unk_token", None)
    return None if word is None else rust.token_to_id(word)


def built_vocabulary(rust: tokenizers.Tokenizer, name: str, specials: Specials) -> PieceVocabulary:
    """The vocabulary of a tokenizer that was made here."""
    words = _words(rust, name)
    unknown = rust.token_to_id(specials.unknown)
    return PieceVocabulary(name, words, 0, "pieces", None, rust, unknown, _style(rust), specials=specials)


def vocabulary_of(rust: tokenizers.Tokenizer, path: Path, unknown: int | None) -> PieceVocabulary:
    """The vocabulary of a tokenizer that a file describes.

    Raises:
        InputError: It has no pieces, too many, or adds tokens that are not there.
    """
    rust.no_truncation()
    rust.no_padding()
    words = _words(rust, shown_path(path))
    _check_added(rust, shown_path(path), len(words))
    return PieceVocabulary(path.name, words, 0, "pieces", path, rust, unknown, _style(rust))


def _words(rust: tokenizers.Tokenizer, where: str) -> tuple[str, ...]:
    """The pieces in order of ID."""
    ids = rust.get_vocab(with_added_tokens=True)
    size = max(ids.values(), default=-1) + 1
    if not 0 < size <= MAX_ENTRIES:
        raise InputError(f"{where} has IDs up to {size - 1:,}: a vocabulary has 1 to {MAX_ENTRIES:,} entries")
    words = [""] * size
    for word, token_id in ids.items():
        words[token_id] = word
    return tuple(words)


def _check_added(rust: tokenizers.Tokenizer, where: str, size: int) -> None:
    """Raise InputError where the post-processor adds tokens that are not there, at which the library would panic."""
    for part in _parts(rust.post_processor):
        if part.get("type") == "TemplateProcessing":
            known = part["special_tokens"]
            for name in (piece["SpecialToken"]["id"] for piece in part["single"] if "SpecialToken" in piece):
                if name not in known:
                    raise InputError(f"{where} adds {name!r} to every text and does not say which token that is")
    with refused(f"{where} is a tokenizer that splits no text"):
        outside = [i for i in rust.encode("a").ids if i >= size]
    if outside:
        raise InputError(f"{where} adds token {outside[0]} to every text, and its IDs go up to {size - 1}")


def _parts(component: Any) -> Iterator[Mapping[str, Any]]:
    """A component of a tokenizer and those inside it, as the file describes them."""
    # what the library writes of itself
    whole = None if component is None else json.loads(component.__getstate__())
    waiting = [whole] if isinstance(whole, dict) else []
    while waiting:
        part = waiting.pop()
        yield part
        inside = (inner for key in ("processors", "pretokenizers", "decoders") for inner in part.get(key, ()))
        waiting.extend(inside)


def _style(rust: tokenizers.Tokenizer) -> Style:
    """How the pieces are written, from what puts them together again."""
    from tokenizers.models import WordPiece

    parts = [*_parts(rust.decoder), *_parts(rust.pre_tokenizer)]
    kinds = {part.get("type") for part in parts}
    if "ByteLevel" in kinds:
        return "bytes"
    if "Metaspace" in kinds or any(part.get("pattern") == {"String": "▁"} for part in parts):
        return "marked spaces"
    return "word pieces" if isinstance(rust.model, WordPiece) else "words"


@contextlib.contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn whatever the library raises into one line; it has no exceptions of its own, and panics are BaseException."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise InputError(f"{what} ({reason}): copy the file again, or give another with --vocab") from error
