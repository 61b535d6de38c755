"""Tokens: how text is split, where the tokens lie, what is refused, how text comes back, and pairs of sentences."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES
from refusing import refuses

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text import encoding
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.encoding import Token, Tokenizer, encode_pair
from tui_transformer.text.vocabulary import parse_vocabulary

SENTENCE = "The waves crashed forcefully against the shore!"
PIECES = """[PAD] [UNK] [CLS] [SEP] [MASK]
    the wave ##s crash ##ed , ! ( ) don ' t naive i ##stanbul"""


def words(text: str) -> Tokenizer:
    return tokenizer_for(parse_vocabulary(text, "words"))


def pieces(*extra: str) -> Tokenizer:
    return tokenizer_for(parse_vocabulary("\n".join([*PIECES.split(), *extra]), "pieces"))


def texts(tokenizer: Tokenizer, text: str) -> list[str]:
    return [token.text for token in tokenizer.encode(text).tokens]


def written(tokenizer: Tokenizer, text: str) -> list[str]:
    return [text[token.start : token.end] for token in tokenizer.encode(text).tokens]


def test_the_words_of_a_sentence_and_unknown_ones_are_marked() -> None:
    encoding = tokenizer_for(load_vocabulary("waves")).encode(SENTENCE)
    assert encoding.ids == (1, 2, 3, 4, 5, 1, 6, 7)
    assert encoding.tokens[0] == Token(1, "the", 0, 3)
    assert encoding.tokens[-1] == Token(7, "!", 46, 47)
    assert encoding.cut == 0
    # unknown words are marked, special ones known
    tokens = words("a [CLS]").encode("[CLS] a Zebra [UNK]").tokens
    assert tokens == (
        Token(2, "[CLS]", 0, 5, special=True),
        Token(1, "a", 6, 7),
        Token(0, "Zebra", 8, 13, unknown=True),
        Token(0, "[UNK]", 14, 19, special=True),
    )
    # built-in vocabularies know their sentences
    for name, text in (
        ("dog", "A dog bites a man"),
        ("nation", "[CLS] strong nation recycles its huge trade surplus to America! [SEP]"),
        ("english", "She didn't know where the dog was, but it's here now."),
        ("deutsch", "Der große Hund läuft über die Straße, und das Mädchen lacht."),
    ):
        assert [token for token in tokenizer_for(load_vocabulary(name)).encode(text).tokens if token.unknown] == []


def test_text_is_split_into_words() -> None:
    for text, expected in (
        ("", []),
        ("  \n\t ", []),
        ("a  b\nc", ["a", "b", "c"]),
        ("A-B", ["a", "b"]),
        ("a, b.", ["a", ",", "b"]),
        ("!!", ["!", "!"]),
        ("don't DON’T", ["don't", "don't"]),
        ("'a' b'", ["a", "b"]),
        ("a_b", ["a", "b"]),
        ("x2", ["x2"]),
        ("Größe gro\u0308ße", ["größe", "größe"]),
        ("c\ufe0f🌊", ["c\ufe0f", "🌊"]),
        ("\u0301a", ["a"]),
        ("می\u200cروم", ["می\u200cروم"]),
        ("हिन्दी", ["हिन्दी"]),
        ("İ ẞ ΟΔΟΣ", ["İ", "ß", "οδος"]),
        ("[CLS] a [SEP][cls]", ["[CLS]", "a", "[SEP]", "cls"]),
        ("[UNK]", ["[UNK]"]),
        ("[PAD]", ["PAD"]),
    ):
        tokenizer = words("a b c , ! 🌊 don't x2 größe c\ufe0f ß οδος [CLS] [SEP] हिन्दी")
        assert texts(tokenizer, text) == expected


def test_places_are_those_of_the_text_as_written() -> None:
    for tokenizer in (words("the i̇stanbul größe , !"), pieces()):
        for text in ("İİİ the", "ŉ ﬁ the", "\U0001d5ba the"):
            assert [part for part in written(tokenizer, text) if part] == text.split(" ")
        assert [part for part in written(tokenizer, "a the, Größe!") if part] == ["a", "the", ",", "Größe", "!"]


def test_words_come_back_with_spaces_but_not_before_punctuation() -> None:
    for text, expected in (
        (SENTENCE, "the waves crashed forcefully against the shore!"),
        ('He said: "yes" (no, maybe).', 'he said:" yes" (no, maybe).'),
        ("1 + 1 = 2", "1 + 1 = 2"),
        ("[CLS] Zebra [SEP]", "[CLS] [UNK] [SEP]"),
        ("", ""),
    ):
        tokenizer = tokenizer_for(load_vocabulary("english"))
        assert tokenizer.decode(tokenizer.encode(text).ids) == expected


def test_too_many_tokens_are_refused_with_both_numbers_or_cut_when_asked() -> None:
    for tokenizer, count in ((words("a ,"), "6"), (pieces(), "8"), (pieces("[EOS]"), "8")):
        said = f"^the text has {count} tokens, the limit is 5: use a shorter one, or cut it \\(--cut, cut=True\\)$"
        refuses(said, lambda tokenizer=tokenizer: tokenizer.encode("the, the, the,", max_tokens=5))
    # a limit that is met is no error
    assert len(words("a ,").encode("a, a, - - -", max_tokens=4).ids) == 4
    assert len(pieces().encode("the waves", max_tokens=5).ids) == 5
    for limit, ids, cut in ((None, 4, 0), (4, 4, 0), (3, 3, 1), (0, 0, 4)):
        made = words("a b").encode("a b a b", max_tokens=limit, cut=True)
        assert (len(made.ids), made.cut) == (ids, cut)


@pytest.mark.parametrize("tokenizer", [words("the"), pieces()], ids=["words", "pieces"])
def test_a_text_of_too_many_words_or_characters_is_refused_and_an_id_outside(tokenizer: Tokenizer) -> None:
    refuses("100,000 tokens, the limit is 512", lambda: tokenizer.encode("the " * 100_000, max_tokens=512))
    encoding.check_length(" " * encoding.MAX_CHARACTERS)
    with pytest.raises(InputError, match="the text has 1,000,001 characters, the limit is 1,000,000"):
        tokenizer.encode("the" + " " * (encoding.MAX_CHARACTERS - 2), cut=True)
    refuses("ID 99 is not in the vocabulary", lambda: tokenizer.decode([1, 99]))


def test_word_pieces_with_their_frame() -> None:
    tokens = pieces().encode("The waves crashed, [MASK] naïve Zebra").tokens
    assert tokens == (
        Token(2, "[CLS]", 0, 0, special=True),
        Token(5, "the", 0, 3),
        Token(6, "wave", 4, 8),
        Token(7, "##s", 8, 9),
        Token(8, "crash", 10, 15),
        Token(9, "##ed", 15, 17),
        Token(10, ",", 17, 18),
        Token(4, "[MASK]", 19, 25, special=True),
        Token(17, "naive", 26, 31),
        Token(1, "Zebra", 32, 37, unknown=True),
        Token(3, "[SEP]", 37, 37, special=True),
    )


def test_word_pieces_without_cls_and_sep_have_no_frame_and_with_capitals_keep_them() -> None:
    tokenizer = tokenizer_for(parse_vocabulary("the\nwave\n##s\n[UNK]", "pieces"))
    assert tokenizer.encode("the waves [UNK] x").ids == (0, 1, 2, 3, 3)
    assert [token.unknown for token in tokenizer.encode("[UNK] x").tokens] == [False, True]
    tokenizer = tokenizer_for(parse_vocabulary("[UNK]\nThe\nthe\n##s", "pieces"))
    assert tokenizer.encode("The the").ids == (1, 2)


def test_a_cut_text_of_word_pieces_keeps_its_frame() -> None:
    encoding = pieces().encode("the waves crashed", max_tokens=4, cut=True)
    assert ([token.text for token in encoding.tokens], encoding.cut) == (["[CLS]", "the", "wave", "[SEP]"], 3)
    refuses("has 7 tokens, the limit is 1", lambda: pieces().encode("the waves crashed", max_tokens=1, cut=True))


def test_word_pieces_bear_any_character_and_come_back_as_words() -> None:
    text = "the \ud800\x00\u202e\U0010ffff waves"
    assert written(pieces(), text)[-3:] == ["wave", "s", ""]
    for text, decoded in (
        ("The waves crashed, (the waves)!", "[CLS] the waves crashed, (the waves)! [SEP]"),
        ("İstanbul Zebra", "[CLS] istanbul [UNK] [SEP]"),
    ):
        assert pieces().decode(pieces().encode(text).ids) == decoded
    assert pieces().decode([7, 7]) == "##ss", "a lone piece is kept as it is"


# Two sentences in one sequence, and the segments that tell them apart


FEW = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nwave\n##s\na"
WORDS_OF_A_PAIR = ["[CLS]", "the", "wave", "##s", "[SEP]", "a", "zoo", "[SEP]"]


def test_word_pieces_stand_in_two_segments_between_their_marks() -> None:
    pair = encode_pair(tokenizer_for(parse_vocabulary(FEW, "pieces")), "The waves", "a zoo", 512)
    assert [token.text for token in pair.tokens] == WORDS_OF_A_PAIR
    assert pair.segments == (0, 0, 0, 0, 0, 1, 1, 1)
    assert pair.text == "The waves a zoo"
    assert "|".join(pair.text[token.start : token.end] for token in pair.tokens) == "|The|wave|s||a|zoo|"
    assert [token.special for token in pair.tokens[4:7]] == [True, False, False]
    assert [token.unknown for token in pair.tokens[4:7]] == [False, False, True]
    with pytest.raises(InputError, match="8 tokens, the limit is 7"):
        encode_pair(tokenizer_for(parse_vocabulary(FEW, "pieces")), "the waves", "a zoo", 7)


def test_what_is_added_to_a_pair_lies_where_the_text_before_it_ends() -> None:
    pair = encode_pair(tokenizer_for(parse_vocabulary(FEW, "pieces")), "The waves ", " a zoo", 512)
    added = [(token.start, token.end) for token in pair.tokens if token.text in ("[CLS]", "[SEP]")]
    assert added == [(0, 0), (9, 9), (17, 17)]


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_a_published_tokenizer_puts_a_pair_together_as_its_file_says(family: str) -> None:
    words = load_vocabulary(REFERENCES / family / "tokenizer.json")
    pair = encode_pair(tokenizer_for(words), "the waves", "a shore", 512)
    expected = words.rust.encode("the waves", "a shore")
    assert (list(pair.ids), list(pair.segments)) == (expected.ids, expected.type_ids)
    assert pair.text[slice(pair.tokens[5].start, None)].startswith("a shore")


def test_the_segments_of_a_pair_reach_the_model_and_others_are_refused() -> None:
    model = Model.load(REFERENCES / "bert", device="cpu")
    trace = model.trace("the waves", pair="a shore")
    table = trace["embedding.segments.weight"]
    segments = np.array(model.encode("the waves", pair="a shore").segments)
    assert set(segments) == {0, 1}
    np.testing.assert_array_equal(trace["embedding.segments"], table[segments])
    alike = model.trace(ids=model.encode("the waves", pair="a shore").ids)
    assert np.abs(trace["encoder.0.output"] - alike["encoder.0.output"]).max() > 1e-3
    given = model.trace(ids=model.encode("the waves", pair="a shore").ids, segments=segments.tolist())
    np.testing.assert_array_equal(given["encoder.1.output"], trace["encoder.1.output"])
    for segments in ([0, 1], [0, 2, 0], [0, -1, 0]):
        with pytest.raises(InputError, match="one number from 0 to 1 for each of 3 tokens"):
            model.trace(ids=[2, 5, 3], segments=segments)
    for where in ("encoder", REFERENCES / "gpt2"):
        with pytest.raises(InputError, match="puts nothing between two sentences"):
            Model.load(where, device="cpu").encode("the waves", pair="the shore")
