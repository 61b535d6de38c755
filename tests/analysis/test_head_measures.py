"""Measures of heads: numbers, pictures, entropy, and the kinds of tokens that they are of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from reference import REFERENCES, in_float64

from tui_transformer.analysis.attentions import Reader, attentions, own_keys, renormalized
from tui_transformer.analysis.head_measures import (
    SIDE,
    LayerMeasures,
    head_entropy,
    largest,
    layer_measures,
    relative_entropy,
    smaller,
)
from tui_transformer.analysis.measures import HEAD_MEASURES, row_entropy
from tui_transformer.analysis.tokens import NOTHING, Hidden, is_separator, is_special
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

# Measures of heads: against plain formulas, masks, padding, hidden tokens, samples, and traces that keep nothing
SENTENCE = "the day began, and the day was good."
WEIGHTS = "{}.0.self_attention.weights"


def load(name: str = "encoder", **sizes: object) -> Model:
    return in_float64(name, vocabulary="english", layers=2, **sizes)


def measured(trace: Trace, reader: Reader) -> list[LayerMeasures]:
    return [layer_measures(trace, step, reader) for step in attentions(trace.program)]


def test_every_measure_is_the_mean_of_its_rows_where_all_keys_are_visible() -> None:
    model = load()
    trace = model.trace(SENTENCE)
    ids = trace["tokens"].tolist()
    separating = [model.word(token) in ",." for token in ids]
    for layer in measured(trace, Reader(model.vocabulary)):
        weights = trace[layer.attention.name]
        n = weights.shape[1]
        assert layer.values["entropy"] == pytest.approx(-(weights * np.log2(weights)).sum(axis=-1).mean(axis=-1))
        previous = [[head[i, i - 1] for i in range(1, n)] for head in weights]
        assert layer.values["previous"] == pytest.approx(np.mean(previous, axis=1))
        assert layer.values["first"] == pytest.approx(weights[:, :, 0].mean(axis=1))
        assert layer.values["itself"] == pytest.approx([np.diag(head).mean() for head in weights])
        assert layer.values["separators"] == pytest.approx(weights[:, :, separating].sum(axis=-1).mean(axis=-1))
        assert (layer.queries, layer.real, layer.sampled) == (n, n, False)


def test_every_measure_is_the_mean_of_the_rows_that_have_a_choice() -> None:
    trace = load("decoder").trace(ids=[105, 106, 107, 108])
    layer = measured(trace, Reader())[0]
    weights = trace[layer.attention.name]
    assert layer.values["first"] == pytest.approx(weights[:, 1:, 0].mean(axis=1))
    assert layer.values["itself"] == pytest.approx([np.diag(head)[1:].mean() for head in weights])
    assert layer.values["entropy"] == pytest.approx(
        -np.where(weights > 0, weights * np.log2(np.maximum(weights, 1e-300)), 0)[:, 2:].sum(axis=-1).mean(axis=-1)
    )
    # induction
    trace = load("decoder").trace(ids=[105, 106, 107, 105, 106, 108])
    layer = measured(trace, Reader())[1]
    weights = trace[layer.attention.name]
    # Token 3 is token 0 again, which 1 followed; token 4 is token 1 again, which 2 followed.
    assert layer.values["induction"] == pytest.approx((weights[:, 3, 1] + weights[:, 4, 2]) / 2)
    layer = measured(load("decoder").trace(ids=[105, 106, 107, 108]), Reader())[0]
    assert all(math.isnan(value) for value in layer.values["induction"])


def test_cross_attention_has_no_own_token() -> None:
    model = load("encoder-decoder")
    trace = model.trace("the day", decoder_text="the day was")
    step = attentions(trace.program, "decoder cross-attention")[0]
    layer = layer_measures(trace, step, Reader(model.vocabulary))
    assert all(math.isnan(value) for name in ("previous", "itself", "induction") for value in layer.values[name])
    assert layer.values["first"] == pytest.approx(trace[step.name][:, :, 0].mean(axis=1))


PADDED = [
    ("encoder", {"ids": [105, 106, 107, 108]}, {"ids": [105, 106, 107, 108, 1, 1, 1]}),
    ("decoder", {"ids": [105, 106, 107, 105]}, {"ids": [0, 0, 105, 106, 107, 105], "mask": [0, 0, 1, 1, 1, 1]}),
    ("copy", {"ids": [5, 6, 7, 5]}, {"ids": [[5, 5, 5, 6, 7, 5]], "mask": [[0, 0, 1, 1, 1, 1]]}),
]


@pytest.mark.parametrize("hidden", [NOTHING, Hidden(first=True)])
@pytest.mark.parametrize(("name", "plain", "padded"), PADDED)
def test_padding_on_either_side_changes_no_measure(name: str, plain: dict, padded: dict, hidden: Hidden) -> None:
    model = in_float64("copy") if name == "copy" else load(name)
    alone, other = (measured(model.trace(**given), Reader(model.vocabulary, hidden)) for given in (plain, padded))
    for layer, expected in zip(other, alone, strict=True):
        assert layer.real == expected.real
        assert layer.values.keys() == expected.values.keys()
        for measure, values in expected.values.items():
            assert layer.values[measure] == pytest.approx(values, nan_ok=True), measure
        assert np.isnan(layer.values["first"]).all() == hidden.first


def test_rows_sum_to_one_without_the_hidden_keys_and_the_first_token_can_be_one() -> None:
    model = load()
    trace = model.trace(SENTENCE)
    layer = measured(trace, Reader(model.vocabulary, Hidden(first=True)))[0]
    weights = trace[layer.attention.name][:, 1:, 1:]
    weights = weights / weights.sum(axis=-1, keepdims=True)
    assert layer.values["itself"] == pytest.approx([np.diag(head).mean() for head in weights])
    assert layer.values["entropy"] == pytest.approx(-(weights * np.log2(weights)).sum(axis=-1).mean(axis=-1))
    assert all(math.isnan(value) for value in layer.values["first"])
    assert np.isnan(layer.pictures[:, 0]).all()
    assert np.isnan(layer.pictures[:, :, 0]).all()
    np.testing.assert_allclose(layer.pictures[:, 1:, 1:], weights, rtol=1e-6)
    weights = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    left = renormalized(weights, np.array([True, False, False]))
    assert left.tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]
    weights = np.array([[0.5, 0.5]])
    assert renormalized(weights, np.array([False, False])) is weights
    assert (NOTHING.active, NOTHING.text) == (False, "")
    assert Hidden(special=True).text == "special tokens hidden, rows renormalised"
    assert Hidden(special=True, first=True).text == "special tokens and first token hidden, rows renormalised"


def test_a_large_matrix_is_read_in_part() -> None:
    trace = load("decoder", max_length=200).trace(ids=[105 + i % 3 for i in range(200)])
    step = attentions(trace.program)[0]
    layer = layer_measures(trace, step, Reader(), most=8 * 200 * 64)
    assert (layer.queries, layer.real, layer.sampled) == (64, 200, True)
    whole = layer_measures(trace, step, Reader())
    assert layer.values["itself"] == pytest.approx(whole.values["itself"], rel=0.3)
    assert not np.isnan(layer.pictures[:, :, 0]).any()


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_trace_that_keeps_nothing_gives_the_same_measures(name: str) -> None:
    model = load(name)
    kept, dropped = (
        measured(model.trace(SENTENCE, budget=budget), Reader(model.vocabulary)) for budget in (1 << 30, 0)
    )
    for one, other in zip(kept, dropped, strict=True):
        for measure in HEAD_MEASURES:
            assert one.values[measure.name] == pytest.approx(other.values[measure.name], nan_ok=True)
        np.testing.assert_allclose(one.pictures, other.pictures)


def test_edits_reach_the_measures() -> None:

    model = load()
    trace = model.trace(SENTENCE, budget=0)
    name = attentions(trace.program)[1].name
    edited = trace.edited([Edit("encoder.0.feed_forward.norm", (0, 0), 40.0)])
    before, after = (measured(each, Reader(model.vocabulary)) for each in (trace, edited))
    assert after[0].values == pytest.approx(before[0].values)
    weights = edited[name]
    assert after[1].values["first"] == pytest.approx(weights[:, :, 0].mean(axis=1))
    assert after[1].values["first"] != pytest.approx(before[1].values["first"])


def test_the_last_keys_are_the_queries_where_earlier_ones_were_kept() -> None:
    step = next(iter(attentions(load("decoder").trace(ids=[105, 106, 107]).program)))
    longer = replace(step, keys=replace(step.keys, size=8), queries=replace(step.queries, size=3))
    assert own_keys(longer, np.arange(3)).tolist() == [5, 6, 7]


# Small pictures of heads: shares of groups
def pictured(name: str, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """The pictures of a step, and its weights."""
    trace = Model.load(name, device="cpu", max_length=256).trace(ids=[i % 7 for i in range(tokens)])
    step = attentions(trace.program)[0]
    return layer_measures(trace, step, Reader()).pictures, trace[step.name]


def test_pictures_of_few_tokens_are_the_weights_and_smaller_ones_shares_again() -> None:
    pictures, weights = pictured("encoder", 9)
    np.testing.assert_array_equal(pictures, weights)
    # smaller
    pictures, _ = pictured("encoder", 20)
    small = smaller(pictures[0], 7, 6)
    assert small.shape == (7, 6)
    np.testing.assert_allclose(small.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(smaller(pictures[0], 20, 20), pictures[0])


@pytest.mark.parametrize("tokens", [33, 64, 100])
def test_many_are_shares_of_groups_that_sum_to_one(tokens: int) -> None:
    pictures, weights = pictured("encoder", tokens)
    assert pictures.shape[1:] == (SIDE, SIDE)
    np.testing.assert_allclose(pictures.sum(axis=2), 1.0, rtol=1e-5)
    group = np.arange(tokens) * SIDE // tokens
    expected = weights[:, group == 3][:, :, group == 5].sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(pictures[:, 3, 5], expected, rtol=1e-5)


def test_what_a_mask_hides_is_blank_in_smaller_pictures_too() -> None:
    pictures, _ = pictured("decoder", 64)
    assert (np.isnan(pictures) == np.triu(np.ones((SIDE, SIDE), dtype=bool), 1)).all()
    # smaller
    pictures, _ = pictured("decoder", 8)
    assert (np.isnan(smaller(pictures[0], 4, 4)) == np.triu(np.ones((4, 4), dtype=bool), 1)).all()
    # the largest cell
    pictures, _ = pictured("decoder", 5)
    assert largest(pictures) == pytest.approx(float(np.nanmax(pictures[:, 1:])))
    assert largest(pictures[:, :1]) == 1.0


# Entropy of attention: known distributions, masks, padding, large matrices
def test_known_distributions_have_their_entropy() -> None:
    entropy = row_entropy(np.eye(5, dtype=np.float32))
    assert entropy.tolist() == [0.0] * 5
    assert not np.signbit(entropy).any()
    assert row_entropy(np.zeros((1, 4))).tolist() == [0.0]
    shares = relative_entropy(np.array([0.0, 1.0, 1.0]), np.array([1, 2, 4]))
    assert math.isnan(shares[0])
    assert shares[1:].tolist() == [1.0, 0.5]
    for keys in (1, 2, 7, 1024):
        assert row_entropy(np.full((3, keys), 1 / keys)) == pytest.approx([math.log2(keys)] * 3)


def model(architecture: str, **sizes: object) -> Model:
    return in_float64(architecture, vocab_size=16, **sizes)


def test_every_head_is_the_mean_of_its_rows_sampled_where_there_are_many() -> None:
    trace = model("encoder").trace(ids=[1, 2, 3, 4, 5])
    name = WEIGHTS.format("encoder")
    entropy = head_entropy(trace, name)
    weights = trace[name]
    assert entropy.bits == pytest.approx((-(weights * np.log2(weights)).sum(axis=-1)).mean(axis=-1))
    assert entropy.relative == pytest.approx(np.array(entropy.bits) / math.log2(5))
    assert (entropy.keys, entropy.most_keys, entropy.queries, entropy.real, entropy.sampled) == (3, 5, 5, 5, False)
    # sampled
    trace = model("encoder").trace(ids=[1, 2, 3, 4] * 4)
    entropy = head_entropy(trace, name, cells=8 * 16 * 4)
    assert entropy.sampled
    assert (entropy.queries, entropy.real) == (4, 16)
    assert entropy.bits == pytest.approx(row_entropy(trace[name][:, [0, 4, 8, 12]]).mean(axis=-1))


def test_causal_queries_that_see_fewer_than_three_keys_are_left_out_where_others_see_more() -> None:
    trace = model("decoder").trace(ids=[1, 2, 3, 4, 5])
    name = WEIGHTS.format("decoder")
    entropy = head_entropy(trace, name)
    rows = row_entropy(trace[name])
    assert entropy.bits == pytest.approx(rows[:, 2:].mean(axis=-1))
    assert entropy.relative == pytest.approx((rows[:, 2:] / np.log2([3, 4, 5])).mean(axis=-1))
    assert (entropy.queries, entropy.real) == (3, 5)
    # a short sentence
    entropy = head_entropy(model("decoder").trace(ids=[1, 2]), WEIGHTS.format("decoder"))
    assert (entropy.keys, entropy.queries) == (2, 1)
    one = head_entropy(model("decoder").trace(ids=[1]), WEIGHTS.format("decoder"))
    assert set(one.bits) == {0.0}
    assert all(map(math.isnan, one.relative))


def test_padding_changes_nothing_and_the_item_of_a_batch_is_read() -> None:
    padded = model("encoder", pad_id=0)
    name = WEIGHTS.format("encoder")
    short, long = (head_entropy(padded.trace(ids=ids), name) for ids in ([1, 2, 3, 4], [1, 2, 3, 4, 0, 0]))
    assert long.bits == pytest.approx(short.bits)
    assert long.relative == pytest.approx(short.relative)
    assert (long.most_keys, long.real) == (4, 4)
    # a batch
    name, both = WEIGHTS.format("encoder"), [[1, 2, 3, 4], [5, 6, 7, 8]]
    batch = model("encoder").trace(ids=both)
    for item, ids in enumerate(both):
        alone = head_entropy(model("encoder").trace(ids=ids), name)
        assert head_entropy(batch, name, item).bits == pytest.approx(alone.bits)


# Which tokens are special, which separate; and weights without the hidden ones
@pytest.mark.parametrize(
    ("folder", "special", "separating"),
    [
        ("bert", {"[CLS]", "[SEP]", "[PAD]"}, {"[SEP]", ",", "."}),
        ("gpt2", {"<|endoftext|>"}, {"<|endoftext|>", ","}),
        ("roberta", {"<s>", "</s>", "<pad>"}, {"</s>", ","}),
        ("t5", {"</s>", "<pad>"}, {"</s>"}),
    ],
)
def test_special_and_separating_tokens_of_a_vocabulary(folder: str, special: set[str], separating: set[str]) -> None:
    words = Model.load(REFERENCES / folder, device="cpu").vocabulary
    assert words is not None
    marks = {word for i, word in enumerate(words.words) if is_special(words, i)}
    assert special <= marks
    assert not marks & {"[MASK]", "<mask>", "[UNK]", "<unk>", "the"}
    parting = {word for i, word in enumerate(words.words) if is_separator(words, i)}
    assert separating & set(words.words) <= parting
    assert not parting & {"[CLS]", "<s>", "[PAD]", "<pad>", "the", "[MASK]", "<mask>"}
