"""Beginning, end and padding around sentences: a sentence in a batch is what it is alone."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES, in_float64
from refusing import refuses

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.options import Framing, batch_of, bracketed
from tui_transformer.model.texts import padded

DECODERS = (
    *("vanilla-decoder", "gpt2", "gpt_neox", "llama", "mistral-window"),
    *("qwen2", "qwen2-window", "qwen3", "gemma2", "gemma3", "olmo3", "falcon", "bloom", "opt"),
)
SENTENCE, PADS = [12, 10, 9, 15, 4], 3
LENGTH = len(SENTENCE) + PADS
COUNTED_BY_TOKENS = ("roberta", "xlm-roberta", "mpnet", "modernbert", "deberta-v2", "t5", "m2m_100")
"""Encoders whose positions count no padding, or are distances of tokens: learned, sines, rotary and relative."""
SIDES = [(name, left) for name in COUNTED_BY_TOKENS for left in (True, False)]
BERT = Model.load(REFERENCES / "bert")
LONG = "the dog bites the cat and the bird"


@pytest.fixture(params=DECODERS)
def decoder(request) -> Model:
    return in_float64(request.param)


def batch(pad: int, *, left: bool) -> tuple[list[list[int]], list[list[int]]]:
    """The sentence with padding, beside one without, and their mask."""
    pads, other = [pad] * PADS, [*range(7, 7 + LENGTH)]
    row, mask = (pads + SENTENCE, [0] * PADS + [1] * 5) if left else (SENTENCE + pads, [1] * 5 + [0] * PADS)
    return [row, other], [mask, [1] * LENGTH]


def real(values: np.ndarray, *, left: bool) -> np.ndarray:
    """The rows of the sentence itself, of the first item."""
    return values[0, PADS:] if left else values[0, :-PADS]


@pytest.mark.parametrize("left", [True, False])
def test_a_padded_sentence_of_a_decoder_is_what_it_is_alone(decoder, left):
    ids, mask = batch(2, left=left)
    trace, alone = decoder.trace(ids=ids, mask=mask), decoder.trace(ids=SENTENCE)
    for step in ("embedding.output", "decoder.0.output", alone.program.logits):
        np.testing.assert_allclose(real(trace[step], left=left), alone[step], atol=1e-11)
    np.testing.assert_allclose(trace[step][1], decoder.trace(ids=ids[1])[step], atol=1e-11)
    weights = trace["decoder.0.self_attention.weights"][0]
    at = slice(PADS, None) if left else slice(None, -PADS)
    np.testing.assert_allclose(weights[:, at, at], alone["decoder.0.self_attention.weights"], atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt"])
def test_pad_ids_at_the_beginning_are_padding_without_a_mask(changed, name):
    model = changed(name, pad_token_id=2)
    ids, mask = batch(2, left=True)
    said, unsaid = model.trace(ids=ids, mask=mask), model.trace(ids=ids)
    np.testing.assert_array_equal(unsaid["input.visible"], np.array(mask, dtype=bool))
    np.testing.assert_array_equal(said["input.places"], unsaid["input.places"])
    np.testing.assert_array_equal(said["output.logits"], unsaid["output.logits"])


def test_pad_ids_around_a_decoders_row_are_padding_but_for_a_token_that_begins_every_text(changed):
    assert changed("llama", pad_token_id=0).trace(ids=[0, 5, 6])["input.visible"].all()
    model = changed("llama", pad_token_id=2)
    assert model.trace(ids=[2, 5, 2, 6, 2, 2])["input.visible"].tolist() == [False, True, True, True, False, False]
    trace = model.trace(ids=[2, 2])
    assert not trace["input.visible"].any()
    assert np.isfinite(trace["output.logits"]).all()


@pytest.mark.parametrize(
    ("name", "left"), [*SIDES, *((name, False) for name in ("bert", "distilbert", "bart", "marian"))]
)
def test_a_padded_sentence_of_an_encoder_is_what_it_is_alone(name, left):
    model = in_float64(name)
    ids, mask = batch(model.config.pad_id, left=left)
    trace, alone = model.trace(ids=ids, mask=mask), model.trace(ids=SENTENCE)
    unsaid = model.trace(ids=ids)
    np.testing.assert_array_equal(unsaid["input.visible"], np.array(mask, dtype=bool))
    for step in ("embedding.output", "encoder.0.output", "encoder.1.output"):
        np.testing.assert_allclose(real(trace[step], left=left), alone[step], atol=1e-11)
        np.testing.assert_allclose(real(unsaid[step], left=left), alone[step], atol=1e-11)
    if model.has_decoder:
        np.testing.assert_allclose(trace["output.logits"][0], alone["output.logits"], atol=1e-11)


@pytest.mark.parametrize("left", [True, False])
def test_no_token_of_an_encoder_sees_padding_and_places_are_counted_from_the_first_whatever_it_is(left):
    ids, mask = batch(3, left=left)
    trace = in_float64("bert").trace(ids=ids, mask=mask)
    weights, hidden = trace["encoder.0.self_attention.weights"], slice(None, PADS) if left else slice(-PADS, None)
    assert not weights[0, ..., hidden].any()
    assert weights[1].all()
    np.testing.assert_array_equal(trace["input.places"][0], np.arange(LENGTH))


def test_rows_are_made_equally_long_and_one_mask_serves_all():
    trace = in_float64("llama").trace(ids=[[1, 2, 3], [4, 5, 6]], mask=[0, 1, 1])
    assert trace["input.visible"].tolist() == [[False, True, True]] * 2
    assert padded([[5, 6], [7]], 3) == ([[5, 6], [7, 3]], [[1, 1], [1, 0]])
    assert padded([[5, 6], [7]], None) == ([[5, 6], [7, 0]], [[1, 1], [1, 0]])


def test_a_mask_that_does_not_fit_is_refused_and_sentences_have_none_of_their_own():
    for mask, message in (
        ([1, 1], "this is 1 × 2, for 1 × 3 tokens"),
        ([[1, 1, 1], [1, 1, 1]], "this is 2 × 3, for 1 × 3 tokens"),
        ([0, 0, 0], "a row of it has no 1"),
        ([1, 2, 1], "no other number"),
        ([1.0, 0.5, 1.0], "no other number"),
        (["a", "b", "c"], "no other number"),
        ([[1, 1], [1]], "in rows of the same length"),
    ):
        refuses(message, lambda mask=mask: in_float64("llama").trace(ids=[1, 2, 3], mask=mask))
    assert in_float64("llama").trace(ids=[1, 2, 3], mask=None)["input.visible"].all()
    model = Model.load("decoder", device="cpu")
    refuses("several sentences make their own mask", lambda: model.trace(["a", "b"], mask=[[1], [1]]), UsageError)
    refuses("there is no sentence", lambda: model.trace([]))


# Beginning and end


@pytest.fixture(scope="module")
def english() -> Model:
    return Model.load("encoder", vocabulary="english")


def words(model: Model, ids: tuple[int, ...]) -> list[str]:
    return [model.word(token) for token in ids]


def test_a_sentence_stands_between_begin_and_end_or_cls_and_sep(english: Model) -> None:
    encoding = bracketed(english, english.encode("the dog"))
    assert words(english, encoding.ids) == ["[BOS]", "the", "dog", "[EOS]"]
    assert [token.special for token in encoding.tokens] == [True, False, False, True]
    assert bracketed(english, encoding) == encoding
    model = Model.load("encoder", vocabulary="nation")
    assert words(model, bracketed(model, model.encode("strong nation")).ids) == ["[CLS]", "strong", "nation", "[SEP]"]

    model = Model.load("encoder", vocabulary="waves")
    refuses("waves has no words for beginning and end", lambda: bracketed(model, model.encode("the waves")))


def test_sentences_of_a_batch_are_padded_or_to_a_length(english: Model) -> None:
    sentences = [english.encode(text) for text in ("the dog and the cat", "the dog")]
    batch = batch_of(english, sentences, Framing(bracket=True))
    assert batch.masks == ((1,) * 7, (1, 1, 1, 1, 0, 0, 0))
    assert words(english, batch.ids[1]) == ["[BOS]", "the", "dog", "[EOS]", "[PAD]", "[PAD]", "[PAD]"]
    # to a length
    assert batch_of(english, [english.encode("the dog")]).masks is None
    batch = batch_of(english, [english.encode("the dog")], Framing(pad_to=4))
    assert batch.masks == ((1, 1, 0, 0),)
    assert words(english, batch.ids[0])[2:] == ["[PAD]", "[PAD]"]
    refuses("2 tokens are more than the 1", lambda: batch_of(english, [english.encode("the dog")], Framing(pad_to=1)))
    refuses("pad_to 0", lambda: Framing(pad_to=0), UsageError)


def test_padding_of_a_vocabulary_without_a_word_for_it_is_hidden_by_the_mask() -> None:
    model = Model.load("encoder", vocabulary="waves")
    batch = batch_of(model, [model.encode("the waves"), model.encode("the")])
    assert batch.masks == ((1, 1), (1, 0))
    assert batch.encodings[1].tokens[1].text == "[PAD]"
    weights = model.trace(ids=batch.ids, mask=batch.masks)["encoder.0.self_attention.weights"][1]
    assert (weights[..., 1] == 0).all()


def test_a_sentence_that_is_cut_keeps_what_stands_around_it() -> None:
    model = Model.load("encoder", vocabulary="english", max_length=5)
    batch = batch_of(model, [model.encode(LONG, cut=True)], Framing(bracket=True), cut=True)
    assert words(model, batch.ids[0]) == ["[BOS]", "the", "dog", "bites", "[EOS]"]
    assert batch.encodings[0].cut == 5  # three by the model's length, two for begin and end
    sentence = BERT.encode("the the the the the the")
    assert words(BERT, sentence.ids)[::7] == ["[CLS]", "[SEP]"]
    batch = batch_of(BERT, [sentence], Framing(pad_to=4), cut=True)
    assert words(BERT, batch.ids[0]) == ["[CLS]", "the", "the", "[SEP]"]


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
    with pytest.raises(InputError, match=r"2 tokens leave no room for a word beside \[BOS\] and \[EOS\]"):
        batch_of(english, [english.encode(LONG)], Framing(bracket=True, pad_to=2), cut=True)


def test_the_second_sentence_of_a_pair_is_cut_with_its_segments_where_it_is_asked() -> None:
    encoding = BERT.encode("the waves", pair="the shore")
    assert words(BERT, encoding.ids) == ["[CLS]", "the", "wa", "##ves", "[SEP]", "the", "sh", "##ore", "[SEP]"]
    (cut,) = batch_of(BERT, [encoding], Framing(pad_to=7), cut=True).encodings
    assert words(BERT, cut.ids) == ["[CLS]", "the", "wa", "##ves", "[SEP]", "the", "[SEP]"]
    assert cut.segments == (0, 0, 0, 0, 0, 1, 1)
    cut = BERT.encode("the waves", cut=True, pair="the shore " * 40)
    assert len(cut.tokens) == BERT.most_tokens
    assert words(BERT, cut.ids)[-1] == "[SEP]"
    refuses("cut=True", lambda: BERT.encode("the waves", pair="the shore " * 40))
