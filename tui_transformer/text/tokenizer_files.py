"""Tokenizers of published models, by the library `tokenizers`: `tokenizer.json`, or several files that make one."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field
from tui_transformer.text.display import Style, piece_label, piece_text, visible
from tui_transformer.text.encoding import Encoding, Piece, check_length, over, token_at, too_many, without_surrogates
from tui_transformer.text.files import read_text, shown_path
from tui_transformer.text.guarded import check_parts, guarded, parts_of
from tui_transformer.text.json_files import (
    ADDED,
    FRAMES,
    PIECE_FRAMES,
    Added,
    Special,
    frame_of,
    read_ids,
    sibling_options,
    sibling_tokens,
)
from tui_transformer.text.vocabulary import Vocabulary, by_id, has_capitals
from tui_transformer.text.vocabulary_rules import UNKNOWN, Specials
from tui_transformer.text.word_tokenizers import join_words

if TYPE_CHECKING:
    import tokenizers


@dataclass(frozen=True, eq=False)
class PieceVocabulary(Vocabulary):
    """The pieces of a tokenizer in order of ID, as the tokenizer writes them; an ID without a piece has "".

    `unknown_id` is the one that stands for what the pieces cannot write, where there is one.
    """

    usual_names: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "padding": ("[PAD]", "<pad>", "<|pad|>"),
        "begin": ("<s>", "<bos>", "<|begin_of_text|>", "[CLS]", "<|endoftext|>"),
        "end": ("</s>", "<eos>", "<|end_of_text|>", "[SEP]", "<|endoftext|>"),
    }
    rust: tokenizers.Tokenizer = field(repr=False)
    style: Style
    unknown_id: int | None = None

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The IDs that the file calls special, and the unknown one."""
        added = self.rust.get_added_tokens_decoder()
        special = {token_id for token_id, token in added.items() if token.special}
        return frozenset(special if self.unknown_id is None else special | {self.unknown_id})

    @property
    def rows(self) -> int:
        """The rows that an embedding table must have; a tokenizer's added tokens may be more than the table has."""
        added = self.rust.get_added_tokens_decoder()
        return next((i + 1 for i in reversed(range(self.size)) if i not in added), 0)

    def reading(self, token_id: int) -> str:
        """The meaning of the piece of an ID, in plain words; see `piece_text`. CLIP's `the</w>` ends a word."""
        word, end = self.word(token_id), getattr(self.rust.model, "end_of_word_suffix", None)
        if token_id in self.special_ids:
            return word
        if end and word.endswith(end) and word != end:
            return f"{piece_text(word.removesuffix(end), self.style)}, at the end of a word"
        return piece_text(word, self.style)

    def label(self, word: str) -> str:
        """A piece as it stands beside a row, with one sign for a space whatever the tokenizer's own is."""
        return piece_label(word, self.style)

    def file(self) -> tuple[str, str]:
        """The name and content of the file that this can be read from again."""
        return "tokenizer.json", self.rust.to_str()


@dataclass(frozen=True)
class PieceTokenizer:
    """Splits text as the tokenizer's file says, by the library, with the tokens that its post-processor adds."""

    vocabulary: Vocabulary

    @cached_property
    def rust(self) -> tokenizers.Tokenizer:
        """The tokenizer of the library: that of the file."""
        return cast("PieceVocabulary", self.vocabulary).rust

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into pieces; see `Tokenizer.encode`. A cut text keeps the tokens that are added at its end."""
        check_length(text)
        with refused("the text cannot be split by this tokenizer"):
            cut_text = self.rust.encode(without_surrogates(text))
        added = cut_text.special_tokens_mask
        own = [i for i, mark in enumerate(added) if not mark]
        left = over(len(added), max_tokens, len(own), cut=cut)
        first, dropped = own[0] if own else len(added), frozenset(own[len(own) - left :])
        offsets = with_spaces(text, cut_text.offsets, own)
        places = [
            ((0, 0) if i < first else (len(text), len(text))) if mark else offset
            for i, (mark, offset) in enumerate(zip(added, offsets, strict=True))
        ]
        ids = cut_text.ids  # the library makes a new list each time that it is asked
        kept = (i for i in range(len(added)) if i not in dropped)
        return Encoding(text, tuple(token_at(self.vocabulary, ids[i], text, *places[i]) for i in kept), left)

    def pair(self, first: str, second: str) -> Sequence[Piece]:
        """Two sentences as the post-processor puts them together; see `encoding.Pairs`."""
        with refused("the sentences cannot be split by this tokenizer"):
            pair = self.rust.encode(without_surrogates(first), without_surrogates(second))
        offsets = pair.offsets
        for number, text in enumerate((first, second)):
            offsets = with_spaces(text, offsets, [i for i, each in enumerate(pair.sequence_ids) if each == number])
        places = zip(pair.ids, pair.sequence_ids, offsets, pair.type_ids, strict=True)
        return [Piece(token_id, sentence, *place, segment) for token_id, sentence, place, segment in places]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces, special ones as they are written."""
        for token_id in ids:
            self.vocabulary.word(token_id)
        with refused("the IDs cannot be turned into text"):
            return self.rust.decode(list(ids), skip_special_tokens=False)


def with_spaces(text: str, offsets: Sequence[tuple[int, int]], own: Sequence[int]) -> list[tuple[int, int]]:
    """The places of the library; of these tokens spaces alone, which RoBERTa's trims to nothing, whole."""
    places, at = list(offsets), 0
    for i in own:
        start, end = places[i]
        if start == end and text[at:start].isspace():
            places[i] = at, start
        at = max(at, end)
    return places


_WORD = re.compile(r"[^\W_]\S*")


@dataclass(frozen=True)
class WordPieceTokenizer(PieceTokenizer):
    """BERT's word pieces (Devlin et al. 2019), from a list of them.

    The text is cleaned, lower-cased and stripped of accents, unless the vocabulary itself has capitals, and split at
    white space and punctuation; each word is the longest pieces from its left. [CLS] … [SEP] stand around the pieces
    where the vocabulary has both.
    """

    @cached_property
    def rust(self) -> tokenizers.Tokenizer:
        """Made of the list."""
        rust = bert_pieces(self.vocabulary.ids, UNKNOWN, lower=not has_capitals(self.vocabulary))
        rust.add_special_tokens(list(self.vocabulary.special_words))
        if "[CLS]" in self.vocabulary.ids and "[SEP]" in self.vocabulary.ids:
            add_frame(rust, "[CLS]", "[SEP]")
        return rust

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into word pieces; see `Tokenizer.encode`. A cut text keeps its [SEP]."""
        check_length(text)
        if max_tokens is not None and not cut:
            words = sum(1 for _ in _WORD.finditer(text))
            if words > max_tokens:  # refused before the work, as each word is one piece or more
                raise too_many(words, max_tokens, "at least ")
        return super().encode(text, max_tokens=max_tokens, cut=cut)

    def decode(self, ids: Sequence[int]) -> str:
        """Join the pieces to words and the words with spaces, none before punctuation."""
        words: list[str] = []
        for piece in map(self.vocabulary.word, ids):
            if words and piece.startswith("##") and len(piece) > 2:
                words[-1] += piece[2:]
            else:
                words.append(piece)
        return join_words(words)


def bert_pieces(
    ids: dict[str, int], unknown: str, *, lower: bool, accents: bool | None = None, apart: bool = True
) -> tokenizers.Tokenizer:
    """BERT's tokenizer of these pieces; where accents are not said to be stripped, small letters lose them.

    `apart`: a Chinese character is a word.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    rust = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
    rust.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=accents, handle_chinese_chars=apart)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return rust


def load_tokenizer_file(path: Path) -> PieceVocabulary:
    """Open a `tokenizer.json`.

    Raises:
        InputError: The file is missing or broken, or describes a tokenizer that is not known.
    """
    from tokenizers import Tokenizer, models

    text = read_text(path)
    with refused(f"{shown_path(path)} is no tokenizer that can be read"):
        check_parts(text)
        rust = Tokenizer.from_str(text)
        if isinstance(rust.model, models.BPE):
            rust.model.dropout = None  # of training: the same text is the same tokens here
        rust = guarded(rust)
    word = getattr(rust.model, "unk_token", None)
    unknown = None if word is None else rust.token_to_id(word)
    if isinstance(rust.model, models.Unigram):  # of which the library tells nobody the ID
        unknown = json.loads(text)["model"].get("unk_id")
    return vocabulary_of(rust, path, unknown if isinstance(unknown, int) else None)


def built_vocabulary(rust: tokenizers.Tokenizer, name: str, specials: Specials) -> PieceVocabulary:
    """The vocabulary of a tokenizer that was made here."""
    words = by_id(rust.get_vocab(with_added_tokens=True), name)
    unknown = rust.token_to_id(specials.unknown)
    return PieceVocabulary(name, words, 0, "pieces", None, rust, _style(rust), unknown, specials=specials)


def vocabulary_of(rust: tokenizers.Tokenizer, path: Path, unknown: int | None) -> PieceVocabulary:
    """The vocabulary of a tokenizer that a file describes.

    Raises:
        InputError: It has no pieces, too many, or adds tokens that are not there.
    """
    rust.no_truncation()
    rust.no_padding()
    where = shown_path(path)
    words = by_id(rust.get_vocab(with_added_tokens=True), where)
    for part in parts_of(rust.post_processor):
        if part.get("type") == "TemplateProcessing":
            names = (piece["SpecialToken"]["id"] for piece in part["single"] if "SpecialToken" in piece)
            missing = [name for name in names if name not in part["special_tokens"]]
            if missing:  # the library would panic
                raise InputError(f"{where} adds {missing[0]!r} to every text and does not say which token that is")
    with refused(f"{where} is a tokenizer that splits no text"):
        outside = [i for i in rust.encode("a").ids if i >= len(words)]
    if outside:
        raise InputError(f"{where} adds token {outside[0]} to every text, and its IDs go up to {len(words) - 1}")
    return PieceVocabulary(path.name, words, 0, "pieces", path, rust, _style(rust), unknown)


def _style(rust: tokenizers.Tokenizer) -> Style:
    """How the pieces are written, from what puts them together again."""
    from tokenizers.models import WordPiece

    parts = [*parts_of(rust.decoder), *parts_of(rust.pre_tokenizer)]
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
        raise InputError(f"{what} ({reason}): copy the file again, or give --vocab (vocabulary=)") from error


def byte_pairs(path: Path, merges: Path) -> PieceVocabulary:
    """Byte-level BPE (Radford et al. 2019) from a table of IDs and a list of merges.

    Raises:
        InputError: A file is missing or broken, or they do not fit each other.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    ids, pairs, options, added = read_ids(path), _pairs(merges), sibling_options(path), sibling_tokens(path)
    unknown = added.named("unk_token", "<unk>")
    with refused(f"{shown_path(path)} and {merges.name} do not fit each other"):
        rust = Tokenizer(models.BPE(vocab=ids, merges=pairs, unk_token=unknown if unknown in ids else None))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=options.get("add_prefix_space") is True)
    rust.decoder = decoders.ByteLevel()
    usual = ("<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>")
    _add(rust, path, added, [Special(word, {"lstrip": word == "<mask>"}) for word in usual if word in ids])
    frame = frame_of(path, FRAMES, "RobertaTokenizer", added, rust.token_to_id)
    add_frame(rust, *frame, twice=all(frame))
    return vocabulary_of(rust, path, rust.token_to_id(unknown))


def word_pieces(path: Path, words: Vocabulary) -> PieceVocabulary:
    """BERT's word pieces with the tokens and as the options say that the files beside its `vocab.txt` hold.

    Raises:
        InputError: The files are broken, of another tokenizer, or an added token has an ID that leaves a gap.
    """
    added, options = sibling_tokens(path), sibling_options(path)
    unknown = added.named("unk_token", "[UNK]")
    if unknown not in words.ids:
        raise InputError(
            f"{shown_path(path)} has no {visible(unknown[:60])}, which stands for what is unknown: add a line with it"
        )
    lower = options.get("do_lower_case", not has_capitals(words)) is True
    strip, apart = options.get("strip_accents"), options.get("tokenize_chinese_chars", True) is not False
    accents = strip if isinstance(strip, bool) else None
    rust = bert_pieces(words.ids, unknown, lower=lower, accents=accents, apart=apart)
    _add(rust, path, added, [Special(word) for word in words.special_words])
    frame = frame_of(path, PIECE_FRAMES, "BertTokenizer", added, rust.token_to_id)
    rust.add_special_tokens(list(frame))
    add_frame(rust, *frame, twice=frame[:1] == PIECE_FRAMES["MPNetTokenizer"][:1])
    return vocabulary_of(rust, path, words.ids[unknown])


def _add(rust: tokenizers.Tokenizer, path: Path, added: Added, usual: list[Special]) -> None:
    """The tokens that were added, each with the ID that the file gives it, and which of those there are are special."""
    from tokenizers import AddedToken

    special = {each.content: each for each in (*usual, *added.special)}
    for word, token_id in sorted(added.ids.items(), key=lambda item: item[1]):
        if word not in special:
            rust.add_tokens([AddedToken(word)])
        else:
            rust.add_special_tokens([AddedToken(word, **special[word].flags)])
        if rust.token_to_id(word) != token_id:
            where = shown_path(path.with_name(ADDED))
            raise InputError(
                f"{where} gives {word[:60]!r} the ID {token_id}, which is not the next: give a tokenizer.json"
            )
    there = [each for each in special.values() if rust.token_to_id(each.content) is not None]
    rust.add_special_tokens([AddedToken(each.content, **each.flags) for each in there])


def add_frame(rust: tokenizers.Tokenizer, first: str = "", last: str = "", *, twice: bool = False) -> None:
    """Put tokens before and after every text, the last one between two as well; "" for none.

    `twice`: it stands between them two times, and the second is no segment of its own, as in RoBERTa.
    """
    from tokenizers import processors

    if first or last:
        around = " ".join(part for part in (first, "$A", last) if part)
        second = f"{last} $B {last}" if twice else " ".join(part for part in ("$B:1", last and f"{last}:1") if part)
        places = [(word, rust.token_to_id(word)) for word in dict.fromkeys((first, last)) if word]
        rust.post_processor = processors.TemplateProcessing(
            single=around, pair=f"{around} {second}", special_tokens=places
        )


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in read_text(path).split("\n") if line.strip() and not line.startswith("#version")]
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines]
    wrong = next((line for line, pair in zip(lines, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise InputError(f"{shown_path(path)} has the line {wrong[:40]!r}: a merge is two pieces with a space between")
    return [(first, second) for first, second in pairs]
