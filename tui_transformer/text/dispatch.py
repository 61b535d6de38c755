"""Which reader a vocabulary's file needs, and which tokenizer a vocabulary is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import expanded, is_there, may_open, meant
from tui_transformer.gguf_file import is_gguf
from tui_transformer.text.display import visible
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.files import read_text
from tui_transformer.text.json_files import ADDED, OPTIONS, SPECIAL_MAP
from tui_transformer.text.sentence_pieces import SentencePieceTokenizer, load_sentence_pieces
from tui_transformer.text.tokenizer_files import (
    PieceTokenizer,
    WordPieceTokenizer,
    byte_pairs,
    load_tokenizer_file,
    word_pieces,
)
from tui_transformer.text.vocabulary import (
    Kind,
    Vocabulary,
    built_in_vocabularies,
    built_in_vocabulary,
    parse_vocabulary,
)
from tui_transformer.text.vocabulary_rules import normal_form
from tui_transformer.text.word_tokenizers import CharacterTokenizer, WordTokenizer

_TOKENIZERS: Mapping[Kind, Callable[[Any], Tokenizer]] = {
    "words": WordTokenizer,
    "characters": CharacterTokenizer,
    "wordpiece": WordPieceTokenizer,
    "pieces": PieceTokenizer,
    "sentencepiece": SentencePieceTokenizer,
}


def tokenizer_for(vocabulary: Vocabulary) -> Tokenizer:
    """Make the tokenizer that a vocabulary is for."""
    return _TOKENIZERS[vocabulary.kind](vocabulary)


def target_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer of the text of a decoder beside an encoder: the same, or Marian's second model."""
    target: Tokenizer = getattr(tokenizer, "target", tokenizer)
    return target


def load_vocabulary(where: str | Path) -> Vocabulary:
    """Open a vocabulary by its built-in name, or by the path of a file: a list, a `tokenizer.json` or a `vocab.json`.

    A built-in name comes before a file of that name in the current folder; `./NAME` is the file.

    Raises:
        InputError: If there is no such vocabulary, or its file cannot be used.
    """
    if isinstance(where, str):
        names, refused = built_in_vocabularies(), bool(meant(where).suffix) and not may_open(meant(where))
        if where in names:
            return built_in_vocabulary(where)
        if not where or (Path(where).name == where and not is_there(meant(where)) and not refused):
            from difflib import get_close_matches

            close = get_close_matches(normal_form(where[:80]), names, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise InputError(
                f"no vocabulary is called “{visible(where[:80])}”{hint}: use {', '.join(names)}, or the path of a file"
            )
    path = expanded(Path(where))
    if is_gguf(path):
        from tui_transformer.gguf_file import read_gguf
        from tui_transformer.text.gguf_vocabulary import load_gguf_vocabulary

        return load_gguf_vocabulary(read_gguf(path))
    if path.suffix in (".spm", ".model"):
        return load_sentence_pieces(path)
    if path.suffix == ".json":
        merges = path.with_name("merges.txt")
        has_merges = path.name == "vocab.json" and merges.exists()
        return byte_pairs(path, merges) if has_merges else load_tokenizer_file(path)
    words = parse_vocabulary(read_text(path), path.name, path)
    more = any(path.with_name(name).exists() for name in (ADDED, SPECIAL_MAP, OPTIONS))
    return word_pieces(path, words) if more and words.kind == "wordpiece" and path.name == "vocab.txt" else words
