"""Tokenizers from files: what other programs give for the same text, places, cuts, readings, and broken files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import reconfigured
from refusing import refuses

from tui_transformer.errors import InputError
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.display import byte_codes
from tui_transformer.text.encoding import Tokenizer
from tui_transformer.text.known_words import sample_sentence

REFERENCES = Path(__file__).parents[1] / "references"
FAMILIES = ["bart", "bert", "distilbert", "gpt2", "gpt_neox", "llama", "marian", "qwen2", "qwen3", "roberta", "t5"]
EMOJI = "wave 😊 wave"


def byte_letters(text: str) -> list[str]:
    letters = {byte: letter for letter, byte in byte_codes().items()}
    return [letters[byte] for byte in text.encode()]


def saved(path: Path, rust: Any) -> Path:
    path.write_text(rust.to_str(), encoding="utf-8")
    return path


@pytest.fixture
def byte_level(tmp_path) -> Path:
    """Byte-level BPE with a frame, as RoBERTa has it: all bytes, three merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    words = ["<s>", "<pad>", "</s>", *sorted(byte_codes()), "wa", "ve", "wave"]
    merges = [("w", "a"), ("v", "e"), ("wa", "ve")]
    rust = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges))
    rust.add_special_tokens(["<s>", "<pad>", "</s>"])
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    frame = [("<s>", 0), ("</s>", 2)]
    rust.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=frame)
    return saved(tmp_path / "tokenizer.json", rust)


@pytest.fixture
def unigram(tmp_path) -> Path:
    """SentencePiece's unigrams, with an end token, as T5 and Marian have them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁the", -1.0), ("wave", -1.0), ("s", -2.0)]
    rust = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    rust.add_special_tokens(["<pad>", "</s>", "<unk>"])
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    rust.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    rust.enable_truncation(3)
    rust.enable_padding(length=12)
    return saved(tmp_path / "tokenizer.json", rust)


@pytest.fixture
def word_pieces(tmp_path) -> Path:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "wave", "##s", "!"]
    rust = Tokenizer(models.WordPiece(vocab={word: i for i, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    rust.add_special_tokens(words[:4])
    rust.normalizer, rust.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    rust.decoder, rust.post_processor = decoders.WordPiece(), processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return saved(tmp_path / "tokenizer.json", rust)


def opened(path: Path) -> Tokenizer:
    return tokenizer_for(load_vocabulary(path))


def rows(tokenizer: Tokenizer, text: str, **options: Any) -> list[tuple[int, str, int, int, bool, bool]]:
    return [(t.id, t.text, t.start, t.end, t.unknown, t.special) for t in tokenizer.encode(text, **options).tokens]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_tokenizer_gives_the_same_ids_as_elsewhere(family):
    with np.load(REFERENCES / family / "expected.npz") as expected:
        text, ids = expected["text"].tobytes().decode(), expected["input_ids"].tolist()
    tokenizer = opened(REFERENCES / family / "tokenizer.json")
    encoding = tokenizer.encode(text)
    assert list(encoding.ids) == ids
    ends = [token.end for token in encoding.tokens if not token.special]
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    own = [token.id for token in encoding.tokens if not token.special]
    assert tokenizer.decode(own).lower() == text.lower()


def test_word_pieces_have_places_in_the_text(word_pieces):
    tokenizer = opened(word_pieces)
    assert rows(tokenizer, "The waves zzz!") == [
        (2, "[CLS]", 0, 0, False, True),
        (4, "the", 0, 3, False, False),
        (5, "wave", 4, 8, False, False),
        (6, "##s", 8, 9, False, False),
        (1, "zzz", 10, 13, True, False),
        (7, "!", 13, 14, False, False),
        (3, "[SEP]", 14, 14, False, True),
    ]
    # special ones that are written, and a lone surrogate
    assert rows(tokenizer, "wave [SEP]")[2] == (3, "[SEP]", 5, 10, False, True)
    assert rows(tokenizer, "the \ud83d wave")[-2][:4] == (5, "wave", 6, 10)


def test_unigrams_ignore_the_truncation_and_padding_of_the_file(unigram):
    pieces = rows(opened(unigram), "the waves ж")
    assert [row[1] for row in pieces] == ["▁the", "▁", "wave", "s", "▁", "ж", "</s>"]
    assert pieces[-2:] == [(2, "ж", 10, 11, True, False), (1, "</s>", 11, 11, False, True)]


def test_what_training_drops_of_the_merges_is_not_dropped_here(byte_level):
    before = opened(byte_level).encode("wave").ids
    file = json.loads(byte_level.read_text())
    file["model"]["dropout"] = 1.0
    byte_level.write_text(json.dumps(file))
    assert opened(byte_level).encode("wave").ids == before


def test_the_bytes_of_an_emoji_share_its_place(byte_level):
    tokenizer = opened(byte_level)
    pieces = rows(tokenizer, EMOJI)
    assert [row[1] for row in pieces] == ["<s>", "wave", *byte_letters(" 😊 "), "wave", "</s>"]
    assert {row[2:4] for row in pieces[3:7]} == {(5, 6)}
    assert tokenizer.decode([row[0] for row in pieces]) == f"<s>{EMOJI}</s>"


@pytest.mark.parametrize("fixture", ["word_pieces", "unigram", "byte_level"])
def test_a_cut_text_keeps_what_is_added(fixture, request):
    tokenizer = opened(request.getfixturevalue(fixture))
    whole = tokenizer.encode("the wave waves the wave")
    limit = len(whole.tokens) - 2
    encoding = tokenizer.encode("the wave waves the wave", max_tokens=limit, cut=True)
    assert encoding.cut == 2
    assert encoding.ids == (*whole.ids[: limit - 1], whole.ids[-1])
    assert encoding.tokens[-1].special
    with pytest.raises(InputError, match=rf"{len(whole.tokens)} tokens, the limit is {limit}: use a shorter one"):
        tokenizer.encode("the wave waves the wave", max_tokens=limit)


def test_what_is_too_long_and_an_unknown_id_are_refused(word_pieces):
    tokenizer = opened(word_pieces)
    refuses("4 tokens, the limit is 1", lambda: tokenizer.encode("the wave", max_tokens=1, cut=True))
    refuses("characters, the limit is", lambda: tokenizer.encode("a" * 1_000_001))
    refuses(r"ID 8 is not in the vocabulary tokenizer\.json: use 0 to 7", lambda: tokenizer.decode([4, 8]))


def test_the_vocabulary_is_in_order_of_id(word_pieces):
    words = load_vocabulary(word_pieces)
    assert words.words == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "wave", "##s", "!")
    assert (words.kind, words.unknown_id, words.pad_id, words.special_ids) == ("pieces", 1, 0, frozenset(range(4)))
    assert words.search("WAVE") == (5,)
    assert [words.reading(i) for i in (2, 4, 6)] == ["[CLS]", "the", "s, inside a word"]
    # tokens that were added past the table need no rows
    from tokenizers import Tokenizer as Rust

    whole, rust = word_pieces.read_text(), Rust.from_file(str(word_pieces))
    rust.add_tokens(["extra"])
    words = load_vocabulary(saved(word_pieces, rust))
    assert (words.size, words.rows) == (9, 8)
    # an ID without a piece has no word
    raw = json.loads(whole)
    raw["model"]["vocab"]["far"] = 11
    word_pieces.write_text(json.dumps(raw))
    words = load_vocabulary(word_pieces)
    assert words.words[7:] == ("!", "", "", "", "far")
    assert opened(word_pieces).encode("far").ids == (2, 11, 3)


@pytest.mark.parametrize(
    ("fixture", "style"), [("word_pieces", "word pieces"), ("unigram", "marked spaces"), ("byte_level", "bytes")]
)
def test_the_way_of_writing_pieces_is_found_and_what_is_saved_is_the_same(fixture, style, request, tmp_path):
    path = request.getfixturevalue(fixture)
    words = load_vocabulary(path)
    assert words.style == style
    assert style != "bytes" or sample_sentence(words).startswith("The waves")
    name, text = words.file()
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / name).write_text(text, encoding="utf-8")
    assert rows(opened(tmp_path / "again" / name), "the waves ж") == rows(opened(path), "the waves ж")


# Two files


@pytest.fixture
def two_files(byte_level, tmp_path) -> Path:
    """The same tokenizer as vocab.json and merges.txt."""
    model = json.loads(byte_level.read_text())["model"]
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
    return folder / "vocab.json"


@pytest.mark.parametrize("named", [None, "RobertaTokenizer", "BartTokenizerFast"])
def test_two_files_are_the_same_as_one(two_files, byte_level, named):
    if named:
        two_files.with_name("tokenizer_config.json").write_text(json.dumps({"tokenizer_class": named}))
    assert rows(opened(two_files), EMOJI) == rows(opened(byte_level), EMOJI)
    # GPT-2 puts nothing around a text
    options = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}
    two_files.with_name("tokenizer_config.json").write_text(json.dumps(options))
    assert [row[1] for row in rows(opened(two_files), "wave")] == ["Ġ", "wave"]


TWO_FILES = {
    "another class": ("tokenizer_config.json", '{"tokenizer_class": "Qwen2Tokenizer"}', "a tokenizer.json is needed"),
    "broken options": ("tokenizer_config.json", "{", "tokenizer_config.json: not JSON"),
    "a list": ("vocab.json", "[1]", "vocab.json: not a JSON object"),
    "no IDs": ("vocab.json", '{"a": "b"}', "vocab.json is no table of pieces and IDs"),
    "huge ID": ("vocab.json", '{"a": 4000000000}', "vocab.json is no table of pieces and IDs"),
    "not JSON": ("vocab.json", "[" * 100_000, "vocab.json: not JSON"),
    "three pieces": ("merges.txt", "a b c\n", "merges.txt has the line 'a b c': a merge is two pieces"),
    "unknown pieces": ("merges.txt", "zz yy\n", "vocab.json and merges.txt do not fit each other"),
    "binary": ("merges.txt", "a\0b", "merges.txt is binary"),
    "no merges": ("merges.txt", None, "vocab.json is no tokenizer that can be read"),
}


@pytest.mark.parametrize(("name", "content", "says"), TWO_FILES.values(), ids=TWO_FILES)
def test_two_broken_files_are_refused(two_files, name, content, says):
    if content is None:
        two_files.with_name(name).unlink()
    else:
        two_files.with_name(name).write_text(content)
    assert says in refusal(two_files)


# Broken files


def refusal(path: Path) -> str:
    text = refuses("", lambda: opened(path))
    assert len(text) < 400 + 2 * len(str(path))
    return text


BROKEN = {
    "empty": "",
    "an object": "{}",
    "a list": "[]",
    "cut": '{"version": "1.0", "model": {"type": "BPE", "vo',
    "deep": "[" * 100_000,
    "another version": '{"version": "9.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}',
    "unknown merge": '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}',
    "unknown model": '{"version": "1.0", "model": {"type": "Magic"}}',
}


def test_a_broken_file_is_refused_and_a_missing_one_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    assert "tokenizer.json does not exist" in refusal(path)
    for content in BROKEN.values():
        path.write_text(content)
        assert "tokenizer.json is no tokenizer that can be read (" in refusal(path)


def test_no_vocabulary_and_a_huge_id_are_refused(word_pieces):
    model = json.loads(word_pieces.read_text())["model"]
    huge = reconfigured(word_pieces, model=model | {"vocab": {"[UNK]": 0, "a": 4_000_000_000}}, added_tokens=[])
    assert "has IDs up to 4,000,000,000" in refusal(huge)
    assert "has IDs up to -1" in refusal(reconfigured(word_pieces, model=model | {"vocab": {}}))


def test_added_tokens_that_are_not_there_are_refused(unigram):
    processor = json.loads(unigram.read_text())["post_processor"]
    assert "adds '</s>' to every text and does not say" in refusal(
        reconfigured(unigram, post_processor=processor | {"special_tokens": {}})
    )
    outside = {"</s>": {"id": "</s>", "ids": [99], "tokens": ["</s>"]}}
    assert "adds token 99 to every text, and its IDs go up to 6" in refusal(
        reconfigured(unigram, post_processor=processor | {"special_tokens": outside})
    )


IMPORTS = """
import sys
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.vocabulary import parse_vocabulary
tokenizer_for(parse_vocabulary('a', 'a')).encode('a')
tokenizer = tokenizer_for(parse_vocabulary('[UNK]\\na\\n##b', 'a'))
assert 'tokenizers' not in sys.modules
tokenizer.encode('a')
assert 'tokenizers' in sys.modules
load_vocabulary(sys.argv[1])
assert 'huggingface_hub' not in sys.modules
"""


def test_the_library_is_imported_only_when_it_is_used(word_pieces):
    subprocess.run([sys.executable, "-c", IMPORTS, str(word_pieces)], check=True)


def test_spaces_alone_have_a_place_where_the_file_trims_them_and_none_where_one_is_added(byte_level):
    from tokenizers import Tokenizer, pre_tokenizers, processors

    rust = Tokenizer.from_file(str(byte_level))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    rust.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    tokenizer = opened(saved(byte_level, rust))
    places = [row[1:4] for row in rows(tokenizer, "wave  a")]
    assert places[1:] == [("Ġ", 0, 0), ("wave", 0, 4), ("Ġ", 4, 5), ("Ġ", 5, 6), ("a", 6, 7), ("</s>", 7, 7)]
    pieces = [(each.sentence, each.start, each.end) for each in tokenizer.pair("wave", "a  a")]
    assert pieces[-5:-1] == [(1, 0, 1), (1, 1, 2), (1, 2, 3), (1, 3, 4)]


def test_the_sign_for_the_end_of_a_word_is_no_bytes(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: i for i, word in enumerate([*sorted(byte_codes()), "wave</w>", "©</w>"])}
    rust = Tokenizer(models.BPE(vocab=words, merges=[], end_of_word_suffix="</w>"))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary = load_vocabulary(saved(tmp_path / "tokenizer.json", rust))
    assert vocabulary.reading(words["wave</w>"]) == "wave, at the end of a word"
    assert vocabulary.reading(words["©</w>"]) == "byte A9, at the end of a word"
