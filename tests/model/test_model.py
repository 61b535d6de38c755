"""Models: weights from a seed, token IDs, padding and masks, and settings changed."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.sequence import Lengths

TEXT = "The waves crashed forcefully against the shore!"
SCOPE = "encoder.0.self_attention"
WIDE = {"vocabulary": "dog", "d_model": 8, "heads": 2}


def weights(model: Model) -> dict[str, np.ndarray]:
    program = model.program(1)
    return {name: model.weights.get(name, program.shape(name)) for name in program.weights}


def test_both_precisions_have_the_same_weights():
    single, double = (weights(Model.load("encoder", device="cpu", dtype=dtype)) for dtype in ("float32", "float64"))
    assert all(np.array_equal(single[name], double[name]) for name in single)
    assert {array.dtype for array in double.values()} == {np.dtype(np.float64)}


def test_a_seed_gives_the_same_weights_again_and_another_seed_others():
    first, again, other = (weights(Model.load("encoder", device="cpu", seed=seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert [name for name in first if np.array_equal(first[name], other[name])] == [
        name for name in first if ".norm." in name
    ]


@pytest.mark.parametrize("change", [{"d_ff": 16}, {"layers": 3}, {"heads": 2}, {"activation": "gelu"}, {"bias": True}])
def test_changing_one_size_leaves_the_other_weights(change):
    before, after = weights(Model.load("encoder", device="cpu")), weights(Model.load("encoder", device="cpu", **change))
    same_shape = [name for name in before if before[name].shape == after[name].shape]
    assert len(same_shape) >= len(before) - 2
    assert all(np.array_equal(before[name], after[name]) for name in same_shape)


def test_random_weights_have_mean_0_and_the_deviation():
    table = weights(Model.load("encoder", device="cpu", d_ff=4096))["encoder.0.feed_forward.hidden.weight"]
    assert abs(float(table.mean())) < 0.01
    assert float(table.std()) == pytest.approx(0.2, rel=0.02)


def test_weights_of_one_shape_differ_by_their_names():
    table = weights(Model.load("encoder", device="cpu", layers=2))
    square = [array.tobytes() for name, array in table.items() if array.shape == (8, 8)]
    assert len(set(square)) == len(square)


def test_norms_begin_as_the_identity():
    table = weights(Model.load("encoder", device="cpu"))
    assert (table[f"{SCOPE}.norm.weight"] == 1).all()
    assert (table[f"{SCOPE}.norm.bias"] == 0).all()


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_head_has_no_weight_of_its_own(tied):
    assert ("output.logits.weight" in Model.load("encoder", device="cpu", tie_output=tied).program(1).weights) != tied


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([8], "token ID 8 is outside the vocabulary: IDs go from 0 to 7"),
        ([1, -1], "token ID -1 is outside"),
        ([2**62], "is outside the vocabulary"),
        ([2**64], "whole numbers, in rows of the same length"),
        ([1.0, 2.0], "whole numbers, in rows of the same length"),
        ([1.5], "whole numbers"),
        (["1"], "whole numbers"),
        ([True], "whole numbers"),
        ([None], "whole numbers"),
        ([[1, 2], [3]], "in rows of the same length"),
        ([[[1]]], "in rows of the same length"),
        ([], "there are no token IDs"),
        ([[], []], "there are no token IDs"),
        ([1] * 4097, "4097 tokens are more than the 4096 that the model reads"),
    ],
)
def test_ids_that_cannot_be_are_refused(ids, says):
    with pytest.raises(InputError, match=says):
        Model.load("encoder", device="cpu").trace(ids=ids)


@pytest.mark.parametrize("given", [{}, {"text": TEXT, "ids": [1]}])
def test_either_a_text_or_ids_are_given(given):
    with pytest.raises(UsageError, match="either a text or token IDs"):
        Model.load("encoder", device="cpu").trace(**given)


def test_a_text_without_tokens_is_refused():
    with pytest.raises(InputError, match="no tokens"):
        Model.load("encoder", device="cpu").trace("  ")


def test_a_text_that_is_too_long_is_refused_or_cut():
    model = Model.load("encoder", device="cpu", max_length=4)
    with pytest.raises(InputError):
        model.trace(TEXT)
    assert model.trace(TEXT, cut=True)["tokens"].shape == (4,)


def padded(ids: list[int], **sizes: object):
    return Model.load("encoder", device="cpu", pad_id=1, **sizes).trace(ids=ids)


@pytest.mark.parametrize(
    ("ids", "visible"),
    [
        ([2, 3, 1, 1], [1, 1, 0, 0]),
        ([2, 3, 4, 5], [1, 1, 1, 1]),
        ([1, 2, 1, 3], [0, 1, 1, 1]),
        ([1, 2, 1, 3, 1], [0, 1, 1, 1, 0]),
        ([1, 1], [0, 0]),
    ],
)
def test_runs_of_pads_at_the_beginning_and_at_the_end_are_padding_and_others_are_not(ids, visible):
    trace = padded(ids)
    assert trace["input.visible"].tolist() == [bool(each) for each in visible]
    hidden = np.isneginf(trace[f"{SCOPE}.masked"])
    assert np.array_equal(hidden, np.broadcast_to(~trace["input.visible"], hidden.shape))


def test_padding_changes_nothing_for_the_tokens_before_it():
    short, long = padded([2, 3, 4]), padded([2, 3, 4, 1, 1])
    np.testing.assert_allclose(long["output.logits"][:3], short["output.logits"], rtol=1e-5, atol=1e-6)
    assert not long[f"{SCOPE}.weights"][:, :, 3:].any()


def test_a_row_that_may_look_nowhere_is_zero():
    trace = padded([1, 1, 1])
    assert not trace[f"{SCOPE}.weights"].any()
    assert not trace[f"{SCOPE}.context"].any()
    assert all(np.isfinite(trace[name]).all() for name in trace if not name.endswith(".masked"))


def test_rows_of_a_batch_are_padded_each_in_its_own_way():
    visible = padded([[2, 3, 1], [2, 1, 1], [1, 2, 3]])["input.visible"]
    assert visible.tolist() == [[True, True, False], [True, False, False], [False, True, True]]


def test_the_padding_mask_can_be_left_out():
    trace = padded([2, 3, 1], padding_mask=False)
    assert trace["input.visible"].all()
    assert trace[f"{SCOPE}.weights"].min() > 0


def test_without_a_pad_word_nothing_is_padding():
    model = Model.load("encoder", device="cpu", pad_id=None)
    assert model.trace(ids=[2, 1, 1])["input.visible"].all()


@pytest.mark.parametrize(("name", "sizes"), [("decoder", {}), ("encoder", {"causal": True})])
def test_a_causal_model_sees_no_later_key(name, sizes):
    model = Model.load(name, device="cpu", layers=2, **sizes)
    trace, other = model.trace(ids=[2, 3, 4, 5, 6]), model.trace(ids=[2, 3, 4, 7, 7])
    weights = trace[f"{name}.0.self_attention.weights"]
    assert not weights[:, *np.triu_indices(5, 1)].any()
    assert weights[:, *np.tril_indices(5)].all()
    np.testing.assert_allclose(trace["output.logits"][:3], other["output.logits"][:3], rtol=1e-5)


def test_rows_of_weights_sum_to_1():
    trace = Model.load("encoder", device="cpu").trace(TEXT)
    for name in (f"{SCOPE}.weights", "output.probabilities"):
        np.testing.assert_allclose(trace[name].sum(axis=-1), 1, rtol=1e-6)


def test_the_embedding_is_scaled_where_the_model_scales():
    plain, scaled = (
        Model.load("encoder", device="cpu", d_model=16, scale_embedding=scale).trace(ids=[2, 3])["embedding.tokens"]
        for scale in (False, True)
    )
    np.testing.assert_allclose(scaled, 4 * plain, rtol=1e-6)


def test_changed_keeps_the_other_settings():
    model = Model.load("encoder", device="cpu", seed=5, d_ff=32, **WIDE)
    changed = model.changed(layers=2)
    assert (changed.config.layers, changed.config.d_ff, changed.config.heads) == (2, 32, 2)
    assert (changed.seed, changed.vocabulary) == (5, model.vocabulary)
    assert model.config.layers == 1


def test_changed_vocabulary_changes_the_table():
    changed = Model.load("encoder", device="cpu").changed(vocabulary="dog")
    assert changed.vocabulary.name == "dog"
    assert changed.config.vocab_size == changed.vocabulary.size


def test_changed_precision_and_seed():
    model = Model.load("encoder", device="cpu", seed=1)
    assert model.changed(dtype="float64").backend.dtype == np.float64
    assert model.changed(seed=2).seed == 2
    assert model.changed(seed=0).seed == 0


def test_a_change_that_cannot_be_leaves_the_model_as_it_was():
    model = Model.load("encoder", device="cpu")
    with pytest.raises(UsageError):
        model.changed(heads=3)
    assert model.trace(TEXT)["output.logits"].shape == (8, 8)


def test_a_model_from_a_folder_changes_its_precision_only(reference):
    model = reference.model("float64")
    assert model.changed(dtype="float32").backend.dtype == np.float32
    with pytest.raises(UsageError, match="d_ff"):
        model.changed(d_ff=8)
    with pytest.raises(UsageError, match="seed"):
        model.changed(seed=1)


def test_the_attention_example_can_be_changed():
    changed = Model.load("attention", device="cpu").changed(causal=False, dtype="float64")
    assert (changed.config.causal, changed.backend.dtype) == (False, np.float64)


def test_programs_are_made_once_for_a_length():
    model = Model.load("encoder", device="cpu")
    assert model.program(5) is model.program(5)
    assert model.program(6).shape("tokens") == (6,)
    assert model.config.program(Lengths(5)).names == model.program(5).names


def test_programs_of_two_sequences_are_made_once_for_both_lengths():
    model = Model.load("encoder-decoder", device="cpu")
    assert model.program(5, 3) is model.program(5, 3)
    assert [model.program(5, 3).shape(name) for name in ("tokens", "decoder.tokens")] == [(5,), (3,)]
