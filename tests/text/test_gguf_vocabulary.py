"""Vocabularies of GGUF files cut texts as the tokenizers do that they were made from."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from tui_transformer.errors import InputError
from tui_transformer.gguf_file import GgufFile
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.gguf_vocabulary import KEY, load_gguf_vocabulary

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


def sentence_pieces(kind: str, size: int):
    library = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 3),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        byte_fallback=kind == "bpe",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    return library.SentencePieceProcessor(model_proto=model.getvalue())


def entries_of(pieces) -> dict[str, Any]:
    """What llama.cpp's converter says of a SentencePiece model."""
    count = range(pieces.get_piece_size())
    types = [2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1 for i in count]
    return {
        "scores": [pieces.get_score(i) for i in count],
        "token_type": types,
        "unknown_token_id": pieces.unk_id(),
        "add_bos_token": False,
    }


@pytest.mark.parametrize(("kind", "name", "size"), [("bpe", "llama", 340), ("unigram", "t5", 50)])
def test_sentence_pieces_are_those_of_the_library(kind, name, size):
    pieces = sentence_pieces(kind, size)
    tokens = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of(name, tokens, **entries_of(pieces))))
    for text in TEXTS:
        assert [token.id for token in tokenizer.encode(text).tokens] == pieces.encode(text), text


def test_sentence_pieces_begin_with_the_beginning_unless_the_file_says_otherwise():
    pieces = sentence_pieces("bpe", 340)
    tokens = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    entries = {key: value for key, value in entries_of(pieces).items() if key != "add_bos_token"}
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("llama", tokens, bos_token_id=1, **entries)))
    assert tokenizer.encode("the cat").tokens[0].id == 1


def test_word_pieces_are_those_of_bert():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "s", "##a", "##t", "map", "##s", ",", "'"]
    marked = [word if word[0] == "[" else word[2:] if word.startswith("##") else f"▁{word}" for word in words]
    types = [3 if word[0] == "[" else 1 for word in words]
    ids = {"cls_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1}
    tokenizer = tokenizer_for(load_gguf_vocabulary(file_of("bert", marked, token_type=types, **ids)))
    found = [words[token.id] for token in tokenizer.encode("The cats sat, SAT xyz").tokens]
    assert found == ["[CLS]", "the", "cat", "##s", "sat", ",", "sat", "[UNK]", "[SEP]"]


@pytest.mark.parametrize(
    ("pre", "wanted"),
    [
        ("gpt-2", ["in", "Ġ2001", "'s"]),
        ("smollm", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
        ("llama-bpe", ["in", "Ġ", "200", "1", "'s"]),
        ("qwen2", ["in", "Ġ", "2", "0", "0", "1", "'s"]),
    ],
)
def test_byte_pairs_are_merged_inside_what_the_pre_tokenizer_leaves_together(pre, wanted):
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
    with pytest.raises(InputError, match=named) as caught:
        load_gguf_vocabulary(file)
    assert "\n" not in str(caught.value)


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
