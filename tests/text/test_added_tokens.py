"""`added_tokens.json` and `special_tokens_map.json` beside `vocab.txt`, or `vocab.json` and `merges.txt`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui_transformer.errors import InputError
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "wave", "##s", "!"]
BYTES = {piece: i for i, piece in enumerate(["<s>", "</s>", "<unk>", "w", "a", "v", "e", "wa", "ve", "wave", "Ġ"])}
MERGES = "#version: 0.2\nw a\nv e\nwa ve\n"


def write(folder: Path, name: str, content: object) -> None:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def word_pieces(tmp_path: Path) -> Path:
    write(tmp_path, "vocab.txt", "\n".join(WORDS))
    return tmp_path / "vocab.txt"


@pytest.fixture
def byte_pairs(tmp_path: Path) -> Path:
    write(tmp_path, "vocab.json", BYTES)
    write(tmp_path, "merges.txt", MERGES)
    return tmp_path / "vocab.json"


def tokens(path: Path, text: str) -> str:
    """The tokens with their IDs, special ones with a star."""
    cut = tokenizer_for(load_vocabulary(path)).encode(text).tokens
    return " ".join(f"{token.id}:{token.text}{'*' * token.special}" for token in cut)


def test_added_word_pieces_have_the_ids_of_the_file_and_are_cut_whole(word_pieces: Path) -> None:
    write(word_pieces.parent, "added_tokens.json", {"<b>": 9, "<a>": 8})
    assert tokens(word_pieces, "the <b> waves") == "2:[CLS]* 4:the 9:<b> 5:wave 6:##s 3:[SEP]*"
    words = load_vocabulary(word_pieces)
    assert (words.words[8:], words.rows, words.pad_id, words.unknown_id) == (("<a>", "<b>"), 8, 0, 1)
    assert words.reading(6) == "s, inside a word"


def test_special_word_pieces_can_have_other_names(word_pieces: Path) -> None:
    roles = {
        "cls_token": {"content": "<s>", "lstrip": False},
        "sep_token": "</s>",
        "additional_special_tokens": ["<x>"],
    }
    write(word_pieces.parent, "special_tokens_map.json", roles)
    write(word_pieces.parent, "added_tokens.json", {"<s>": 8, "</s>": 9, "<x>": 10})
    assert tokens(word_pieces, "The<x>zz") == "8:<s>* 4:the 10:<x>* 1:zz 9:</s>*"


def test_word_pieces_alone_are_cut_as_with_a_map_that_adds_nothing(word_pieces: Path) -> None:
    before = tokens(word_pieces, "The waves [SEP] zz!")
    names = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[M]"}
    write(word_pieces.parent, "special_tokens_map.json", {f"{role}_token": name for role, name in names.items()})
    assert tokens(word_pieces, "The waves [SEP] zz!") == before


def test_added_byte_pairs_are_cut_whole(byte_pairs: Path) -> None:
    write(byte_pairs.parent, "added_tokens.json", {"<tool>": 11})
    write(byte_pairs.parent, "special_tokens_map.json", {"additional_special_tokens": ["<tool>"]})
    assert tokens(byte_pairs, "wave<tool>") == "0:<s>* 9:wave 11:<tool>* 1:</s>*"


def test_the_frame_of_byte_pairs_can_have_other_names(byte_pairs: Path) -> None:
    write(byte_pairs.parent, "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer"})
    write(byte_pairs.parent, "added_tokens.json", {"[A]": 11, "[B]": 12})
    write(byte_pairs.parent, "special_tokens_map.json", {"cls_token": "[A]", "sep_token": "[B]"})
    assert tokens(byte_pairs, "wave") == "11:[A]* 9:wave 12:[B]*"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("added_tokens.json", {"<a>": 12}, "gives '<a>' the ID 12, which is not the next"),
        ("added_tokens.json", {"<a>": "8"}, "is no table of pieces and IDs"),
        ("added_tokens.json", "[", "not JSON"),
        ("special_tokens_map.json", {"cls_token": 3}, "has the token '3'"),
        ("special_tokens_map.json", {"additional_special_tokens": "x"}, "is no list"),
        ("special_tokens_map.json", {"unk_token": "<unk>"}, "has no <unk>, which stands for what is unknown"),
    ],
)
def test_files_that_cannot_be_used_are_one_line(word_pieces: Path, name: str, content: object, problem: str) -> None:
    write(word_pieces.parent, name, content)
    with pytest.raises(InputError) as refused:
        load_vocabulary(word_pieces)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)
