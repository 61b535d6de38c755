"""SentencePiece models (Kudo & Richardson 2018) without a `tokenizer.json`: Marian's two, T5's and Llama's.

They are cut by the library `sentencepiece`, an optional extra, which is imported when a text is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field, replace
from tui_transformer.text.display import BYTE_NAME, visible
from tui_transformer.text.encoding import Encoding, Token, check_length, over, without_surrogates
from tui_transformer.text.files import shown_path
from tui_transformer.text.json_files import class_of, read_ids, sibling_options, sibling_tokens
from tui_transformer.text.vocabulary import Vocabulary, by_id
from tui_transformer.text.vocabulary_rules import Specials

SOURCE, TARGET, TABLE, TARGET_TABLE = "source.spm", "target.spm", "vocab.json", "target_vocab.json"
INSTALL = "pip install 'sentencepiece>=0.2.3'"
EXTRA_IDS = 100
"""Sentinels of T5, where its options do not say how many."""

_NAMES = Specials("<pad>", "<unk>", "<s>", "</s>")
_LANGUAGE = re.compile(r">>.+?<<")


@dataclass(frozen=True, eq=False)
class SentencePieceVocabulary(Vocabulary):
    """The pieces in order of ID, with the file `model` that cuts texts.

    What the decoder writes is cut by `target`, where that is another file, into `target_words`, where they are others.
    `first` and `last` stand around a text, which may begin with a `language`, `>>code<<`. The `added` entries past the
    table need no rows.
    """

    model: Path
    target: Path | None = None
    target_words: tuple[str, ...] = field(default=(), repr=False)
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    added: int = 0
    language: bool = False
    own: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def unknown_id(self) -> int | None:
        """The ID of what the pieces cannot write."""
        return self.ids.get(self.specials.unknown)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The IDs of special tokens, codes of languages among them."""
        codes = (word for word in self.words if self.language and _LANGUAGE.fullmatch(word))
        return super().special_ids.union(self.ids[word] for word in (*self.own, *codes))

    @cached_property
    def written(self) -> SentencePieceVocabulary:
        """With the file that cuts what the decoder writes, and its pieces."""
        if self.target is None:
            return self
        target = replace(self, model=self.target, target=None, target_words=())
        return replace(target, name=TARGET_TABLE, words=self.target_words) if self.target_words else target

    @property
    def rows(self) -> int:
        """The rows that an embedding table must have."""
        return self.size - self.added

    def files(self) -> Mapping[str, bytes]:
        """The model's files as they are."""
        names = (TABLE, TARGET_TABLE, "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json")
        siblings = (path for path in map(self.model.with_name, names) if path.exists())
        paths = [self.model, *([self.target] if self.target else []), *siblings]
        try:
            return {path.name: path.read_bytes() for path in paths}
        except OSError as error:
            raise InputError(
                f"{shown_path(self.model)} cannot be read again ({error.strerror}): copy it back"
            ) from error


@dataclass(frozen=True)
class SentencePieceTokenizer:
    """Cuts text by a SentencePiece model; special and added tokens count where they are written in full."""

    vocabulary: SentencePieceVocabulary

    @cached_property
    def target(self) -> SentencePieceTokenizer:
        """The tokenizer of the decoder's text."""
        return self if self.vocabulary.target is None else SentencePieceTokenizer(self.vocabulary.written)

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into pieces; see `Tokenizer.encode`. A cut text keeps the tokens that are added around it."""
        check_length(text)
        words = self.vocabulary
        pieces = list(self._pieces(without_surrogates(text), text))
        count = len(pieces) + len(words.first) + len(words.last)
        left = over(count, max_tokens, len(pieces), cut=cut)
        first = [Token(words.ids[word], word, 0, 0, special=True) for word in words.first]
        last = [Token(words.ids[word], word, len(text), len(text), special=True) for word in words.last]
        return Encoding(text, (*first, *pieces[: len(pieces) - left], *last), left)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, special ones as they are written."""
        data = bytearray()
        for piece in [self.vocabulary.word(token_id) for token_id in ids]:
            match = BYTE_NAME.fullmatch(piece)
            data += bytes([int(match[1], 16)]) if match else piece.replace("▁", " ").encode()
        return data.decode(errors="replace").removeprefix(" ")

    def _pieces(self, text: str, written: str) -> Iterator[Token]:
        at = 0
        for match in self._special.finditer(text):
            yield from self._cut(text, written, at, match.start())
            yield self._token(match[0], written, match.start(), match.end())
            at = match.end()
        yield from self._cut(text, written, at, len(text))

    def _cut(self, text: str, written: str, start: int, end: int) -> Iterator[Token]:
        """The pieces of a part of the text; the bytes of a character all have its place."""
        if start == end:
            return
        path = self.vocabulary.model
        try:
            cut = processor(path).encode(text[start:end], return_type="offset_mapping")
        except (UnicodeDecodeError, RuntimeError) as error:
            raise _damaged(path, error) from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{shown_path(path)} needs a newer sentencepiece: {INSTALL}") from error
        pieces, places = cut["pieces"], list(cut["offsets"])
        for later, earlier in pairwise(reversed(range(len(pieces)))):
            if BYTE_NAME.fullmatch(pieces[earlier]) and places[earlier][0] == places[earlier][1] == places[later][0]:
                places[earlier] = places[later]
        for piece, (first, last) in zip(pieces, places, strict=True):
            yield self._token(piece, written, start + first, start + last)

    def _token(self, piece: str, written: str, start: int, end: int) -> Token:
        words = self.vocabulary
        token_id = words.ids.get(piece)
        if token_id is None and words.unknown_id is None:
            raise InputError(f"{shown_path(words.model)} has no <unk>, and {written[start:end][:40]!r} is not in it")
        if token_id is None:
            return Token(words.unknown_id or 0, written[start:end], start, end, unknown=True)
        return Token(token_id, piece, start, end, special=token_id in words.special_ids)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        words = self.vocabulary
        whole = {*(words.words[i] for i in words.special_ids), *words.words[words.rows :]} - {""}
        names = sorted(whole, key=len, reverse=True)
        code = [rf"\A{_LANGUAGE.pattern}"] if words.language else []
        return re.compile("|".join([*code, *map(re.escape, names)]) or "(?!)")


@lru_cache(maxsize=8)
def processor(path: Path) -> Any:
    """The library's model; `Any` as the library has no types."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        reason = "needs the extra `sentencepiece`, which is not installed"
        raise InputError(f"{shown_path(path)} {reason}: {INSTALL}") from error
    try:
        model = SentencePieceProcessor(model_proto=path.read_bytes())
    except (RuntimeError, OSError) as error:
        raise _damaged(path, error) from error
    if not model.get_piece_size():
        raise _damaged(path, ValueError("it has no pieces"))
    return model


def _damaged(path: Path, error: Exception) -> InputError:
    reason = visible((str(error) or type(error).__name__).splitlines()[0][:120])
    return InputError(f"{shown_path(path)} is no SentencePiece model ({reason}): copy the file again")


# Opening


def load_sentence_pieces(path: Path) -> SentencePieceVocabulary:
    """Open `source.spm` (with `target.spm` and `vocab.json` beside it), `spiece.model` or `tokenizer.model`.

    Raises:
        InputError: A file is missing or broken, the extra is not installed, or it is of a kind that is not known.
    """
    if not path.is_file():
        raise InputError(f"{shown_path(path)} does not exist: check the path")
    kind = class_of(path) or _KINDS.get(path.name, "")
    if kind not in _OPENERS:
        raise InputError(
            f"{shown_path(path)} is not the whole of a {visible(kind[:60]) or 'tokenizer'}: a tokenizer.json is needed"
        )
    return _OPENERS[kind](path)


def _marian(path: Path) -> SentencePieceVocabulary:
    """IDs are those of `vocab.json`, not the model's own; `</s>` ends a text."""
    table = path.with_name(TABLE)
    if not table.exists():
        raise InputError(f"{shown_path(path)} has no {TABLE} beside it, which gives the IDs of its pieces: copy it too")
    words, target = by_id(read_ids(table), shown_path(table)), path.with_name(TARGET)
    written: tuple[str, ...] = ()
    other = target if path.name == SOURCE and target.exists() else None
    if other is not None and sibling_options(path).get("separate_vocabs") is True:
        table = path.with_name(TARGET_TABLE)
        if not table.exists():
            missing = f"{TARGET_TABLE} beside it, though separate_vocabs is true"
            raise InputError(f"{shown_path(path)} has no {missing}: copy it")
        written = by_id(read_ids(table), shown_path(table))
    return _vocabulary(path, words, target=other, target_words=written, last=_present(words, "</s>"), language=True)


def _t5(path: Path) -> SentencePieceVocabulary:
    """`</s>` ends a text; past the model's pieces are sentinels, the last one first."""
    words = _pieces(path)
    count = sibling_options(path).get("extra_ids", EXTRA_IDS)
    sentinels = tuple(f"<extra_id_{i}>" for i in reversed(range(count if type(count) is int else EXTRA_IDS)))
    return _opened(path, words, tuple(word for word in sentinels if word not in words), last=_present(words, "</s>"))


def _llama(path: Path) -> SentencePieceVocabulary:
    """`<s>` begins a text, unless the options say otherwise."""
    words, options = _pieces(path), sibling_options(path)
    first = _present(words, "<s>") if options.get("add_bos_token", True) else ()
    last = _present(words, "</s>") if options.get("add_eos_token", False) else ()
    return _opened(path, words, (), first=first, last=last)


def _opened(
    path: Path, words: tuple[str, ...], more: tuple[str, ...], **around: tuple[str, ...]
) -> SentencePieceVocabulary:
    """With the tokens that the files beside the model add."""
    added = sibling_tokens(path)
    whole = by_id({**{word: i for i, word in enumerate((*words, *more))}, **added.ids}, shown_path(path))
    control = (words[i] for i in range(len(words)) if processor(path).is_control(i))
    special = frozenset((*more, *control, *(each.content for each in added.special if each.content in whole)))
    return _vocabulary(path, whole, added=len(whole) - len(words), own=special, **around)


def _vocabulary(path: Path, words: tuple[str, ...], **said: Any) -> SentencePieceVocabulary:
    return SentencePieceVocabulary(path.name, words, 0, "sentencepiece", path, path, specials=_NAMES, **said)


def _pieces(path: Path) -> tuple[str, ...]:
    model = processor(path)
    try:
        return tuple(model.id_to_piece(i) for i in range(model.get_piece_size()))
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error


def _present(words: tuple[str, ...], word: str) -> tuple[str, ...]:
    return (word,) if word in words else ()


_KINDS = {
    SOURCE: "MarianTokenizer",
    TARGET: "MarianTokenizer",
    "spiece.model": "T5Tokenizer",
    "tokenizer.model": "LlamaTokenizer",
}
_OPENERS: Mapping[str, Callable[[Path], SentencePieceVocabulary]] = {
    "MarianTokenizer": _marian,
    "T5Tokenizer": _t5,
    "LlamaTokenizer": _llama,
}
