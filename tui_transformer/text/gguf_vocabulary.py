"""Vocabularies in GGUF files, as tokenizers of the library `tokenizers`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_transformer.errors import InputError, UsageError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.text.files import shown_path
from tui_transformer.text.specials import Specials
from tui_transformer.text.tokenizer_file import PieceVocabulary, refused, vocabulary_of

if TYPE_CHECKING:
    import tokenizers

KEY = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""Types of pieces."""

_GPT2 = (
    "gpt-2",
    "gpt2",
    "default-gpt2",
    "jina-es",
    "jina-de",
    "jina-v2-es",
    "jina-v2-de",
    "mpt",
    "olmo",
    "jais",
    "phi-2",
)
_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
_LLAMA3 = ("llama3", "llama-v3", "llama-bpe", "falcon3", "smaug-bpe", "dbrx")
_QWEN2 = ("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez")
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
PATTERNS: Mapping[str, str] = {
    **dict.fromkeys(_LLAMA3, _SPLIT.format(numbers=r"\p{N}{1,3}")),
    **dict.fromkeys(_QWEN2, _SPLIT.format(numbers=r"\p{N}")),
}
"""How text is split before pairs are merged, by the name of the pre-tokenizer (llama.cpp, `llama-vocab.cpp`)."""

SPACE = "▁"


def has_vocabulary(file: GgufFile) -> bool:
    """Whether a file says how text is split."""
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
    words = _words(file)
    with refused(f"{shown_path(file.path)} has a vocabulary that cannot be read"):
        rust = _MODELS[kind](file, words)
        _add(rust, words, _types(file))
        _frame(rust, file, words, always=kind == "bert")
    found = vocabulary_of(rust, file.path, _id(file, "unknown_token_id", len(words)))
    return replace(found, specials=_specials(file, words))


_ROLES = {"end": "eos", "begin": "bos", "padding": "padding"}


def _specials(file: GgufFile, words: Sequence[str]) -> Specials:
    """The names of special pieces; of one that has two parts to play, only the first counts."""
    found = Specials()
    for role, key in _ROLES.items():
        name = _named(file, words, f"{key}_token_id")
        with contextlib.suppress(UsageError):
            found = replace(found, **{role: name}) if name else found
    return found


def _words(file: GgufFile) -> Sequence[str]:
    found = file.metadata.get(f"{KEY}tokens")
    if not isinstance(found, list) or not found or not all(isinstance(word, str) for word in found):
        raise InputError(f"{shown_path(file.path)} has no list of tokens: copy it again")
    return found


def _types(file: GgufFile) -> Sequence[int]:
    found = file.metadata.get(f"{KEY}token_type")
    return [] if found is None else [int(each) for each in found]


def _id(file: GgufFile, key: str, size: int) -> int | None:
    found = file.metadata.get(f"{KEY}{key}")
    return found if isinstance(found, int) and 0 <= found < size else None


def _named(file: GgufFile, words: Sequence[str], key: str) -> str:
    found = _id(file, key, len(words))
    return "" if found is None else words[found]


def _ids(words: Sequence[str]) -> dict[str, int]:
    return {word: number for number, word in reversed(list(enumerate(words)))}


def _first_of(words: Sequence[str], types: Sequence[int], kind: int) -> str | None:
    """The first piece of a type."""
    return next((word for word, each in zip(words, types, strict=False) if each == kind), None)


def _byte_pairs(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """Byte-level BPE (Radford et al. 2019), with the pre-tokenizer that the file names."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    kind = str(file.metadata.get(f"{KEY}pre", "default"))
    pairs = [tuple(pair.split(" ", 1)) for pair in file.metadata.get(f"{KEY}merges", ())]
    rust = Tokenizer(models.BPE(vocab=_ids(words), merges=pairs))
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind not in PATTERNS)
    if kind in PATTERNS:
        parts = [pre_tokenizers.Split(Regex(PATTERNS[kind]), "isolated"), whole]
    elif kind in (*_DIGITS, *_GPT2):
        parts = [pre_tokenizers.Digits(individual_digits=True), whole] if kind in _DIGITS else [whole]
    else:
        known = ", ".join(sorted((*_GPT2, *_DIGITS, *PATTERNS)))
        raise ValueError(f"pre-tokenizer {kind[:40]!r} is not known: {known} are")
    rust.pre_tokenizer = pre_tokenizers.Sequence(parts)
    rust.decoder = decoders.ByteLevel()
    return rust


def _sentence_pairs(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """SentencePiece's BPE: of all neighbours the pair is merged that gives the piece of the highest score."""
    from tokenizers import Tokenizer, models

    scores, ids = file.metadata[f"{KEY}scores"], _ids(words)
    unknown = _named(file, words, "unknown_token_id") or _first_of(words, _types(file), UNKNOWN)
    rust = Tokenizer(
        models.BPE(
            vocab=ids,
            merges=_merges(words, scores, ids, _types(file)),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    return _marked(rust, file)


def _merges(
    words: Sequence[str], scores: Sequence[float], ids: Mapping[str, int], types: Sequence[int]
) -> list[tuple[str, str]]:
    """Every way to put a piece together from two, the pieces of the highest score first."""
    found = []
    for number, word in enumerate(words):
        if types and types[number] not in (NORMAL, USER_DEFINED):
            continue
        cuts = [(word[:at], word[at:]) for at in range(1, len(word))]
        pairs = [(first, last) for first, last in cuts if first in ids and last in ids]
        found += [(-float(scores[number]), number, ids[first], ids[last], (first, last)) for first, last in pairs]
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])]


def _unigram(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """SentencePiece's unigram model (Kudo 2018)."""
    from tokenizers import Tokenizer, models

    scores = [float(score) for score in file.metadata[f"{KEY}scores"]]
    unknown = _id(file, "unknown_token_id", len(words))
    rust = Tokenizer(models.Unigram(list(zip(words, scores, strict=True)), unk_id=unknown, byte_fallback=False))
    return _marked(rust, file)


def _marked(rust: tokenizers.Tokenizer, file: GgufFile) -> tokenizers.Tokenizer:
    """Spaces are ▁, one of which may stand before every text; bytes have names."""
    from tokenizers import decoders, normalizers

    before = file.metadata.get(f"{KEY}add_space_prefix", True)
    spaces = normalizers.Replace(" ", SPACE)
    rust.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), spaces]) if before else spaces
    ends = [decoders.Strip(" ", 1, 0)] if before else []
    rust.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *ends])
    return rust


def _word_pieces(file: GgufFile, words: Sequence[str]) -> tokenizers.Tokenizer:
    """BERT's pieces; llama.cpp marks the beginnings of words, BERT what does not begin one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    types = _types(file) or [NORMAL] * len(words)
    ids = {_bert_piece(word, kind): number for number, (word, kind) in enumerate(zip(words, types, strict=True))}
    unknown = _named(file, words, "unknown_token_id") or "[UNK]"
    rust = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown))
    capitals = any(
        any(map(str.isupper, word)) for word, kind in zip(words, types, strict=True) if kind == 1 and "[" not in word
    )
    rust.normalizer = normalizers.BertNormalizer(lowercase=not capitals)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return rust


def _bert_piece(word: str, kind: int) -> str:
    if kind != NORMAL or (word.startswith("[") and word.endswith("]")):
        return word
    return word[1:] if word.startswith(SPACE) else f"##{word}"


def _add(rust: tokenizers.Tokenizer, words: Sequence[str], types: Sequence[int]) -> None:
    """Pieces that are cut out of a text before all else; those of control are special."""
    from tokenizers import AddedToken

    for kind, add in ((CONTROL, rust.add_special_tokens), (USER_DEFINED, rust.add_tokens)):
        found = [word for word, each in zip(words, types, strict=False) if each == kind and word]
        add([AddedToken(word, normalized=False, special=kind == CONTROL) for word in found])


def _frame(rust: tokenizers.Tokenizer, file: GgufFile, words: Sequence[str], *, always: bool) -> None:
    """What stands before and after every text."""
    from tokenizers import processors

    first, last = _wanted(file, words, "bos", always), _wanted(file, words, "eos", always)
    if always:
        last = _named(file, words, "seperator_token_id") or _named(file, words, "separator_token_id") or last
        first = _named(file, words, "cls_token_id") or first
    if first or last:
        around = " ".join(part for part in (first, "$A", last) if part)
        second = " ".join(part for part in ("$B:1", last and f"{last}:1") if part)
        places = [(word, rust.token_to_id(word)) for word in dict.fromkeys((first, last)) if word]
        rust.post_processor = processors.TemplateProcessing(
            single=around, pair=f"{around} {second}", special_tokens=places
        )


def _wanted(file: GgufFile, words: Sequence[str], end: str, always: bool) -> str:  # noqa: FBT001
    """The piece at an end of every text; "" for none. SentencePiece begins texts unless the file says otherwise."""
    usual = always or (end == "bos" and file.metadata.get(f"{KEY}model") == "llama")
    return _named(file, words, f"{end}_token_id") if file.metadata.get(f"{KEY}add_{end}_token", usual) else ""


_MODELS: Mapping[str, Callable[[GgufFile, Any], tokenizers.Tokenizer]] = {
    "gpt2": _byte_pairs,
    "llama": _sentence_pairs,
    "t5": _unigram,
    "bert": _word_pieces,
}
"""What llama.cpp calls the kinds of tokenizers."""
