"""Two sentences in one sequence, and the segments that tell them apart."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.text.dispatch import load_vocabulary, tokenizer_for
from tui_transformer.text.encoding import encode_pair
from tui_transformer.text.vocabulary import parse_vocabulary

PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nwave\n##s\na"
WORDS = ["[CLS]", "the", "wave", "##s", "[SEP]", "a", "zoo", "[SEP]"]


def test_word_pieces_stand_in_two_segments_between_their_marks() -> None:
    pair = encode_pair(tokenizer_for(parse_vocabulary(PIECES, "pieces")), "The waves", "a zoo", 512)
    assert [token.text for token in pair.tokens] == WORDS
    assert pair.segments == (0, 0, 0, 0, 0, 1, 1, 1)
    assert pair.text == "The waves a zoo"
    assert "|".join(pair.text[token.start : token.end] for token in pair.tokens) == "|The|wave|s||a|zoo|"
    assert [token.special for token in pair.tokens[4:7]] == [True, False, False]
    assert [token.unknown for token in pair.tokens[4:7]] == [False, False, True]


def test_what_is_added_to_a_pair_lies_where_the_text_before_it_ends() -> None:
    pair = encode_pair(tokenizer_for(parse_vocabulary(PIECES, "pieces")), "The waves ", " a zoo", 512)
    added = [(token.start, token.end) for token in pair.tokens if token.text in ("[CLS]", "[SEP]")]
    assert added == [(0, 0), (9, 9), (17, 17)]


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_a_published_tokenizer_puts_a_pair_together_as_its_file_says(family: str) -> None:
    words = load_vocabulary(REFERENCES / family / "tokenizer.json")
    pair = encode_pair(tokenizer_for(words), "the waves", "a shore", 512)
    expected = words.rust.encode("the waves", "a shore")
    assert (list(pair.ids), list(pair.segments)) == (expected.ids, expected.type_ids)
    assert pair.text[slice(pair.tokens[5].start, None)].startswith("a shore")


def test_the_segments_of_a_pair_reach_the_model() -> None:
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


@pytest.mark.parametrize("segments", [[0, 1], [0, 2, 0], [0, -1, 0]])
def test_segments_that_the_model_does_not_have_are_refused(segments: list[int]) -> None:
    with pytest.raises(InputError, match="one number from 0 to 1 for each of 3 tokens"):
        Model.load(REFERENCES / "bert", device="cpu").trace(ids=[2, 5, 3], segments=segments)


@pytest.mark.parametrize("where", ["encoder", REFERENCES / "gpt2"])
def test_a_tokenizer_without_pairs_says_so(where: str) -> None:
    with pytest.raises(InputError, match="puts nothing between two sentences"):
        Model.load(where, device="cpu").encode("the waves", pair="the shore")


def test_a_pair_that_is_too_long_is_refused() -> None:
    tokenizer = tokenizer_for(parse_vocabulary(PIECES, "pieces"))
    with pytest.raises(InputError, match="8 tokens, the limit is 7"):
        encode_pair(tokenizer, "the waves", "a zoo", 7)
