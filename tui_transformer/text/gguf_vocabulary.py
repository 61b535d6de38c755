"""Vocabularies in GGUF files, as tokenizers of the library `tokenizers`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.records import dataclass, replace
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
    return str(file.metadata.get(f"{KEY}model", "none")) not in ("none", "no_vocab")


def load_gguf_vocabulary(file: GgufFile) -> PieceVocabulary:
    """The vocabulary of a GGUF file.

    Raises:
        InputError: It has none, or one of a kind that is not known.
    """
    kind = str(file.metadata.get(f"{KEY}model", ""))
    if kind not in _MODELS:
        known = ", ".join(_MODELS)
        what = "has no vocabulary" if not kind else f"has a tokenizer {str(kind)[:40]!r}, which is not read"
        raise InputError(f"{shown_path(file.path)} {what}: {known} are, or give one with --vocab (vocabulary=)")
    words = file.metadata.get(f"{KEY}tokens")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"{shown_path(file.path)} has no list of tokens: copy it again")
    from tokenizers import AddedToken

    listed = _Listed(file, kind, words)
    with refused(f"{shown_path(file.path)} has a vocabulary that cannot be read"):
        rust = _MODELS[kind](listed)
        # pieces that are cut out of a text before all else; those of control are special
        for type_, add in ((CONTROL, rust.add_special_tokens), (USER_DEFINED, rust.add_tokens)):
            pieces = [word for word, each in zip(words, listed.types, strict=False) if each == type_ and word]
            before = listed.get("add_space_prefix", not file.architecture.startswith("gemma"))
            spaces = type_ == USER_DEFINED and not before  # they are found as ▁
            ways = [(word, listed.strips(word), spaces and set(word) == {SPACE}) for word in pieces]
            add([AddedToken(word, normalized=as_, special=type_ == CONTROL, **strips) for word, strips, as_ in ways])
        add_frame(rust, _first(listed), _last(listed))
    vocabulary = vocabulary_of(rust, file.path, listed.id("unknown_token_id"))
    specials = Specials()
    for role, key in (("end", "eos"), ("begin", "bos"), ("padding", "padding")):
        name = listed.named(f"{key}_token_id")
        with contextlib.suppress(UsageError):  # of one that has two parts to play, only the first counts
            specials = replace(specials, **{role: name}) if name else specials
    return replace(vocabulary, specials=specials)


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


STRIPPED_BEFORE = {("modern-bert", "[MASK]"), *((f"jina-v2-{each}", "<mask>") for each in ("de", "es", "code"))}
"""Names of pre-tokenizers, and pieces that take the spaces in front of them."""


@dataclass(frozen=True)
class _Listed:
    """The tokens of a file, and what else it says of them."""

    file: GgufFile
    kind: str
    words: Sequence[str]

    def get(self, key: str, usual: Any = None) -> Any:
        return self.file.metadata.get(f"{KEY}{key}", usual)

    def id(self, key: str) -> int | None:
        number = self.get(key, USUAL.get((self.kind, key)))
        return number if isinstance(number, int) and 0 <= number < len(self.words) else None

    def named(self, key: str) -> str:
        number = self.id(key)
        return "" if number is None else self.words[number]

    def strips(self, word: str) -> dict[str, bool]:
        """Which side of a piece that is cut out loses its spaces: no file says it, and llama.cpp goes by names."""
        name, pre = str(self.file.metadata.get("general.name", "")).lower(), str(self.get("pre") or "")
        after = any(each in name for each in ("phi-3", "phi3", "phi 3")) and word not in (
            "<unk>",
            "<s>",
            "<|endoftext|>",
        )
        return {"lstrip": (pre, word) in STRIPPED_BEFORE, "rstrip": after}

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: number for number, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def types(self) -> Sequence[int]:
        return [int(each) for each in self.get("token_type", ())]

    @property
    def pre_tokenizer(self) -> PreTokenizer:
        name = "gemma4" if self.kind == "gemma4" else str(self.get("pre") or "default")
        if name not in PRE_TOKENIZERS:
            raise InputError(
                f"{shown_path(self.file.path)} has a pre-tokenizer {name[:40]!r}, which is not known: "
                f"{', '.join(tuple(PRE_TOKENIZERS)[:12])} and {len(PRE_TOKENIZERS) - 12} more are"
            )
        return PRE_TOKENIZERS[name]


def _byte_pairs(listed: _Listed) -> tokenizers.Tokenizer:
    """Byte-level BPE (Radford et al. 2019), with the pre-tokenizer that the file names."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    kind = listed.pre_tokenizer
    pairs = [tuple(pair.split(" ", 1)) for pair in listed.get("merges", ())]
    rust = Tokenizer(models.BPE(vocab=listed.ids, merges=pairs, ignore_merges=kind.whole, byte_fallback=kind.marked))
    parts: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in kind.patterns
    ]
    if kind.marked:
        rust.pre_tokenizer = pre_tokenizers.Sequence(parts)
        return _marked(rust, listed, before=False)
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.Sequence([*parts, bytes_of]), decoders.ByteLevel()
    return rust


def _sentence_pairs(listed: _Listed) -> tokenizers.Tokenizer:
    """SentencePiece's BPE: of all neighbours the pair is merged that gives the piece of the highest score."""
    from tokenizers import Tokenizer, models

    ranked = []  # every way to put a piece together from two
    ids, types, scores = listed.ids, listed.types, listed.file.metadata[f"{KEY}scores"]
    for number, word in enumerate(listed.words):
        if types and types[number] not in (NORMAL, USER_DEFINED):
            continue
        if len(word) > LONGEST_PIECE:
            raise ValueError(f"a piece has {len(word):,} characters, and {LONGEST_PIECE} are the most")
        cuts = [(word[:at], word[at:]) for at in range(1, len(word))]
        pairs = [(first, last) for first, last in cuts if first in ids and last in ids]
        ranked += [(-float(scores[number]), number, ids[first], ids[last], (first, last)) for first, last in pairs]
    merges = [each[-1] for each in sorted(ranked, key=lambda each: each[:-1])]
    of_type = (word for word, kind in zip(listed.words, types, strict=False) if kind == UNKNOWN)
    unknown = listed.named("unknown_token_id") or next(of_type, None)
    model = models.BPE(vocab=ids, merges=merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    return _marked(Tokenizer(model), listed, before=not listed.file.architecture.startswith("gemma"))


def _unigram(listed: _Listed) -> tokenizers.Tokenizer:
    """SentencePiece's unigram model (Kudo 2018)."""
    from tokenizers import Regex, Tokenizer, models, normalizers

    scores = [float(score) for score in listed.file.metadata[f"{KEY}scores"]]
    pieces, unknown = list(zip(listed.words, scores, strict=True)), listed.id("unknown_token_id")
    rust = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    first: list[normalizers.Normalizer] = []
    if len(charsmap := listed.get("precompiled_charsmap", ())):
        check_charsmap(table := bytes(charsmap.view("u1")))
        first.append(normalizers.Precompiled(table))
    if listed.get("remove_extra_whitespaces"):
        first += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    return _marked(rust, listed, before=True, first=first)


def _marked(
    rust: tokenizers.Tokenizer, listed: _Listed, *, before: bool, first: Sequence[normalizers.Normalizer] = ()
) -> tokenizers.Tokenizer:
    """Spaces are ▁, one of which may stand before every text; bytes have names."""
    from tokenizers import decoders, normalizers

    before = bool(listed.get("add_space_prefix", before))
    spaces = normalizers.Replace(" ", SPACE)
    rust.normalizer = normalizers.Sequence([*first, *([normalizers.Prepend(SPACE)] if before else []), spaces])
    ends = [decoders.Strip(" ", 1, 0)] if before else []
    rust.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *ends])
    return rust


def _word_pieces(listed: _Listed) -> tokenizers.Tokenizer:
    """BERT's pieces; llama.cpp marks the beginnings of words, BERT what does not begin one."""

    def piece(word: str, kind: int) -> str:
        if kind != NORMAL or (word.startswith("[") and word.endswith("]")):
            return word
        return word[1:] if word.startswith(SPACE) else f"##{word}"

    types = listed.types or [NORMAL] * len(listed.words)
    ids = {piece(word, kind): number for number, (word, kind) in enumerate(zip(listed.words, types, strict=True))}
    unknown = listed.named("unknown_token_id") or "[UNK]"
    small = bool(listed.get("normalizer.lowercase", True))
    accents = bool(listed.get("normalizer.strip_accents", small))
    return bert_pieces(ids, unknown, lower=small, accents=accents)


def _first(listed: _Listed) -> str:
    """The piece that every text begins with; "" for none. Some kinds begin texts unless the file says otherwise."""
    usual = listed.kind in ("llama", "bert") or (listed.kind in ("gpt2", "gemma4") and listed.pre_tokenizer.begins)
    if not listed.get("add_bos_token", usual):
        return ""
    return (listed.kind == "bert" and listed.named("cls_token_id")) or listed.named("bos_token_id")


def _last(listed: _Listed) -> str:
    """The piece that every text ends with; "" for none: of BERT what separates, of T5 the end."""
    separator = ""
    if listed.get("add_sep_token", listed.kind == "bert"):
        separator = listed.named("seperator_token_id") or listed.named("separator_token_id")
    if separator or not listed.get("add_eos_token", listed.kind in ("t5", "bert")):
        return separator
    return listed.named("eos_token_id")


_MODELS: Mapping[str, Callable[[_Listed], tokenizers.Tokenizer]] = {
    "gpt2": _byte_pairs,
    "llama": _sentence_pairs,
    "t5": _unigram,
    "bert": _word_pieces,
    "gemma4": _byte_pairs,
}
"""Names of the kinds of tokenizers in llama.cpp."""
