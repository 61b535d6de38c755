"""The encoder–decoder: two token sequences, their masks, and what joins them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses

from tui_transformer.engine import parts
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

TEXT, TARGET = "The waves crashed", "against the shore!"
SOURCE_IDS, TARGET_IDS = [2, 3, 4, 5, 6], [0, 4, 6, 7]
CROSS = "decoder.0.cross_attention"
SIZES = {"d_model": 12, "heads": 3, "d_ff": 20}

ATTENTION = "query key value scores scaled masked weights context concat output residual norm"
FEED_FORWARD = "hidden activation output residual norm"
EMBEDDING = "embedding.tokens embedding.positions embedding.output"


def load(**sizes: object) -> Model:
    return Model.load("encoder-decoder", **{"device": "cpu", "dtype": "float64", **SIZES, **sizes})


def trace_of(source: list[int], target: list[int], **sizes: object) -> Trace:
    return load(**sizes).trace(ids=source, decoder_ids=target)


def ordered(scope: str, steps: str, norm: str) -> list[str]:
    """Steps of a sublayer; the norm comes first where it is before the sublayer."""
    names = steps.split()
    return [f"{scope}.{name}" for name in (names if norm == "post" else [names[-1], *names[:-1]])]


def layer(scope: str, sublayers: tuple[str, ...], norm: str) -> list[str]:
    steps = {"feed_forward": FEED_FORWARD}
    names = [name for each in sublayers for name in ordered(f"{scope}.{each}", steps.get(each, ATTENTION), norm)]
    return [*names, f"{scope}.output"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_names_are_in_the_order_of_computation(norm):
    final = norm == "pre"
    wanted = ["tokens", *EMBEDDING.split()]
    wanted += layer("encoder.0", ("self_attention", "feed_forward"), norm) + ["encoder.norm"] * final
    wanted += ["decoder.tokens", *(f"decoder.{name}" for name in EMBEDDING.split())]
    wanted += layer("decoder.0", ("self_attention", "cross_attention", "feed_forward"), norm)
    wanted += ["decoder.norm"] * final + ["output.logits", "output.probabilities"]
    assert load(norm=norm).program(5, 4).names == tuple(wanted)


def test_names_are_of_layers_of_either_stack_and_axes_name_the_sequence_that_they_count():
    names = load(layers=3, decoder_layers=2).program(2, 2).names
    layers = {match[0] for name in names if (match := re.match(r"(en|de)coder\.\d", name))}
    assert layers == {"encoder.0", "encoder.1", "encoder.2", "decoder.0", "decoder.1"}
    program = load().program(5, 4)
    sequences = {name: [axis.sequence for axis in program.axes(name)] for name in program.names}
    assert sequences["tokens"] == ["tokens"]
    assert sequences["decoder.tokens"] == ["decoder tokens"]
    assert sequences["encoder.0.output"] == ["tokens", ""]
    assert sequences["decoder.0.output"] == sequences["output.logits"] == ["decoder tokens", ""]
    assert sequences[f"{CROSS}.weights"] == ["", "decoder tokens", "tokens"]
    assert sequences[f"{CROSS}.key"] == ["", "tokens", ""]
    trace, lengths = trace_of(SOURCE_IDS, TARGET_IDS), {"tokens": 5, "decoder tokens": 4}
    for name in program.names:
        assert trace[name].shape == tuple(lengths.get(axis.sequence, axis.size) for axis in program.axes(name)), name
    trace = trace_of([3, 5], [5, 3])
    assert np.array_equal(trace["embedding.tokens"], trace["decoder.embedding.tokens"][::-1])
    readers = [step.name for step in trace.program.readers("embedding.tokens.weight")]
    assert readers == ["embedding.tokens", "decoder.embedding.tokens"]


def test_cross_attention_is_computed_from_the_encoder_output():
    program = load(norm="pre", bias=True).program(5, 4)
    read = {name: program.step(f"{CROSS}.{name}").inputs[0] for name in ("norm", "query", "key", "value", "residual")}
    before, memory = "decoder.0.self_attention.residual", "encoder.norm"
    assert list(read.values()) == [before, f"{CROSS}.norm", memory, memory, before]


def test_the_decoder_sees_no_later_token_and_every_row_of_the_output_the_whole_source():
    trace, other = trace_of(SOURCE_IDS, [0, 4, 6, 7]), trace_of(SOURCE_IDS, [0, 4, 1, 2])
    assert not trace["decoder.0.self_attention.weights"][:, *np.triu_indices(4, 1)].any()
    assert trace[f"{CROSS}.weights"].all()
    assert trace["encoder.0.self_attention.weights"].all()
    np.testing.assert_allclose(trace["output.logits"][:2], other["output.logits"][:2], rtol=1e-12)
    assert not np.allclose(trace["output.logits"][2:], other["output.logits"][2:])
    trace, other = trace_of([2, 3, 4, 5, 6], TARGET_IDS), trace_of([2, 3, 4, 5, 7], TARGET_IDS)
    assert not np.isclose(trace["output.logits"], other["output.logits"]).all(axis=-1).any()


def test_padding_is_hidden_but_for_a_start_that_is_the_pad_and_alone_gives_numbers():
    trace, short = (trace_of(ids, TARGET_IDS, pad_id=1) for ids in ([2, 3, 4, 1, 1], [2, 3, 4]))
    hidden = np.isneginf(trace[f"{CROSS}.masked"])
    assert np.array_equal(hidden, np.broadcast_to([0, 0, 0, 1, 1], hidden.shape))
    assert not trace[f"{CROSS}.weights"][..., 3:].any()
    np.testing.assert_allclose(trace["output.logits"], short["output.logits"], rtol=1e-10)
    # of the target
    trace = trace_of([2, 3], [1, 4, 5, 1, 1], pad_id=1)
    assert trace["decoder.input.visible"].tolist() == [True, True, True, False, False]
    assert not trace["decoder.0.self_attention.weights"][..., 3:].any()
    assert trace_of([2, 3], [1, 1], pad_id=1)["decoder.input.visible"].tolist() == [True, False]
    assert trace_of([1, 1], [1, 1], pad_id=1)["input.visible"].tolist() == [False, False]
    # a source of nothing else
    trace = trace_of([1, 1], TARGET_IDS, pad_id=1)
    assert not trace[f"{CROSS}.weights"].any()
    assert all(np.isfinite(trace[name]).all() for name in trace if not name.endswith(".masked"))


@pytest.mark.parametrize("targets", [[[0, 4, 6], [0, 5, 1], [0, 2, 2]], [0, 4, 6]])
def test_a_batch_is_its_pairs_one_by_one(targets):
    model, rows = load(pad_id=1), [[2, 5, 3, 6], [7, 3, 1, 1], [1, 2, 2, 3]]
    batch = model.trace(ids=rows, decoder_ids=targets)
    for i, row in enumerate(rows):
        single = model.trace(ids=row, decoder_ids=targets[i] if isinstance(targets[0], list) else targets)
        for name in batch:
            assert batch[name].shape == (3, *single[name].shape)
            np.testing.assert_allclose(batch[name][i], single[name], rtol=1e-10, atol=1e-14, err_msg=name)


def test_the_decoder_begins_with_its_start_token_or_that_of_the_vocabulary_or_the_first(tmp_path):
    model = load(start_id=4)
    assert model.trace(TEXT)["decoder.tokens"].tolist() == [4]
    assert model.trace(TEXT, decoder_text=TARGET)["decoder.tokens"].tolist() == [4, 5, 1, 6, 7]
    assert model.trace(TEXT, decoder_text="")["decoder.tokens"].tolist() == [4]
    assert model.trace(TEXT, decoder_ids=[3, 4])["decoder.tokens"].tolist() == [3, 4]
    assert load().trace(TEXT)["decoder.tokens"].tolist() == [0]
    (tmp_path / "words.txt").write_text("[PAD] a [BOS] b\n", encoding="utf-8")
    model = load(vocabulary=tmp_path / "words.txt")
    assert model.word(model.config.start_id) == "[BOS]"


def test_the_frame_of_a_sentence_is_not_around_the_target(tmp_path):
    (tmp_path / "words.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nwave\n##s\nsea\n", encoding="utf-8")
    trace = load(vocabulary=tmp_path / "words.txt").trace("waves", decoder_text="sea [SEP] waves")
    assert trace["tokens"].tolist() == [2, 4, 5, 3]
    assert trace["decoder.tokens"].tolist() == [0, 6, 3, 4, 5]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"decoder_ids": [8]}, "token ID 8 is outside the vocabulary: IDs go from 0 to 7"),
        ({"decoder_ids": [1.5]}, "whole numbers"),
        ({"decoder_ids": []}, "there are no token IDs"),
        ({"decoder_ids": [[1], [2], [3]]}, "3 rows of decoder IDs do not fit 2: give one, or one for each sentence"),
        ({"decoder_ids": [1] * 9}, "9 tokens are more than the 8 that the model reads"),
        ({"decoder_text": "the " * 8}, "9 tokens are more than the 8 that the model reads"),
    ],
)
def test_targets_that_cannot_be_are_refused(given, says):
    refuses(says, lambda: load(max_length=8).trace(ids=[[2, 3], [4, 5]], **given))


def test_a_target_and_its_source_fit_the_memory_or_are_cut(monkeypatch):
    with pytest.raises(UsageError, match="give the decoder either a text or token IDs"):
        load().trace(TEXT, decoder_text=TARGET, decoder_ids=[0])
    trace = load(max_length=4).trace("the waves", decoder_text="the waves crashed against the shore", cut=True)
    assert trace["decoder.tokens"].tolist() == [0, 1, 2, 3]
    encoding = load(max_length=4, start_id=7).encode_target("the waves crashed against the shore", cut=True)
    assert [token.text for token in encoding.tokens] == ["!", "the", "waves", "crashed"]
    assert encoding.cut == 3
    # memory
    model = load()
    monkeypatch.setattr(parts, "available_memory", lambda: 100)
    refuses("9 tokens need", lambda: model.trace(ids=SOURCE_IDS, decoder_ids=TARGET_IDS))


@pytest.mark.parametrize("name", ["encoder", "decoder", "attention"])
@pytest.mark.parametrize("given", [{"decoder_text": "a"}, {"decoder_text": ""}, {"decoder_ids": [0]}])
def test_a_model_of_one_sentence_takes_no_second_one(name, given):
    model = Model.load(name, device="cpu")
    with pytest.raises(InputError, match=f"^{name} reads no second sentence"):
        model.trace(ids=[1] if model.config.vocab_size else None, **given)


@pytest.mark.parametrize(
    "sizes",
    [
        {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True},
        {"positions": "none", "scale_embedding": True, "causal": True},
    ],
)
def test_choices_of_a_model_hold_for_both_stacks(sizes):
    weights = load(layers=2, decoder_layers=2, **sizes).program(5, 4).weights
    assert ("encoder.norm.weight" in weights) == ("decoder.norm.weight" in weights) == (sizes.get("norm") == "pre")
    assert ("decoder.embedding.positions.weight" in weights) == (sizes["positions"] == "learned")
    assert ("output.logits.weight" in weights) != sizes.get("tie_output", False)


def test_a_saved_and_a_changed_model_keep_both_stacks(tmp_path):
    model = load(decoder_layers=2, start_id=3)
    model.save(tmp_path / "saved")
    assert in_float64(tmp_path / "saved").config == model.config
    changed = load(decoder_layers=2, start_id=3).changed(layers=3)
    assert (changed.config.layers, changed.config.decoder_layers) == (3, 2)
    assert changed.has_decoder
