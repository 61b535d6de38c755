"""Beginning, end and padding around sentences, and their mask."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.options import Framing, batch_of, bracketed


@pytest.fixture(scope="module")
def english() -> Model:
    return Model.load("encoder", vocabulary="english")


def words(model: Model, ids: tuple[int, ...]) -> list[str]:
    return [model.word(token) for token in ids]


def test_a_sentence_stands_between_begin_and_end(english: Model) -> None:
    encoding = bracketed(english, english.encode("the dog"))
    assert words(english, encoding.ids) == ["[BOS]", "the", "dog", "[EOS]"]
    assert [token.special for token in encoding.tokens] == [True, False, False, True]
    assert bracketed(english, encoding) == encoding


def test_a_vocabulary_without_them_has_cls_and_sep() -> None:
    model = Model.load("encoder", vocabulary="nation")
    assert words(model, bracketed(model, model.encode("strong nation")).ids) == ["[CLS]", "strong", "nation", "[SEP]"]


def test_a_vocabulary_without_either_is_refused() -> None:
    model = Model.load("encoder", vocabulary="waves")
    with pytest.raises(InputError, match="waves has no words for beginning and end"):
        bracketed(model, model.encode("the waves"))


def test_sentences_of_a_batch_are_padded_and_padding_changes_nothing(english: Model) -> None:
    sentences = [english.encode(text) for text in ("the dog and the cat", "the dog")]
    batch = batch_of(english, sentences, Framing(bracket=True))
    assert batch.masks == ((1,) * 7, (1, 1, 1, 1, 0, 0, 0))
    assert words(english, batch.ids[1]) == ["[BOS]", "the", "dog", "[EOS]", "[PAD]", "[PAD]", "[PAD]"]
    trace = english.trace(ids=batch.ids, mask=batch.masks)
    alone = english.trace(ids=batch.ids[1][:4])
    name = "encoder.0.output"
    np.testing.assert_allclose(trace[name][1, :4], alone[name], rtol=0, atol=1e-5)


def test_a_sentence_is_padded_to_a_length(english: Model) -> None:
    batch = batch_of(english, [english.encode("the dog")], Framing(pad_to=4))
    assert batch.masks == ((1, 1, 0, 0),)
    assert words(english, batch.ids[0])[2:] == ["[PAD]", "[PAD]"]
    with pytest.raises(InputError, match="2 tokens are more than the 1"):
        batch_of(english, [english.encode("the dog")], Framing(pad_to=1))
    with pytest.raises(UsageError, match="pad_to 0"):
        Framing(pad_to=0)


def test_sentences_of_one_length_need_no_mask(english: Model) -> None:
    assert batch_of(english, [english.encode("the dog")]).masks is None


def test_padding_of_a_vocabulary_without_a_word_for_it_is_hidden_by_the_mask() -> None:
    model = Model.load("encoder", vocabulary="waves")
    batch = batch_of(model, [model.encode("the waves"), model.encode("the")])
    assert batch.masks == ((1, 1), (1, 0))
    assert batch.encodings[1].tokens[1].text == "[PAD]"
    weights = model.trace(ids=batch.ids, mask=batch.masks)["encoder.0.self_attention.weights"][1]
    assert (weights[..., 1] == 0).all()


LONG = "the dog bites the cat and the bird"


def test_a_sentence_that_is_cut_keeps_its_begin_and_end() -> None:
    model = Model.load("encoder", vocabulary="english", max_length=5)
    batch = batch_of(model, [model.encode(LONG, cut=True)], Framing(bracket=True), cut=True)
    assert words(model, batch.ids[0]) == ["[BOS]", "the", "dog", "bites", "[EOS]"]
    assert batch.encodings[0].cut == 5  # three by the model's length, two for begin and end


def test_a_sentence_is_cut_to_the_length_that_it_is_padded_to(english: Model) -> None:
    sentences = [english.encode(text) for text in (LONG, "the dog")]
    batch = batch_of(english, sentences, Framing(bracket=True, pad_to=5), cut=True)
    assert [words(english, ids) for ids in batch.ids] == [
        ["[BOS]", "the", "dog", "bites", "[EOS]"],
        ["[BOS]", "the", "dog", "[EOS]", "[PAD]"],
    ]
    assert [encoding.cut for encoding in batch.encodings] == [5, 0]
    assert [batch.length(item) for item in (0, 1)] == [5, 4]
    with pytest.raises(InputError, match=r"10 tokens are more than the 5 .* or --cut"):
        batch_of(english, sentences, Framing(bracket=True, pad_to=5))


def test_what_a_tokenizer_puts_around_a_sentence_is_kept() -> None:
    model = Model.load(REFERENCES / "bert")
    sentence = model.encode("the the the the the the")
    assert words(model, sentence.ids)[::7] == ["[CLS]", "[SEP]"]
    batch = batch_of(model, [sentence], Framing(pad_to=4), cut=True)
    assert words(model, batch.ids[0]) == ["[CLS]", "the", "the", "[SEP]"]


def test_the_second_sentence_of_a_pair_is_cut_with_its_segments() -> None:
    model = Model.load(REFERENCES / "bert")
    encoding = model.encode("the waves", pair="the shore")
    assert words(model, encoding.ids) == ["[CLS]", "the", "wa", "##ves", "[SEP]", "the", "sh", "##ore", "[SEP]"]
    (cut,) = batch_of(model, [encoding], Framing(pad_to=7), cut=True).encodings
    assert words(model, cut.ids) == ["[CLS]", "the", "wa", "##ves", "[SEP]", "the", "[SEP]"]
    assert cut.segments == (0, 0, 0, 0, 0, 1, 1)


def test_a_pair_that_is_too_long_is_cut_where_it_is_asked() -> None:
    model = Model.load(REFERENCES / "bert")
    cut = model.encode("the waves", cut=True, pair="the shore " * 40)
    assert len(cut.tokens) == model.most_tokens
    assert words(model, cut.ids)[-1] == "[SEP]"
    with pytest.raises(InputError, match="or --cut"):
        model.encode("the waves", pair="the shore " * 40)


def test_a_length_with_no_room_for_a_word_is_refused(english: Model) -> None:
    with pytest.raises(InputError, match=r"2 tokens leave no room for a word beside \[BOS\] and \[EOS\]"):
        batch_of(english, [english.encode(LONG)], Framing(bracket=True, pad_to=2), cut=True)
