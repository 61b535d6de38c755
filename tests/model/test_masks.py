"""Padding on either side: a sentence in a batch is what it is alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES, with_settings

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.texts import padded

DECODERS = (
    "vanilla-decoder",
    "gpt2",
    "gpt_neox",
    "llama",
    "mistral-window",
    "gemma3",
    "olmo3",
    "falcon",
    "bloom",
    "opt",
)
SENTENCE, PADS = [12, 10, 9, 15, 4], 3
LENGTH = len(SENTENCE) + PADS


def load(name: str) -> Model:
    return Model.load(REFERENCES / name, device="cpu", dtype="float64")


@pytest.fixture(params=DECODERS)
def decoder(request) -> Model:
    return load(request.param)


def batch(pad: int, *, left: bool) -> tuple[list[list[int]], list[list[int]]]:
    """The sentence with padding, beside one without, and their mask."""
    pads, other = [pad] * PADS, [7] * LENGTH
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
    weights = trace["decoder.0.self_attention.weights"][0]
    at = slice(PADS, None) if left else slice(None, -PADS)
    np.testing.assert_allclose(weights[:, at, at], alone["decoder.0.self_attention.weights"], atol=1e-12)


def with_pad(folder: Path, name: str, pad: int) -> Model:
    """The reference with a pad ID of its own."""
    return Model.load(with_settings(folder, name, pad_token_id=pad), device="cpu", dtype="float64")


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt"])
def test_pad_ids_at_the_beginning_are_padding_without_a_mask(tmp_path, name):
    model = with_pad(tmp_path, name, 2)
    ids, mask = batch(2, left=True)
    said, unsaid = model.trace(ids=ids, mask=mask), model.trace(ids=ids)
    np.testing.assert_array_equal(unsaid["input.visible"], np.array(mask, dtype=bool))
    np.testing.assert_array_equal(said["input.places"], unsaid["input.places"])
    np.testing.assert_array_equal(said["output.logits"], unsaid["output.logits"])


def test_a_token_that_begins_every_text_is_no_padding(tmp_path):
    assert with_pad(tmp_path, "llama", 0).trace(ids=[0, 5, 6])["input.visible"].all()


def test_pad_ids_at_the_end_of_a_decoders_row_are_padding(tmp_path):
    model = with_pad(tmp_path, "llama", 2)
    assert model.trace(ids=[2, 5, 2, 6, 2, 2])["input.visible"].tolist() == [False, True, True, True, False, False]


def test_a_row_of_nothing_but_pad_ids_is_padding_and_has_finite_values(tmp_path):
    trace = with_pad(tmp_path, "llama", 2).trace(ids=[2, 2])
    assert not trace["input.visible"].any()
    assert np.isfinite(trace["output.logits"]).all()


COUNTED_BY_TOKENS = ("roberta", "xlm-roberta", "mpnet", "modernbert", "deberta-v2", "t5", "m2m_100")
"""Encoders whose positions count no padding, or are distances of tokens: learned, sines, rotary and relative."""


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("name", COUNTED_BY_TOKENS)
def test_a_padded_sentence_of_an_encoder_is_what_it_is_alone(name, left):
    model = load(name)
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
def test_no_token_of_an_encoder_sees_padding(left):
    model = load("bert")
    ids, mask = batch(3, left=left)
    weights = model.trace(ids=ids, mask=mask)["encoder.0.self_attention.weights"]
    hidden = slice(None, PADS) if left else slice(-PADS, None)
    assert not weights[0, ..., hidden].any()
    assert weights[1].all()


def test_an_encoder_counts_places_from_the_first_token_whatever_it_is():
    ids, mask = batch(3, left=True)
    np.testing.assert_array_equal(load("bert").trace(ids=ids, mask=mask)["input.places"][0], np.arange(LENGTH))


def test_sentences_together_are_what_they_are_alone():
    model = Model.load("question", device="cpu", dtype="float64")
    texts = ["the cat sat", "the dog saw the cat on the mat"]
    together = model.trace(texts)
    step = together.program.steps[-1].name
    for item, text in enumerate(texts):
        alone = model.trace(text)
        length = len(model.encode(text).ids)
        values = together[step][item]
        if values.shape[0] == len(together["input.ids"][item]):
            np.testing.assert_allclose(values[:length], alone[step][:length], atol=1e-11)


def test_rows_are_made_equally_long():
    assert padded([[5, 6], [7]], 3) == ([[5, 6], [7, 3]], [[1, 1], [1, 0]])
    assert padded([[5, 6], [7]], None) == ([[5, 6], [7, 0]], [[1, 1], [1, 0]])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([1, 1], "this is 1 × 2, for 1 × 3 tokens"),
        ([[1, 1, 1], [1, 1, 1]], "this is 2 × 3, for 1 × 3 tokens"),
        ([0, 0, 0], "a row of it has no 1"),
        ([1, 2, 1], "no other number"),
        ([1.0, 0.5, 1.0], "no other number"),
        (["a", "b", "c"], "no other number"),
        ([[1, 1], [1]], "in rows of the same length"),
        (None, None),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, message):
    model = load("llama")
    if message is None:
        assert model.trace(ids=[1, 2, 3], mask=mask)["input.visible"].all()
        return
    with pytest.raises(InputError, match=message):
        model.trace(ids=[1, 2, 3], mask=mask)


def test_one_mask_serves_all_rows():
    trace = load("llama").trace(ids=[[1, 2, 3], [4, 5, 6]], mask=[0, 1, 1])
    assert trace["input.visible"].tolist() == [[False, True, True]] * 2


def test_sentences_have_no_mask_of_their_own():
    model = Model.load("decoder", device="cpu")
    with pytest.raises(UsageError, match="several sentences make their own mask"):
        model.trace(["a", "b"], mask=[[1], [1]])
    with pytest.raises(InputError, match="there is no sentence"):
        model.trace([])
