"""Vocabularies of several files: SentencePiece models trained here, and tables beside lists of pieces."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import REFERENCES
from refusing import refuses

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.checkpoint import own_vocabulary
from tui_transformer.text import sentence_pieces
from tui_transformer.text.dispatch import load_vocabulary, target_tokenizer, tokenizer_for
from tui_transformer.text.display import token_label
from tui_transformer.text.encoding import encode_pair
from tui_transformer.views.step_view import Labels, view_of

ENGLISH = ["The waves crashed against the shore!", "A strong nation recycles its surplus.", "the shore, the wave"] * 10
SIZE = 30
GERMAN = ["Die Wellen schlugen an das Ufer!", "Ein Hund und ein Kind sind im Haus.", "die Welle, das Ufer"] * 10


@pytest.fixture(scope="module")
def trained(train: Callable[..., bytes]) -> dict[str, bytes]:
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    return {
        "source.spm": train(ENGLISH),
        "target.spm": train(GERMAN),
        "spiece.model": train(ENGLISH, **ids),
        "tokenizer.model": train(ENGLISH, model_type="bpe", byte_fallback=True, vocab_size=300),
    }


def pieces(data: bytes) -> list[str]:
    from sentencepiece import SentencePieceProcessor

    model = SentencePieceProcessor(model_proto=data)
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def own_ids(data: bytes, text: str) -> list[int]:
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=data).encode(text, out_type=int)


@pytest.fixture
def marian(trained: dict[str, bytes], tmp_path: Path) -> Path:
    """A folder as Marian's are: two models, and one table of IDs that are neither's own."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(REFERENCES / "marian" / name, tmp_path / name)
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(trained[name])
    words = dict.fromkeys(word for name in ("target.spm", "source.spm") for word in pieces(trained[name])[3:])
    table = ["<pad>", "</s>", "<unk>", ">>de<<", *words][:81]
    (tmp_path / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(table)}))
    return tmp_path


def test_marian_cuts_by_the_source_model_and_takes_ids_from_the_table(marian: Path, trained: dict[str, bytes]) -> None:
    words = load_vocabulary(marian / "source.spm")
    text = "The waves crashed 😊"
    tokens = tokenizer_for(words).encode(text).tokens
    own = pieces(trained["source.spm"])
    expected = [words.ids.get(own[i], 2) for i in own_ids(trained["source.spm"], text)]
    assert [token.id for token in tokens] == [*expected, words.ids["</s>"]]
    assert [token.text for token in tokens if token.unknown] == ["😊"]
    assert (tokens[-1].special, tokens[-1].start) == (True, len(text))
    assert all(text[t.start : t.end].strip() == t.text.strip("▁") for t in tokens[:-1] if not t.special)
    assert (words.pad_id, words.end_id, words.unknown_id) == (0, 1, 2)


def test_marian_keeps_the_code_of_a_language_whole_and_a_limit(marian: Path) -> None:
    tokenizer = tokenizer_for(load_vocabulary(marian / "source.spm"))
    first, *rest = tokenizer.encode(">>de<< The shore").tokens
    assert (first.id, first.text, first.special) == (3, ">>de<<", True)
    assert [token.id for token in rest] == list(tokenizer.encode("The shore").ids)
    assert tokenizer.encode(">>xx<< The shore").tokens[0].unknown
    # a limit is kept, and the end with it
    whole = tokenizer.encode("The waves crashed")
    short = tokenizer.encode("The waves crashed", max_tokens=4, cut=True)
    assert short.ids == (*whole.ids[:3], whole.ids[-1])
    assert short.cut == len(whole.ids) - 4
    refuses("the limit is 4", lambda: tokenizer.encode("The waves crashed", max_tokens=4))


def test_marian_cuts_what_the_decoder_writes_by_the_target_model(marian: Path, trained: dict[str, bytes]) -> None:
    model = Model.load(marian, device="cpu")
    text = "das Ufer"
    own = pieces(trained["target.spm"])
    expected = [model.vocabulary.ids[own[i]] for i in own_ids(trained["target.spm"], text)]
    assert model.encode_target(text).ids == (model.config.start_id, *expected)
    assert model.encode("the shore").ids != model.encode_target("the shore").ids
    assert model.tokenizer.decode(expected) == text
    # so it does when it was saved
    copy = marian / "copy"
    model.save(copy)
    again = Model.load(copy, device="cpu")
    for text in ("The shore", "das Ufer"):
        assert again.encode(text) == model.encode(text)
        assert again.encode_target(text) == model.encode_target(text)
    assert target_tokenizer(again.tokenizer).vocabulary.words == again.vocabulary.words
    # without its table it is refused
    (marian / "vocab.json").unlink()
    refuses(r"source.spm has no vocab.json beside it", lambda: load_vocabulary(marian / "source.spm"))


@pytest.fixture
def one(trained: dict[str, bytes], tmp_path: Path) -> Callable[[str], Path]:
    """A model alone in a folder."""

    def write(name: str) -> Path:
        (tmp_path / name).write_bytes(trained[name])
        return tmp_path / name

    return write


def test_t5_ends_with_its_end_and_has_sentinels_past_the_table(one, trained, tmp_path) -> None:
    path = one("spiece.model")
    words = load_vocabulary(path)
    ids = tokenizer_for(words).encode("The waves <extra_id_0> shore").ids
    before, after = (own_ids(trained["spiece.model"], text) for text in ("The waves ", " shore"))
    assert ids == (*before, words.size - 1, *after, 1)
    assert (words.size, words.rows) == (SIZE + 100, SIZE)
    assert (words.words[-1], words.words[SIZE]) == ("<extra_id_0>", "<extra_id_99>")
    assert (own_vocabulary(tmp_path), words.kind) == (path, "sentencepiece")


@pytest.mark.parametrize(("family", "named"), [("albert", "Albert"), ("pegasus", "Pegasus")])
def test_a_file_that_is_only_named_as_t5s_is_not_cut_as_its(one, tmp_path, family: str, named: str) -> None:
    path = one("spiece.model")
    (tmp_path / "config.json").write_text('{"model_type": "mt5"}')
    assert load_vocabulary(path).size == SIZE + 100
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    refuses(rf"is not the whole of a {named}Tokenizer: a tokenizer.json is needed", lambda: load_vocabulary(path))


def test_llama_begins_with_its_begin_and_writes_bytes(one, trained) -> None:
    tokenizer = tokenizer_for(load_vocabulary(one("tokenizer.model")))
    text = "wave 漢 x"
    tokens = tokenizer.encode(text).tokens
    assert [token.id for token in tokens] == [1, *own_ids(trained["tokenizer.model"], text)]
    places = [(token.start, token.end) for token in tokens if token.text.startswith("<0x")]
    assert places[:3] == [(5, 6)] * 3
    assert tokenizer.decode([token.id for token in tokens[1:]]) == text
    assert tokenizer.vocabulary.reading(tokens[-1].id) in ("x", "x, after a space")


def test_options_say_what_stands_around_a_text_and_which_tokens_are_added(one, tmp_path) -> None:
    path = one("tokenizer.model")
    (tmp_path / "tokenizer_config.json").write_text('{"add_bos_token": false, "add_eos_token": true}')
    assert tokenizer_for(load_vocabulary(path)).encode("the").tokens[-1].text == "</s>"
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLNetTokenizer"}')
    refuses(r"is not the whole of a XLNetTokenizer: a tokenizer.json is needed", lambda: load_vocabulary(path))
    # added tokens are honoured
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "gemma2"}')
    refuses(r"is not the whole of a GemmaTokenizer: a tokenizer.json is needed", lambda: load_vocabulary(path))
    (tmp_path / "config.json").unlink()
    (tmp_path / "added_tokens.json").write_text('{"<tool>": 300}')
    (tmp_path / "special_tokens_map.json").write_text('{"additional_special_tokens": ["<tool>"]}')
    words = load_vocabulary(path)
    token = tokenizer_for(words).encode("the <tool>").tokens[-1]
    assert (token.id, token.text, token.special, words.rows) == (300, "<tool>", True, 300)
    # those that are not special, too
    (tmp_path / "special_tokens_map.json").unlink()
    token = tokenizer_for(load_vocabulary(path)).encode("the <tool>").tokens[-1]
    assert (token.id, token.text, token.special) == (300, "<tool>", False)


def test_white_space_alone_is_cut_as_the_model_cuts_it(one, train) -> None:
    options = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "vocab_size": 300}
    data = train(ENGLISH, remove_extra_whitespaces=False, **options)
    path = one("tokenizer.model")
    path.write_bytes(data)
    tokenizer = tokenizer_for(load_vocabulary(path))
    between = own_ids(data, "\n")
    assert between
    assert tokenizer.encode("\n").ids == (1, *between)
    assert tokenizer.encode("the</s>\n<s>").ids == (1, *own_ids(data, "the"), 2, *between, 1)


@pytest.fixture
def two_sided(trained: dict[str, bytes], tmp_path: Path) -> Path:
    """A Marian of two vocabularies: each side has its pieces, words and embedding."""
    folder = tmp_path / "two-sided"
    shutil.copytree(REFERENCES / "marian-two-vocabularies", folder)
    for name, table, size in (("source.spm", "vocab.json", 24), ("target.spm", "target_vocab.json", 19)):
        (folder / name).write_bytes(trained[name])
        words = ["</s>", "<unk>", *(word for word in pieces(trained[name]) if not word.startswith("<"))][: size - 1]
        (folder / table).write_text(json.dumps({word: i for i, word in enumerate([*words, "<pad>"])}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": True}))
    return folder


def test_a_model_of_two_vocabularies_reads_one_and_writes_the_other(two_sided: Path) -> None:
    model = Model.load(two_sided, device="cpu")
    source, target = (json.loads((two_sided / name).read_text()) for name in ("vocab.json", "target_vocab.json"))
    assert model.vocabulary is not None
    assert model.target_vocabulary is not None
    assert (model.vocabulary.ids, model.target_vocabulary.ids) == (source, target)
    written = model.encode_target("das Ufer")
    assert written.tokens[0].text == model.target_word(0) == "</s>"
    known = [token for token in written.tokens[1:] if not token.unknown]
    assert [token.text for token in known] == [model.target_word(token.id) for token in known]
    trace = model.trace("the shore", decoder_text="das Ufer")
    assert trace["output.logits"].shape == (len(written.tokens), 19)
    assert trace["embedding.tokens.weight"].shape == (24, 16)
    labels = Labels({}, model.target_word, model.word)
    for name, words in (("embedding.tokens.weight", source), ("decoder.embedding.tokens.weight", target)):
        row = view_of(trace, name, labels).rows.label
        assert [row(i) for i in range(2, 9)] == [token_label(word) for word in list(words)[2:9]]


def test_ids_of_either_side_are_those_of_its_own_vocabulary_also_where_it_was_saved(two_sided, tmp_path) -> None:
    model = Model.load(two_sided, device="cpu")
    assert model.trace(ids=[23, 4], decoder_ids=[0, 18])["decoder.tokens"].tolist() == [0, 18]
    with pytest.raises(InputError, match="token ID 19 is outside the vocabulary: IDs go from 0 to 18"):
        model.trace(ids=[23, 4], decoder_ids=[0, 19])
    model.save(tmp_path / "saved")
    again = Model.load(tmp_path / "saved", device="cpu")
    assert again.config == model.config
    logits = [each.trace("the wave", decoder_text="die Welle")["output.logits"] for each in (model, again)]
    assert np.array_equal(*logits)
    (two_sided / "target_vocab.json").unlink()
    refuses(r"target_vocab\.json beside it", lambda: Model.load(two_sided, device="cpu"))


def test_a_broken_model_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    (tmp_path / "spiece.model").write_bytes(b"not a model")
    refuses(r"spiece.model is no SentencePiece model \(", lambda: load_vocabulary(tmp_path / "spiece.model"))


def test_without_the_extra_the_file_and_the_way_to_install_it_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    sentence_pieces.processor.cache_clear()
    (tmp_path / "tokenizer.model").write_bytes(b"")
    said = r"tokenizer.model needs the extra .* pip install 'sentencepiece>=0.2.3'"
    refuses(said, lambda: load_vocabulary(tmp_path / "tokenizer.model"))
    # Marian opens for IDs of tokens
    (tmp_path / "tokenizer.model").unlink()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(REFERENCES / "marian" / name, tmp_path / name)
    (tmp_path / "source.spm").write_bytes(b"")
    (tmp_path / "vocab.json").write_text('{"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 3}')
    model = Model.load(tmp_path, device="cpu")
    assert model.trace(ids=[3, 1])["encoder.0.output"].shape == (2, 32)
    refuses(r"source.spm needs the extra", lambda: model.encode("a"))


# added_tokens.json and special_tokens_map.json beside vocab.txt, or vocab.json and merges.txt


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "wave", "##s", "!"]
BYTES = {piece: i for i, piece in enumerate(["<s>", "</s>", "<unk>", "w", "a", "v", "e", "wa", "ve", "wave", "Ġ"])}
MERGES = "#version: 0.2\nw a\nv e\nwa ve\n"


def write(folder: Path, name: str, content: object) -> None:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def word_pieces(tmp_path: Path) -> Path:
    write(tmp_path, "vocab.txt", "\n".join(WORDS))
    return tmp_path / "vocab.txt"


def tokens(path: Path, text: str) -> str:
    """The tokens with their IDs, special ones with a star."""
    cut = tokenizer_for(load_vocabulary(path)).encode(text).tokens
    return " ".join(f"{token.id}:{token.text}{'*' * token.special}" for token in cut)


def test_added_word_pieces_have_the_ids_of_the_file_and_are_cut_whole(word_pieces: Path) -> None:
    # alone they are cut as with a map that adds nothing
    before = tokens(word_pieces, "The waves [SEP] zz!")
    names = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[M]"}
    write(word_pieces.parent, "special_tokens_map.json", {f"{role}_token": name for role, name in names.items()})
    assert tokens(word_pieces, "The waves [SEP] zz!") == before
    # with others
    (word_pieces.parent / "special_tokens_map.json").unlink()
    write(word_pieces.parent, "added_tokens.json", {"<b>": 9, "<a>": 8})
    assert tokens(word_pieces, "the <b> waves") == "2:[CLS]* 4:the 9:<b> 5:wave 6:##s 3:[SEP]*"
    words = load_vocabulary(word_pieces)
    assert (words.words[8:], words.rows, words.pad_id, words.unknown_id) == (("<a>", "<b>"), 8, 0, 1)
    assert words.reading(6) == "s, inside a word"
    # special ones can have other names
    roles = {"cls_token": {"content": "<s>", "lstrip": False}, "sep_token": "</s>"}
    write(word_pieces.parent, "special_tokens_map.json", roles | {"additional_special_tokens": ["<x>"]})
    write(word_pieces.parent, "added_tokens.json", {"<s>": 8, "</s>": 9, "<x>": 10})
    assert tokens(word_pieces, "The<x>zz") == "8:<s>* 4:the 10:<x>* 1:zz 9:</s>*"


def test_added_byte_pairs_are_cut_whole_and_their_frame_can_have_other_names(tmp_path: Path) -> None:
    write(tmp_path, "vocab.json", BYTES)
    write(tmp_path, "merges.txt", MERGES)
    write(tmp_path, "added_tokens.json", {"<tool>": 11})
    write(tmp_path, "special_tokens_map.json", {"additional_special_tokens": ["<tool>"]})
    assert tokens(tmp_path / "vocab.json", "wave<tool>") == "0:<s>* 9:wave 11:<tool>* 1:</s>*"
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer"})
    write(tmp_path, "added_tokens.json", {"[A]": 11, "[B]": 12})
    write(tmp_path, "special_tokens_map.json", {"cls_token": "[A]", "sep_token": "[B]"})
    assert tokens(tmp_path / "vocab.json", "wave") == "11:[A]* 9:wave 12:[B]*"


SPLIT = {  # as the options say; otherwise small letters without accents, as the vocabulary has no capitals
    "[CLS] the wave [UNK] [UNK] [UNK] [SEP]": {},
    "[CLS] the wäve [UNK] [UNK] [UNK] [SEP]": {"strip_accents": False},
    "[CLS] the wave 漢字 [UNK] [SEP]": {"tokenize_chinese_chars": False},
    "[CLS] [UNK] wäve [UNK] [UNK] [UNK] [SEP]": {"do_lower_case": False},
    "[CLS] [UNK] wave [UNK] [UNK] [UNK] [SEP]": {"do_lower_case": False, "strip_accents": True},
    "<s> the wave [UNK] [UNK] [UNK] </s>": {"tokenizer_class": "MPNetTokenizer"},
}


@pytest.mark.parametrize(("cut", "options"), SPLIT.items())
def test_options_beside_word_pieces_say_how_a_text_is_cut(tmp_path: Path, cut: str, options: dict[str, Any]) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nwave\nwäve\n漢字\n##s\n<s>\n</s>\n")
    write(tmp_path, "tokenizer_config.json", options)
    tokenizer = tokenizer_for(load_vocabulary(tmp_path / "vocab.txt"))
    encoding = tokenizer.encode("The wäve 漢字 zz")
    assert " ".join(tokenizer.vocabulary.word(token) for token in encoding.ids) == cut
    assert (encoding.tokens[0].special, encoding.tokens[-1].special) == (True, True)


def test_word_pieces_of_a_tokenizer_that_needs_more_are_refused(word_pieces: Path) -> None:
    write(word_pieces.parent, "tokenizer_config.json", {})
    for name in ("config.json", "tokenizer_config.json"):
        write(word_pieces.parent, name, {"tokenizer_class": "BertJapaneseTokenizer"})
        with pytest.raises(InputError, match=r"not the whole of a BertJapaneseTokenizer: a tokenizer\.json is needed"):
            load_vocabulary(word_pieces)
        write(word_pieces.parent, name, {})


def test_two_sentences_of_roberta_have_its_last_token_between_them_twice(tmp_path: Path) -> None:
    write(tmp_path, "vocab.json", BYTES)
    write(tmp_path, "merges.txt", MERGES)
    pair = encode_pair(tokenizer_for(load_vocabulary(tmp_path / "vocab.json")), "wave", "wave", 9)
    assert pair.ids == (0, 9, 1, 1, 9, 1)
    assert pair.segments == (0,) * 6


def test_gpt2_begins_a_text_where_the_options_ask_for_it(tmp_path: Path) -> None:
    write(tmp_path, "vocab.json", BYTES)
    write(tmp_path, "merges.txt", MERGES)
    options = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True}
    write(tmp_path, "tokenizer_config.json", {**options, "bos_token": "</s>"})
    assert tokens(tmp_path / "vocab.json", "wave") == "1:</s>* 9:wave"
    write(tmp_path, "special_tokens_map.json", {"bos_token": {"content": "<s>"}})
    assert tokens(tmp_path / "vocab.json", "wave") == "0:<s>* 9:wave"


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
    assert problem in refuses("", lambda: load_vocabulary(word_pieces))
