"""Beginning, end and padding around sentences, and their mask."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.framing import Framing, batch_of, bracketed


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
