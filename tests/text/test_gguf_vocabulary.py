"""Vocabularies of GGUF files cut texts as the tokenizers do that they were made from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses
from tokenizers.pre_tokenizers import ByteLevel

from tui_transformer.gguf_file import GgufFile
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.gguf_pre_tokenizers import PRE_TOKENIZERS
from tui_transformer.text.gguf_vocabulary import KEY, has_vocabulary, load_gguf_vocabulary

LINES = [
    "the cat sat on the mat and the dog sat on the log",
    "a small model has a small vocabulary of small words",
    "where did the old sailor hide the map, and who knows?",
    "in 1984 he had 42 boats; in 2001 he had none",
]
TEXTS = [*LINES, "the catalogue of 19 maps", "  two  spaces ", "Äpfel and 猫", "word's end"]


def file_of(kind: str, tokens: list[str], **entries: Any) -> GgufFile:
    metadata = {"model": kind, "tokens": tokens} | entries
    return GgufFile(Path("words.gguf"), {KEY + key: value for key, value in metadata.items()}, {}, 0)


def entries_of(pieces) -> dict[str, Any]:
    """The entries that llama.cpp's converter writes for a SentencePiece model."""
    count = range(pieces.get_piece_size())
    types = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in count]
    return {
        "scores": [pieces.get_score(i) for i in count],
        "token_type": types,
        "unknown_token_id": pieces.unk_id(),
        "add_bos_token": False,
        "add_eos_token": False,
    }


@pytest.mark.parametrize(("kind", "name", "size"), [("bpe", "llama", 340), ("unigram", "t5", 50)])
def test_sentence_pieces_are_those_of_the_library(kind, name, size, train):
    ways = {"model_type": kind, "byte_fallback": kind == "bpe", "remove_extra_whitespaces": False}
    model = train(LINES * 3, vocab_size=size, normalization_rule_name="identity", **ways)
    pieces = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=model)
    tokens = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    entries = entries_of(pieces)
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of(name, tokens, **entries)))
    for text in TEXTS:
        assert [token.id for token in tokenizer.encode(text).tokens] == pieces.encode(text), text
    if name == "llama":  # they begin with the beginning unless the file says otherwise
        del entries["add_bos_token"]
        tokenizer = tokenizer_for(load_gguf_vocabulary(file_of(name, tokens, bos_token_id=1, **entries)))
        assert tokenizer.encode("the cat").tokens[0].id == 1


def test_a_kind_that_is_a_list_is_refused():
    file = GgufFile(Path("words.gguf"), {f"{KEY}model": np.array([1, 2], np.uint32)}, {}, 0)
    assert has_vocabulary(file)
    refuses(r"has a tokenizer '\[1 2\]', which is not read", lambda: load_gguf_vocabulary(file))


def test_what_is_unknown_has_the_usual_id_unless_the_file_says_another():
    types = {"token_type": [2, 3, 3, 1], "scores": [0.0] * 4}
    for entries, unknown in (({}, 0), ({"unknown_token_id": 2}, 2)):
        words = load_gguf_vocabulary(file_of("llama", ["<unk>", "<s>", "</s>", "a"], **types, **entries))
        assert words.unknown_id == unknown


def test_word_pieces_are_those_of_bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "s", "##a", "##t", "map", "##s", ",", "'"]
    marked = [word if word[0] == "[" else word[2:] if word.startswith("##") else f"▁{word}" for word in words]
    types = [3 if word[0] == "[" else 1 for word in words]
    ids = {"cls_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1}
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("bert", marked, token_type=types, **ids)))
    words_of_text = [words[token.id] for token in tokenizer.encode("The cats sat, SAT xyz").tokens]
    assert words_of_text == ["[CLS]", "the", "cat", "##s", "sat", ",", "sat", "[UNK]", "[SEP]"]


BEGIN = {"tekken", "llama-bpe", "gemma4"}


def test_a_text_begins_with_the_beginning_as_its_pre_tokenizer_has_it_unless_the_file_says_otherwise():
    def first(**said: Any) -> int:
        file = file_of("gpt2", ["a", "<s>"], merges=[], token_type=[1, 3], bos_token_id=1, **said)
        return tokenizer_for(load_gguf_vocabulary(file)).encode("a").tokens[0].id

    for pre in sorted(BEGIN | {"gpt-2", "qwen2", "gpt-4o", "deepseek-v3", "default"}):
        assert first(pre=pre) == (1 if pre in BEGIN else 0)
        assert first(pre=pre, add_bos_token=True) == 1
        assert first(pre=pre, add_bos_token=False) == 0


def test_byte_pairs_are_merged_inside_what_the_pre_tokenizer_leaves_together():
    for pre, wanted in (
        ("gpt-2", ["in", "Ġ2001", "'s"]),
        ("smollm", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
        ("llama-bpe", ["in", "Ġ", "200", "1", "'s"]),
        ("qwen2", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
        ("deepseek-llm", ["in", "Ġ", "2001", "'", "s"]),
        ("deepseek-v3", ["in", "Ġ", "200", "1", "'s"]),
        ("tiny_aya", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
        ("tekken", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
        ("gpt-4o", ["in", "Ġ", "200", "1", "'s"]),
        ("default", ["in", "Ġ", "200", "1", "'", "s"]),
        ("", ["in", "Ġ", "200", "1", "'", "s"]),
    ):
        tokens = [*"in2013's", "Ġ", "in", "'s", "20", "200", "2001", "Ġ2001"]
        merges = ["i n", "' s", "2 0", "20 0", "200 1", "Ġ 2001"]
        tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("gpt2", tokens, pre=pre, merges=merges)))
        assert [token.text for token in tokenizer.encode("in 2001's").tokens] == wanted


@pytest.mark.parametrize(
    ("file", "named"),
    [
        (file_of("rwkv", ["a"]), "rwkv"),
        (GgufFile(Path("words.gguf"), {}, {}, 0), "no vocabulary"),
        (file_of("gpt2", ["a"], pre="unheard-of"), "unheard-of"),
        (file_of("gpt2", ["a"], pre="gpt-2", merges=["a b"]), "words.gguf"),
        (file_of("gpt2", []), "no list of tokens"),
        (file_of("t5", ["a", "b"], scores=[0.0]), "words.gguf"),
        (file_of("llama", ["a", "b"]), "words.gguf"),
    ],
)
def test_a_vocabulary_that_cannot_be_read_is_refused_in_one_line(file, named):
    refuses(named, lambda: load_gguf_vocabulary(file))


def test_a_file_with_a_vocabulary_alone_is_read_by_its_path(tmp_path):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "only-words.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*"abc", "ab"])
    writer.add_token_merges(["a b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    words = load_vocabulary(tmp_path / "only-words.gguf")
    assert [token.text for token in tokenizer_for(words).encode("abc").tokens] == ["ab", "c"]


def test_every_pre_tokenizer_leaves_all_of_a_text():
    for name, cuts in PRE_TOKENIZERS.items():
        file = file_of("gpt2", sorted(ByteLevel.alphabet()), pre=name, merges=[])
        tokenizer = tokenizer_for(load_gguf_vocabulary(file))
        for text in ("It's 12345 camelCase, y'all!\n\n  Ünï 日本語 x ", " \t\r\n", "１２ ǅ ℵ ́", ""):
            assert cuts.marked or tokenizer.decode(tokenizer.encode(text).ids) == text, name


def test_what_stands_around_a_text_is_what_the_file_and_the_pre_tokenizer_say():
    for pre, entries, framed in (
        ("gpt-2", {}, ["a"]),
        ("llama-bpe", {}, ["<s>", "a"]),
        ("tekken", {"add_bos_token": False}, ["a"]),
        ("gpt-2", {"add_bos_token": True, "add_eos_token": True}, ["<s>", "a", "</s>"]),
        ("roberta-bpe", {"add_bos_token": True, "add_sep_token": True}, ["<s>", "a", "<sep>"]),
    ):
        tokens = ["a", "<s>", "</s>", "<sep>"]
        ids = {"bos_token_id": 1, "eos_token_id": 2, "seperator_token_id": 3, "token_type": [1, 3, 3, 3], "merges": []}
        tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("gpt2", tokens, pre=pre, **ids, **entries)))
        assert [token.text for token in tokenizer.encode("a").tokens] == framed


def test_capitals_are_kept_and_spaces_taken_together_where_the_file_says_so():
    tokens = ["[UNK]", "▁The", "▁the"]
    for entries, wanted in (({}, 2), ({"normalizer.lowercase": False}, 1)):
        tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("bert", tokens, unknown_token_id=0, **entries)))
        assert tokenizer.encode("The").ids == (wanted,)
    pieces = ["<unk>", "▁", "a", "▁a"]
    entries = {"scores": [0.0, -3.0, -3.0, -1.0], "unknown_token_id": 0, "add_eos_token": False}
    for more, wanted in ((False, (1, 1, 3, 1, 3)), (True, (3, 3))):
        file = file_of("t5", pieces, remove_extra_whitespaces=more, **entries)
        assert tokenizer_for(load_gguf_vocabulary(file)).encode("  a  a").ids == wanted


def test_a_mask_takes_the_space_before_it_and_marks_of_phi_3_those_behind_them():
    ids = {"token_type": [1, 1, 3], "merges": []}
    for pre, mask, wanted in (
        ("modern-bert", "[MASK]", (0, 2)),
        ("jina-v2-de", "<mask>", (0, 2)),
        ("gpt-2", "[MASK]", (0, 1, 2)),
    ):
        tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("gpt2", ["a", "Ġ", mask], pre=pre, **ids)))
        assert tokenizer.encode(f"a {mask}").ids == wanted
    tokens = ["<unk>", "▁", "▁a", "\n", "<|user|>", "<|endoftext|>", "a"]
    said = {"token_type": [2, 1, 1, 1, 3, 3, 1], "scores": [0.0] * 7, "add_bos_token": False}
    for name, mark, wanted in (
        ("Phi3", "<|user|>", (4, 2)),
        ("Phi 3 Mini 4k Instruct", "<|user|>", (4, 2)),
        ("Phi3", "<|endoftext|>", (5, 1, 3, 6)),
        ("other", "<|user|>", (4, 1, 3, 6)),
    ):
        file = file_of("llama", tokens, **said)
        named = GgufFile(file.path, {**file.metadata, "general.name": name}, {}, 0)
        assert tokenizer_for(load_gguf_vocabulary(named)).encode(f"{mark}\na").ids == wanted


def test_a_long_run_of_spaces_is_cut_into_the_longest_pieces_of_spaces():
    runs = ["▁" * count for count in range(1, 32)]
    said = {"token_type": [2, 1, 1, *[4] * 30], "scores": [0.0] * 33, "add_bos_token": False, "add_space_prefix": False}
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("llama", ["<unk>", "a", *runs], **said)))
    for count, pieces in ((1, (2,)), (5, (6,)), (31, (32,)), (32, (32, 2)), (70, (32, 32, 9))):
        assert tokenizer.encode("a" + " " * count + "a").ids == (1, *pieces, 1)


MARKER = "\n__ggml_vocab_test__\n"
PUBLISHED = Path(os.environ.get("LLAMA_CPP", "llama.cpp")) / "models"


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.gguf.inp")), ids=lambda path: path.name)
def test_vocabularies_of_llama_cpp_are_cut_as_there(path):
    """With LLAMA_CPP naming a checkout of llama.cpp; without one there is nothing to compare."""
    tokenizer = tokenizer_for(load_vocabulary(path.with_suffix("")))
    lines = path.with_suffix(".out").read_text().split("\n")
    for text, line in zip(path.read_bytes().decode().split(MARKER), lines, strict=False):
        ids = [token.id for token in tokenizer.encode(text).tokens if not (token.special and token.start == token.end)]
        assert ids == [int(each) for each in line.split()], text
