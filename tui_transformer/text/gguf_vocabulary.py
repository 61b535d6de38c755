"""Vocabularies in GGUF files, as tokenizers of the library `tokenizers`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.text.files import shown_path
from tui_transformer.text.gguf_pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from tui_transformer.text.guarded import check_charsmap
from tui_transformer.text.tokenizer_files import PieceVocabulary, add_frame, bert_pieces, refused, vocabulary_of
from tui_transformer.text.vocabulary_rules import Specials

if TYPE_CHECKING:
    import tokenizers
    from tokenizers import normalizers

KEY = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""Types of pieces."""

SPACE = "▁"
LONGEST_PIECE = 512
"""Characters of a piece that is put together from two, each of which may end anywhere in it."""


def has_vocabulary(file: GgufFile) -> bool:
    """True if a file says how text is split."""
    return file.metadata.get(f"{KEY}model", "none") not in ("none", "no_vocab")


def load_gguf_vocabulary(file: GgufFile) -> PieceVocabulary:
    """The vocabulary of a GGUF file.

    Raises:
        InputError: It has none, or one of a kind that is not known.
    """
    kind = str(file.metadata.get(f"{KEY}model", ""))
    if kind not in _MODELS:
        known = ", ".join(_MODELS)
        what = "has no vocabulary" if not kind else f"has a tokenizer {str(kind)[:40]!r}, which is not read"
        raise InputError(f"{shown_path(file.path)} {what}: {known} are, or give one with --vocab")
    words = file.metadata.get(f"{KEY}tokens")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"{shown_path(file.path)} has no list of tokens: copy it again")
    with refused(f"{shown_path(file.path)} has a vocabulary that cannot be read"):
        rust = _MODELS[kind](file, words)
        _add(rust, words, _types(file))
        add_frame(rust, _first(file, words), _last(file, words))
    vocabulary = vocabulary_of(rust, file.path, _id(file, "unknown_token_id", len(words)))
    specials = Specials()
    for role, key in (("end", "eos"), ("begin", "bos"), ("padding", "padding")):
        name = _named(file, words, f"{key}_token_id")
        with contextlib.suppress(UsageError):  # of one that has two parts to play, only the first counts
            specials = replace(specials, **{role: name}) if name else specials
    return replace(vocabulary, specials=specials)


def _types(file: GgufFile) -> Sequence[int]:
    types = file.metadata.get(f"{KEY}token_type")
    return [] if types is None else [int(each) for each in types]


def _id(file: GgufFile, key: str, size: int) -> int | None:
    number = file.metadata.get(f"{KEY}{key}", USUAL.get((file.metadata[f"{KEY}model"], key)))
    return number if isinstance(number, int) and 0 <= number < size else None


USUAL: Mapping[tuple[str, str], int] = {
    ("llama", "bos_token_id"): 1,
    ("llama", "eos_token_id"): 2,
    ("llama", "unknown_token_id"): 0,
    ("bert", "cls_token_id"): 101,
    ("bert", "seperator_token_id"): 102,
    ("bert", "unknown_token_id"): 100,
    ("t5", "eos_token_id"): 1,
    ("t5", "unknown_token_id"): 2,
}
"""IDs where a file does not say them, as llama.cpp has them."""


def _named(file: GgufFile, words: Sequence[str], key: str) -> str:
    number = _id(file, key, len(words))
    return "" if number is None else words[number]


def _ids(words: Sequence[str]) -> dict[str, int]:
    return {word: number for number, word in reversed(list(enumerate(words)))}


def _byte_pairs(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """Byte-level BPE (Radford et al. 2019), with the pre-tokenizer that the file names."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    kind = _pre_tokenizer(file)
    pairs = [tuple(pair.split(" ", 1)) for pair in file.metadata.get(f"{KEY}merges", ())]
    rust = Tokenizer(models.BPE(vocab=_ids(words), merges=pairs, ignore_merges=kind.whole, byte_fallback=kind.marked))
    parts: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in kind.patterns
    ]
    if kind.marked:
        rust.pre_tokenizer = pre_tokenizers.Sequence(parts)
        return _marked(rust, file, before=False)
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.Sequence([*parts, bytes_of]), decoders.ByteLevel()
    return rust


def _pre_tokenizer(file: GgufFile) -> PreTokenizer:
    name = "gemma4" if file.metadata[f"{KEY}model"] == "gemma4" else str(file.metadata.get(f"{KEY}pre") or "default")
    if name not in PRE_TOKENIZERS:
        raise InputError(
            f"{shown_path(file.path)} has a pre-tokenizer {name[:40]!r}, which is not known: "
            f"{', '.join(tuple(PRE_TOKENIZERS)[:12])} and {len(PRE_TOKENIZERS) - 12} more are"
        )
    return PRE_TOKENIZERS[name]


def _sentence_pairs(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """SentencePiece's BPE: of all neighbours the pair is merged that gives the piece of the highest score."""
    from tokenizers import Tokenizer, models

    scores, ids = file.metadata[f"{KEY}scores"], _ids(words)
    of_type = (word for word, kind in zip(words, _types(file), strict=False) if kind == UNKNOWN)
    unknown = _named(file, words, "unknown_token_id") or next(of_type, None)
    rust = Tokenizer(
        models.BPE(
            vocab=ids,
            merges=_merges(words, scores, ids, _types(file)),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    return _marked(rust, file, before=not file.architecture.startswith("gemma"))


def _merges(
    words: Sequence[str], scores: Sequence[float], ids: Mapping[str, int], types: Sequence[int]
) -> list[tuple[str, str]]:
    """Every way to put a piece together from two, the pieces of the highest score first."""
    ranked = []
    for number, word in enumerate(words):
        if types and types[number] not in (NORMAL, USER_DEFINED):
            continue
        if len(word) > LONGEST_PIECE:
            raise ValueError(f"a piece has {len(word):,} characters, and {LONGEST_PIECE} are the most")
        cuts = [(word[:at], word[at:]) for at in range(1, len(word))]
        pairs = [(first, last) for first, last in cuts if first in ids and last in ids]
        ranked += [(-float(scores[number]), number, ids[first], ids[last], (first, last)) for first, last in pairs]
    return [each[-1] for each in sorted(ranked, key=lambda each: each[:-1])]


def _unigram(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """SentencePiece's unigram model (Kudo 2018)."""
    from tokenizers import Regex, Tokenizer, models, normalizers

    scores = [float(score) for score in file.metadata[f"{KEY}scores"]]
    unknown = _id(file, "unknown_token_id", len(words))
    rust = Tokenizer(models.Unigram(list(zip(words, scores, strict=True)), unk_id=unknown, byte_fallback=False))
    first: list[normalizers.Normalizer] = []
    if len(charsmap := file.metadata.get(f"{KEY}precompiled_charsmap", ())):
        check_charsmap(table := bytes(charsmap.view("u1")))
        first.append(normalizers.Precompiled(table))
    if file.metadata.get(f"{KEY}remove_extra_whitespaces"):
        first += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    return _marked(rust, file, before=True, first=first)


def _marked(
    rust: tokenizers.Tokenizer, file: GgufFile, *, before: bool, first: Sequence[normalizers.Normalizer] = ()
) -> tokenizers.Tokenizer:
    """Spaces are ▁, one of which may stand before every text; bytes have names."""
    from tokenizers import decoders, normalizers

    before = bool(file.metadata.get(f"{KEY}add_space_prefix", before))
    spaces = normalizers.Replace(" ", SPACE)
    rust.normalizer = normalizers.Sequence([*first, *([normalizers.Prepend(SPACE)] if before else []), spaces])
    ends = [decoders.Strip(" ", 1, 0)] if before else []
    rust.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *ends])
    return rust


def _word_pieces(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """BERT's pieces; llama.cpp marks the beginnings of words, BERT what does not begin one."""

    def piece(word: str, kind: int) -> str:
        if kind != NORMAL or (word.startswith("[") and word.endswith("]")):
            return word
        return word[1:] if word.startswith(SPACE) else f"##{word}"

    types = _types(file) or [NORMAL] * len(words)
    ids = {piece(word, kind): number for number, (word, kind) in enumerate(zip(words, types, strict=True))}
    unknown = _named(file, words, "unknown_token_id") or "[UNK]"
    small = bool(file.metadata.get(f"{KEY}normalizer.lowercase", True))
    accents = bool(file.metadata.get(f"{KEY}normalizer.strip_accents", small))
    return bert_pieces(ids, unknown, lower=small, accents=accents)


def _add(rust: tokenizers.Tokenizer, words: Sequence[str], types: Sequence[int]) -> None:
    """Pieces that are cut out of a text before all else; those of control are special."""
    from tokenizers import AddedToken

    for kind, add in ((CONTROL, rust.add_special_tokens), (USER_DEFINED, rust.add_tokens)):
        pieces = [word for word, each in zip(words, types, strict=False) if each == kind and word]
        add([AddedToken(word, normalized=False, special=kind == CONTROL) for word in pieces])


def _first(file: GgufFile, words: Sequence[str]) -> str:
    """The piece that every text begins with; "" for none. Some kinds begin texts unless the file says otherwise."""
    kind = file.metadata[f"{KEY}model"]
    usual = kind in ("llama", "bert") or (kind in ("gpt2", "gemma4") and _pre_tokenizer(file).begins)
    if not file.metadata.get(f"{KEY}add_bos_token", usual):
        return ""
    return (kind == "bert" and _named(file, words, "cls_token_id")) or _named(file, words, "bos_token_id")


def _last(file: GgufFile, words: Sequence[str]) -> str:
    """The piece that every text ends with; "" for none: of BERT what separates, of T5 the end."""
    kind, separator = file.metadata[f"{KEY}model"], ""
    if file.metadata.get(f"{KEY}add_sep_token", kind == "bert"):
        separator = _named(file, words, "seperator_token_id") or _named(file, words, "separator_token_id")
    if separator or not file.metadata.get(f"{KEY}add_eos_token", kind in ("t5", "bert")):
        return separator
    return _named(file, words, "eos_token_id")


_MODELS: Mapping[str, Callable[[GgufFile, Any], tokenizers.Tokenizer]] = {
    "gpt2": _byte_pairs,
    "llama": _sentence_pairs,
    "t5": _unigram,
    "bert": _word_pieces,
    "gemma4": _byte_pairs,
}
"""Names of the kinds of tokenizers in llama.cpp."""
