"""Vocabularies, tokenizers and texts in broken files: read, or refused in one line that names a file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, as_json, broken_json, changed, damaged, hold, hold_file, read_or_refused
from hypothesis import strategies as st

from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.text import files, sentence_pieces
from tui_transformer.text.build import build_bpe, build_characters, build_words
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.files import read_lines
from tui_transformer.text.gguf_vocabulary import KEY, load_gguf_vocabulary
from tui_transformer.text.vocabulary import Vocabulary

LINES = ["the waves crashed against the shore", "a strong nation, and its surplus: the 3rd of May"]
TEXT = "the waves don't [UNK] <s> crash\x00 ‘é’ 12"

PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nwave\n##s\n"
LISTS = {
    "words.txt": b"the waves crashed [CLS] shore",
    "vocab.txt": PIECES.encode(),
    "vocabulary.txt": build_characters(LINES).vocabulary.file()[1].encode(),
    "named.txt": b"#!vocabulary words padding=<pad> unknown=<unk> begin=<s> end=</s>\n<pad>\n<unk>\n<s>\n</s>\nthe\n",
}


def use(path: Path, load: Callable[[Path], Vocabulary] = load_vocabulary) -> None:
    """Read a vocabulary; what is read cuts a text and puts it together again."""
    words = load(path)
    assert 0 < words.size <= 2_000_000
    assert words.pad_id is None or 0 <= words.pad_id < words.size
    words.reading(0)
    with contextlib.suppress(InputError):
        encoding = tokenizer_for(words).encode(TEXT)
        assert all(0 <= token.id < words.size for token in encoding.tokens)
        assert all(0 <= token.start <= token.end <= len(TEXT) for token in encoding.tokens)
        tokenizer_for(words).decode(encoding.ids)


@COUNTS
@pytest.mark.parametrize("name", LISTS)
def test_broken_lists(tmp_path, name, count):
    path = tmp_path / name
    hold_file(count, path, st.one_of(damaged(LISTS[name]), st.binary(max_size=200)), lambda: use(path))


BYTE_PAIRS = json.loads(build_bpe(LINES, 300).vocabulary.file()[1])


def _tokenizers() -> dict[str, Any]:
    """Small tokenizers of every kind of model, with every part that a file can have."""
    frame = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    around = {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}}
    added = {"content": "[UNK]", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 1, "special": True} | added],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": frame, "pair": frame, "special_tokens": around},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }
    ids = {word: i for i, word in enumerate(PIECES.split())}
    pieces = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    scores = [[word, -float(i)] for i, word in enumerate(["<unk>", "▁the", "▁", "w", "a", "v", "e", "s"])]
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": False}
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return {
        "word pieces": whole | {"model": pieces | {"max_input_chars_per_word": 100, "vocab": ids}},
        "unigram": whole | {"model": unigram, "pre_tokenizer": space, "decoder": space, "post_processor": None},
        "byte pairs": BYTE_PAIRS,
    }


TOKENIZERS = _tokenizers()


@COUNTS
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_broken_tokenizer_files(tmp_path, kind, count):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(as_json(TOKENIZERS[kind]))
    assert load_vocabulary(path).size
    hold_file(count, path, broken_json(TOKENIZERS[kind]), lambda: use(path))


FOLDER: dict[str, Any] = {
    "vocab.json": BYTE_PAIRS["model"]["vocab"] | {"<s>": 300, "</s>": 301},
    "tokenizer_config.json": {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False},
    "added_tokens.json": {"<extra>": 302, "<more>": 303},
    "special_tokens_map.json": {
        "cls_token": {"content": "<s>", "lstrip": True},
        "additional_special_tokens": ["<more>"],
    },
}
MERGES = "#version: 0.2\n" + "".join(f"{first} {second}\n" for first, second in BYTE_PAIRS["model"]["merges"])


@COUNTS
@pytest.mark.parametrize("broken", [*FOLDER, "merges.txt"])
def test_broken_files_beside_a_vocabulary(tmp_path, broken, count):
    for name, document in FOLDER.items():
        (tmp_path / name).write_bytes(as_json(document))
    (tmp_path / "merges.txt").write_text(MERGES)
    path = tmp_path / "vocab.json"
    assert load_vocabulary(path).size
    data = damaged(MERGES.encode()) if broken == "merges.txt" else changed(FOLDER[broken]).map(as_json)
    hold_file(count, tmp_path / broken, data, lambda: use(path), *map(tmp_path.joinpath, (*FOLDER, "merges.txt")))


@COUNTS
@pytest.mark.parametrize("broken", ["added_tokens.json", "special_tokens_map.json", "tokenizer_config.json"])
def test_broken_files_beside_word_pieces(tmp_path, broken, count):
    path = tmp_path / "vocab.txt"
    path.write_text(PIECES)
    documents: dict[str, Any] = {
        "added_tokens.json": {"<extra>": 7},
        "special_tokens_map.json": {"cls_token": "[CLS]", "unk_token": "[UNK]", "sep_token": {"content": "[SEP]"}},
        "tokenizer_config.json": {"do_lower_case": True},
    }
    for name, document in documents.items():
        (tmp_path / name).write_bytes(as_json(document))
    data = changed(documents[broken]).map(as_json)
    hold_file(count, tmp_path / broken, data, lambda: use(path), path, *map(tmp_path.joinpath, documents))


@COUNTS
@pytest.mark.parametrize("name", ["spiece.model", "tokenizer.model"])
def test_broken_sentence_pieces(tmp_path, name, count, train):
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} if name == "spiece.model" else {}
    path = tmp_path / name

    def read() -> None:
        sentence_pieces.processor.cache_clear()
        use(path)

    hold_file(count, path, damaged(train(LINES * 10, normalization_rule_name="identity", **ids)), read)


def test_what_is_built_is_read_again(tmp_path):
    """The files that the others are made of are whole."""
    name, text = build_words(LINES).vocabulary.file()
    (tmp_path / name).write_text(text)
    assert load_vocabulary(tmp_path / name).size > 10


TYPES = [2, 3, 3, *[1] * 5]
SCORED = {"scores": [-float(i) for i in range(8)], "token_type": TYPES, "unknown_token_id": 0, "bos_token_id": 1}
GGUF: dict[str, dict[str, Any]] = {
    "gpt2": {
        "tokens": ["<u>", "<s>", "</s>", *"abcĠ", "ab"],
        "merges": ["a b"],
        "pre": "llama-bpe",
        "token_type": TYPES,
    },
    "llama": {"tokens": ["<u>", "<s>", "</s>", "▁", *"abc", "▁a"], "add_space_prefix": True} | SCORED,
    "t5": {"tokens": ["<u>", "<s>", "</s>", "▁", *"abc", "▁a"], "remove_extra_whitespaces": True} | SCORED,
    "bert": {"tokens": ["[UNK]", "[CLS]", "[SEP]", "▁the", *"abc", "▁a"], "cls_token_id": 1, "token_type": TYPES},
}


@COUNTS
@pytest.mark.parametrize("kind", GGUF)
def test_broken_vocabularies_of_gguf_files(tmp_path, kind, count):
    path = tmp_path / "words.gguf"

    def check(entries: Any) -> None:
        file = gguf(path, {"model": kind} | (entries if isinstance(entries, dict) else {}))
        read_or_refused(lambda: use(path, lambda _: load_gguf_vocabulary(file)), path)

    hold(count, check, entries=changed(GGUF[kind]))


def gguf(path: Path, entries: dict[str, Any]) -> GgufFile:
    return GgufFile(path, {KEY + key: value for key, value in entries.items()}, {}, 0)


@pytest.mark.parametrize(
    ("kind", "entries", "says"),
    [
        ("llama", {"tokens": [*GGUF["llama"]["tokens"][:-1], "a" * 100_000]}, "a piece has 100,000 characters"),
        ("t5", {"precompiled_charsmap": np.frombuffer(b"\4\0\0\0\xff\xff\xff\x7fa\0", "u1")}, "leads behind its end"),
    ],
)
def test_a_very_long_piece_and_a_broken_table_of_characters_of_a_gguf_file_are_refused(
    tmp_path, kind, entries, says, capfd
):
    with pytest.raises(InputError, match=rf"words\.gguf .*{says}"):
        load_gguf_vocabulary(gguf(tmp_path / "words.gguf", GGUF[kind] | {"model": kind} | entries))
    assert capfd.readouterr().err == ""


CORPUS = "The waves\r\ncrashed — ‘é’ \U0001f60a\n\nagainst the shore, and on and on and on\rof the sea".encode()


@COUNTS
def test_broken_texts(tmp_path, count, monkeypatch):
    path = tmp_path / "text.txt"

    def check(data: bytes, longest: int, chunk: int) -> None:
        path.write_bytes(data)
        monkeypatch.setattr(files, "CHUNK", chunk)
        lines = read_or_refused(lambda: list(read_lines([path], longest=longest)), path)
        if lines is None:
            return
        whole = data.decode().removeprefix("\ufeff")
        assert "".join(lines) == whole.replace("\r\n", "\n")
        assert all(0 < len(line.rstrip("\n")) <= max(longest, chunk) or line == "\n" for line in lines)
        assert not any("\n" in line[:-1] for line in lines)

    texts = st.one_of(damaged(CORPUS), st.text(max_size=60).map(str.encode), st.binary(max_size=20))
    hold(count, check, data=texts, longest=st.integers(1, 50), chunk=st.integers(1, 50))
