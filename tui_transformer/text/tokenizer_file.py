"""Tokenizers of published models, by the library `tokenizers`: `tokenizer.json`, or `vocab.json` and `merges.txt`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError
from tui_transformer.text.files import read_text, shown_path
from tui_transformer.text.pieces import Style, piece_text
from tui_transformer.text.specials import Specials
from tui_transformer.text.tokenizer import Encoding, Token, check_length, too_many, without_surrogates
from tui_transformer.text.vocabulary import MAX_ENTRIES, Vocabulary

if TYPE_CHECKING:
    import tokenizers

MERGES = "merges.txt"
PADDINGS = ("[PAD]", "<pad>", "<|pad|>")
BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "[CLS]", "<|endoftext|>")
ENDS = ("</s>", "<eos>", "<|end_of_text|>", "[SEP]", "<|endoftext|>")
FRAMES: Mapping[str, tuple[str, ...]] = {
    "GPT2Tokenizer": (),
    "RobertaTokenizer": ("<s>", "</s>"),
    "BartTokenizer": ("<s>", "</s>"),
}
"""What stands around a text, for each `tokenizer_class` that is whole in `vocab.json` and `merges.txt`."""
_SPECIAL_PIECES = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>")


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
        """What the piece of an ID stands for, in plain words; see `piece_text`."""
        word = self.word(token_id)
        return word if token_id in self.special_ids else piece_text(word, self.style)

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
        with _refused("the text cannot be split by this tokenizer"):
            found = self.vocabulary.rust.encode(without_surrogates(text))
        added = found.special_tokens_mask
        own = [i for i, mark in enumerate(added) if not mark]
        left = 0 if max_tokens is None else max(0, len(added) - max_tokens)
        if left and (not cut or left > len(own)):
            raise too_many(len(added), max_tokens)
        first, dropped = own[0] if own else len(added), frozenset(own[len(own) - left :])
        places = [
            ((0, 0) if i < first else (len(text), len(text))) if mark else offset
            for i, (mark, offset) in enumerate(zip(added, found.offsets, strict=True))
        ]
        kept = (i for i in range(len(added)) if i not in dropped)
        return Encoding(text, tuple(self._token(text, found.ids[i], places[i]) for i in kept), left)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, special ones as they are written."""
        for token_id in ids:
            self.vocabulary.word(token_id)
        with _refused("the IDs cannot be turned into text"):
            return self.vocabulary.rust.decode(list(ids), skip_special_tokens=False)

    def _token(self, text: str, token_id: int, place: tuple[int, int]) -> Token:
        word, written = self.vocabulary.words[token_id], text[slice(*place)]
        if token_id == self.vocabulary.unknown and written not in ("", word):
            return Token(token_id, written, *place, unknown=True)
        return Token(token_id, word, *place, special=token_id in self.vocabulary.special_ids)


def load_pieces(path: Path) -> PieceVocabulary:
    """Open a `tokenizer.json`, or a `vocab.json` that has its `merges.txt` beside it.

    Raises:
        InputError: The file is missing or broken, or describes a tokenizer that is not known.
    """
    merges = path.with_name(MERGES)
    return _byte_pairs(path, merges) if path.name == "vocab.json" and merges.exists() else _from_json(path)


def _from_json(path: Path) -> PieceVocabulary:
    from tokenizers import Tokenizer

    text = read_text(path)
    with _refused(f"{shown_path(path)} is no tokenizer that can be read"):
        rust = Tokenizer.from_str(text)
    return _vocabulary(rust, path, _unknown(rust, text))


def _unknown(rust: tokenizers.Tokenizer, text: str) -> int | None:
    """The ID of the unknown piece; the library gives that of Unigram to nobody, so it is read from the file."""
    from tokenizers.models import Unigram

    if isinstance(rust.model, Unigram):
        found = json.loads(text)["model"].get("unk_id")
        return found if isinstance(found, int) else None
    word = getattr(rust.model, "unk_token", None)
    return None if word is None else rust.token_to_id(word)


def built_vocabulary(rust: tokenizers.Tokenizer, name: str, specials: Specials) -> PieceVocabulary:
    """The vocabulary of a tokenizer that was made here."""
    words = _words(rust, name)
    unknown = rust.token_to_id(specials.unknown)
    return PieceVocabulary(name, words, 0, "pieces", None, rust, unknown, _style(rust), specials=specials)


def _vocabulary(rust: tokenizers.Tokenizer, path: Path, unknown: int | None) -> PieceVocabulary:
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
    with _refused(f"{where} is a tokenizer that splits no text"):
        outside = [i for i in rust.encode("a").ids if i >= size]
    if outside:
        raise InputError(f"{where} adds token {outside[0]} to every text, and its IDs go up to {size - 1}")


def _parts(component: Any) -> Iterator[Mapping[str, Any]]:
    """A component of a tokenizer and those inside it, as the file describes them."""
    whole = None if component is None else json.loads(component.__getstate__())
    waiting = [whole] if isinstance(whole, dict) else []
    while waiting:
        part = waiting.pop()
        yield part
        inside = (found for key in ("processors", "pretokenizers", "decoders") for found in part.get(key, ()))
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
def _refused(what: str) -> Iterator[None]:
    """Turn whatever the library raises into one line; it has no exceptions of its own, and panics are BaseException."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise InputError(f"{what} ({reason}): copy the file again, or give another with --vocab") from error


# Byte-level BPE in two files


def _byte_pairs(path: Path, merges: Path) -> PieceVocabulary:
    """Byte-level BPE (Radford et al. 2019) from a table of IDs and a list of merges."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    ids, pairs, options = _ids(path), _pairs(merges), _options(path.with_name("tokenizer_config.json"))
    frame = _frame(ids, options, path)
    unknown = "<unk>" if "<unk>" in ids else None
    with _refused(f"{shown_path(path)} and {merges.name} do not fit each other"):
        rust = Tokenizer(models.BPE(vocab=ids, merges=pairs, unk_token=unknown))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=options.get("add_prefix_space") is True)
    rust.decoder = decoders.ByteLevel()
    special = [word for word in _SPECIAL_PIECES if word in ids]
    rust.add_special_tokens([AddedToken(word, lstrip=word == "<mask>") for word in special])
    _add_frame(rust, frame, ids)
    return _vocabulary(rust, path, ids.get("<unk>"))


def _add_frame(rust: tokenizers.Tokenizer, frame: tuple[str, ...], ids: Mapping[str, int]) -> None:
    from tokenizers import processors

    if frame:
        first, last = frame
        places = [(word, ids[word]) for word in frame]
        rust.post_processor = processors.TemplateProcessing(single=f"{first} $A {last}", special_tokens=places)


def _frame(ids: Mapping[str, int], options: Mapping[str, Any], path: Path) -> tuple[str, ...]:
    """The tokens around a text: as the named class has them, or those of RoBERTa where the vocabulary has both."""
    kind = options.get("tokenizer_class")
    if kind is None:
        frame = FRAMES["RobertaTokenizer"]
        return frame if all(word in ids for word in frame) else ()
    frame_or_none = FRAMES.get(str(kind).removesuffix("Fast"))
    if frame_or_none is None or any(word not in ids for word in frame_or_none):
        raise InputError(f"{shown_path(path)} is not the whole of a {str(kind)[:60]}: a tokenizer.json is needed")
    return frame_or_none


def _ids(path: Path) -> dict[str, int]:
    ids = _object(path)
    if not all(type(token_id) is int and 0 <= token_id < MAX_ENTRIES for token_id in ids.values()):
        raise InputError(f"{shown_path(path)} is no table of pieces and IDs: every value is a whole number from 0")
    return ids


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in read_text(path).split("\n") if line.strip() and not line.startswith("#version")]
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines]
    wrong = next((line for line, pair in zip(lines, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise InputError(f"{shown_path(path)} has the line {wrong[:40]!r}: a merge is two pieces with a space between")
    return [(first, second) for first, second in pairs]


def _options(path: Path) -> dict[str, Any]:
    return _object(path) if path.exists() else {}


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{shown_path(path)} is not JSON ({reason}): copy the file again") from error
    if not isinstance(found, dict):
        raise InputError(f"{shown_path(path)} is not a JSON object: copy the file again")
    return found
