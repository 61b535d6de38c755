"""A list of mistakes that people make, each planted in an independent implementation: place and cause are right.

Every mistake is seen in a dump of every step of each model, and once in a dump of fewer steps; the models and the parts
take turns. With `-m slow` every mistake is tried in every part of every model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from dumping import (
    GGML,
    IDS,
    LENS,
    MODULES,
    PARTS,
    batched,
    blamed,
    computed,
    dumped,
    hidden_states,
    in_few_bits,
    model_of,
    renamed,
)
from reference import with_weights
from small import Arrays, encoder, llama

from tui_transformer.diagnosis import diagnose
from tui_transformer.diagnosis.diagnosis import First
from tui_transformer.diagnosis.dumps.dump import BFLOAT16, FLOAT16, FLOAT32, Dump, Precision, held
from tui_transformer.engine.number_format import spoken
from tui_transformer.model import Model

ALL = ("post", "pre", "llama")
NORMED = ("post", "pre")
AT = "self_attention."
PLANTED = [
    # the step that is to be blamed, the models, and what is planted; behind a colon the cause that is to be named
    ("norm", ALL, "norm-variance-divided norm-sum norm-kind norms-exchanged:weight-exchanged norm-missing"),
    ("norm", ALL, "norm-epsilon norm-gamma-missing"),
    ("norm", NORMED, "norm-whole:norm-axis norm-division-missing norm-axis"),
    ("norm", NORMED, "norm-beta-missing norm-variance norm-exchanged"),
    ("norm", ("llama",), "norm-gamma-offset"),
    (AT + "scores", ALL, "key-d-by-n:keys-reshaped key-head-d-by-n:keys-reshaped key-row:key-index"),
    (AT + "scores", NORMED, "key-no-head:key-index"),
    (AT + "scores", ALL, "key-not-multiplied:key-index query-row:query-index query-no-head:query-index"),
    (AT + "context", ALL, "value-d-by-n:value-index value-head-d-by-n:value-index value-row:value-index"),
    (AT + "context", NORMED, "value-no-head:value-index"),
    (AT + "context", ALL, "value-not-multiplied:value-index value-own-row:value-index"),
    (AT + "scores", ("llama",), "keys-first keys-tiled"),
    (AT + "scores", ALL, "scores-transposed"),
    (AT + "scaled", ALL, "scale-integer scale-size scale-multiplied scale-missing scale-d_model scale-d_k"),
    (AT + "weights", ALL, "softmax-base softmax-twice softmax-sum-missing softmax-rescale-missing"),
    (AT + "weights", ("post",), "softmax-missing softmax-logarithm"),
    (AT + "weights", ALL, "softmax-exponential-missing"),
    (AT + "weights", ("pre", "llama"), "mask-after-softmax"),
    (AT + "masked", ("pre", "llama"), "mask-zero mask-strict:mask-shifted mask-missing mask-flipped"),
    (AT + "masked", ("pre",), "mask-finite mask-before-scale mask-shifted mask-on-itself:mask-shifted"),
    (AT + "weights", ALL, "softmax-matrix:softmax-axis softmax-all-heads:softmax-axis"),
    (AT + "weights", ALL, "softmax-axis softmax-heads:softmax-axis"),
    (AT + "context", ALL, "value-is-key:qkv-exchanged attention-transposed"),
    (AT + "query", ALL, "weight-transposed heads-order"),
    (AT + "query", NORMED, "bias-missing bias-twice"),
    (AT + "key", ALL, "weight-exchanged"),
    (AT + "output", ALL, "projection-missing"),
    ("", ALL, "norm-place layer-repeated heads-read:heads-order"),
    ("output.logits", ALL, "logits-d_model:logits-scaled logits-d_k:logits-scaled"),
    (AT + "context", ALL, "context-short:sum-short"),
    (AT + "scores", ALL, "scores-short:sum-short"),
    ("", ALL, "sum-short"),
    ("residual", ALL, "residual-twice residual-missing residual-place"),
    ("feed_forward.residual", ALL, "sublayer-missing"),
    ("", ALL, "layer-missing"),
    ("feed_forward.gated", ("llama",), "gate-missing"),
    ("feed_forward.activation", ("llama",), "gate-swapped"),
    ("feed_forward.activation", ALL, "activation"),
    ("feed_forward.activation", ("pre",), "gelu-tanh"),
    ("feed_forward.output", NORMED, "activation-last"),
    ("embedding.tokens", ALL, "token-off-by-one token-before:token-off-by-one one-token:token-off-by-one"),
    ("embedding.tokens", ALL, "tokens-late:tokens-shifted tokens-early:tokens-shifted tokens-rolled:tokens-shifted"),
    ("embedding.tokens", NORMED, "embedding-transposed"),
    ("embedding.tokens", ("post",), "embedding-unscaled"),
    ("embedding.tokens", ("pre",), "embedding-scaled"),
    ("embedding.output", NORMED, "position-missing"),
    ("embedding.", NORMED, "embedding-scaled-late"),
    ("embedding.positions", ("post",), "position-integer:position-exponent position-multiplied:position-exponent"),
    ("embedding.positions", ("post",), "position-swapped position-twice position-halves position-exponent"),
    ("embedding.positions", ("post",), "position-base"),
    ("", ALL, "position-off-by-one"),
    ("", ("post", "llama"), "position-before:position-off-by-one"),
    (AT + "query_rotated", ("llama",), "rotary-exponent rotary-integer:rotary-exponent rotary-width:rotary-exponent"),
    (AT + "query_rotated", ("llama",), "rotary-axis rotary-swapped rotary-direction rotary-missing rotary-sign"),
    (AT + "query_rotated", ("llama",), "rotary-interleaved rotary-theta"),
    (AT + "context", ("llama",), "rotary-values"),
    ("", ALL, "tf32"),
    ("embedding.tokens", ALL, "float16 bfloat16 weights-bfloat16:bfloat16"),
]
MISTAKES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    planted.partition(":")[0]: (planted.partition(":")[2] or planted, step, models)
    for step, models, names in PLANTED
    for planted in names.split()
}
"""By what is planted: the cause, the step, the models."""
BEHIND = ("layer-missing", "logits-d_model", "logits-d_k")
UNSEEN = {(fault, part) for fault in BEHIND for part in ("hidden states", "projections")}
"""A dump of layers alone, without one and without what comes after, is right as far as it goes."""

ELSEWHERE = {("llama", "position-before"), ("llama", "position-off-by-one")}
"""Scores depend on the distance alone: where all places are one less or more, only what is turned is another."""

ALIKE = {"rotary-swapped": "rotary-direction"}
"""Turning by 90° − θ gives the scores that turning backwards gives: the turned columns alone are others."""

Case = tuple[str, str, str]


def cases() -> Iterator[Case]:
    """Every mistake in every step of every model, and in one of the other parts: models and parts take turns."""
    fewer = [part for part in PARTS if part != "every step"]
    for i, (fault, (_, _, models)) in enumerate(MISTAKES.items()):
        yield from ((name, fault, "every step") for name in models)
        part = fewer[i % len(fewer)]
        name = next(each for each in (models[(i + 1) % len(models)], *models) if (each, fault) not in ELSEWHERE)
        yield name, fault, "logits" if (fault, part) in UNSEEN else part


def further_cases() -> Iterator[Case]:
    """Every mistake in every other part of every model."""
    for fault, (_, _, models) in MISTAKES.items():
        for name, part in product(models, PARTS):
            if part != "every step" and (fault, part) not in UNSEEN and (name, fault) not in ELSEWHERE:
                yield name, fault, part


def found(name: str, fault: str, part: str) -> None:
    cause, step, _ = MISTAKES[fault]
    first = blamed(diagnose(dumped(PARTS[part](computed(name, fault))), model_of(name)).first)
    if part != "every step":
        cause = ALIKE.get(fault, cause)
    else:
        assert step in first.step, first.says
    assert first.cause == cause, first.says


@pytest.mark.parametrize(("name", "fault", "part"), cases())
def test_place_and_cause_of_a_mistake_are_right(name: str, fault: str, part: str) -> None:
    found(name, fault, part)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault", "part"), [case for case in further_cases() if case not in {*cases()}])
def test_place_and_cause_are_right_in_every_part(name: str, fault: str, part: str) -> None:
    found(name, fault, part)


NAMES = {"modules": MODULES, "TransformerLens": LENS, "ggml": GGML}
NAMELESS = {
    *(("modules", fault) for fault in ("position-off-by-one", "position-before", "rotary-swapped")),
    *(("TransformerLens", fault) for fault in ("logits-d_model", "logits-d_k")),
}
"""Mistakes in what a convention has no name for: rotated queries, logits."""

OF_LLAMA = ["", *(fault for fault, (_, _, models) in MISTAKES.items() if "llama" in models)]
WRITTEN = [
    pytest.param(names, fault, marks=() if i % 3 == turn else pytest.mark.slow)
    for i, fault in enumerate(OF_LLAMA)
    for turn, names in enumerate(NAMES)
    if (names, fault) not in NAMELESS
]


@pytest.mark.parametrize(("names", "fault"), WRITTEN)
def test_a_mistake_is_named_in_every_convention(names: str, fault: str) -> None:
    dump = dumped(batched(renamed(computed("llama", fault), NAMES[names])))
    first = diagnose(dump, model_of("llama")).first
    assert (first and first.cause) == (MISTAKES[fault][0] if fault else None), first


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("fault", ["mask-strict", "mask-added-strict", "value-is-key", "value-is-query"])
def test_a_row_without_a_key_and_parts_that_are_read_for_others_are_named_in_every_part(fault: str, part: str) -> None:
    arrays = encoder(model_of("pre"), IDS, frozenset({fault}))  # float64: a number that is added leaves the scores
    first = blamed(diagnose(dumped(PARTS[part](arrays)), model_of("pre")).first)
    assert first.cause == ("mask-shifted" if fault.startswith("mask") else "qkv-exchanged"), first.says
    assert fault != "value-is-key" or "when key is read in place of value" in first.says


# Numbers that do not fit


@np.errstate(all="ignore")
def large(name: str, by: float, fault: str, dtype: type) -> tuple[Arrays, Model]:
    """What is computed of larger queries, and the model that has them."""

    def larger(weight: str, array: np.ndarray) -> np.ndarray:
        return array * np.float32(by if weight.endswith(".query.weight") else 1.0)

    model = with_weights(model_of(name), larger)
    return (llama if name == "llama" else encoder)(model, IDS, frozenset({fault} - {""}), dtype), model


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", ALL)
def test_exponentials_that_overflow_are_named(name: str, part: str) -> None:
    arrays, model = large(name, 60, "softmax-overflow", np.float32)
    first = blamed(diagnose(dumped(PARTS[part](arrays)), model).first)
    assert first.cause == "softmax-overflow", first.says
    assert "take the row's largest score off" in first.says
    if part == "every step":
        assert first.step.endswith("self_attention.weights")


def test_of_large_scores_the_overflow_comes_first_and_a_right_softmax_gives_nothing() -> None:
    for name in ALL:
        arrays, model = large(name, 60, "", np.float32)
        assert diagnose(dumped(arrays), model).first is None
    # not a number follows from one before
    arrays, model = large("post", 60, "softmax-overflow", np.float32)
    verdicts = {step.step: step.verdict for step in diagnose(dumped(arrays), model).steps}
    assert verdicts["encoder.1.self_attention.weights"] == "first"
    assert verdicts["encoder.1.self_attention.output"] == "follows"


@pytest.mark.parametrize("precision", [FLOAT16, FLOAT32])
@pytest.mark.parametrize("name", ALL)
def test_numbers_beyond_float16_are_named_where_they_first_overflow(name: str, precision) -> None:
    arrays, model = large(name, 30000, "", np.float16)
    first = blamed(diagnose(dumped(arrays, precision), model).first)
    assert first.cause == "float16-overflow", first.says
    assert first.step.endswith("self_attention.query")
    assert "65504" in first.says


def test_roundings_to_few_bits_are_seen_and_what_is_none_is_not_called_one() -> None:
    # a mistake behind roundings to float16
    arrays = encoder(model_of("post"), IDS, frozenset({"scale-d_model"}), np.float16)
    first = blamed(diagnose(dumped(arrays), model_of("post")).first)
    assert first.cause == "scale-d_model"
    assert first.step == "encoder.0.self_attention.scaled"
    assert first.says.endswith("(Its numbers are rounded to float16.)")
    # few bits in printed numbers
    arrays = encoder(model_of("post"), IDS, frozenset(), np.float16)
    printed = {name: np.vectorize(lambda x: float(f"{x:.6g}"))(array) for name, array in hidden_states(arrays).items()}
    first = blamed(diagnose(dumped(printed, Precision("6 digits", 5e-6)), model_of("post")).first)
    assert first.cause == "float16"
    arrays = computed("post")
    name = "encoder.0.self_attention.output"
    noise = np.random.default_rng(0).normal(0, 2e-4, arrays[name].shape).astype(np.float32)
    arrays[name] = arrays[name] * (1 + noise)
    first = blamed(diagnose(dumped(arrays), model_of("post")).first)
    assert first.step == name
    assert first.cause is None


# Right dumps


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", ALL)
def test_right_dumps_give_nothing_nor_those_that_are_stored_or_computed_in_few_bits(name: str, part: str) -> None:
    arrays = PARTS[part](computed(name))
    right = diagnose(dumped(arrays), model_of(name))
    assert right.first is None, right.first
    assert all(step.verdict == "agrees" for step in right.steps)
    for precision in (FLOAT16, BFLOAT16):
        assert diagnose(dumped(in_few_bits(arrays, precision), precision), model_of(name)).first is None
    # computed in them too
    run = llama if name == "llama" else encoder
    halves = run(model_of(name), IDS, frozenset(), np.float16)
    assert diagnose(dumped(PARTS[part](halves), FLOAT16), model_of(name)).first is None
    brain = run(model_of(name), IDS, frozenset({"bfloat16", "weights-bfloat16"}), np.float32)
    assert diagnose(dumped(PARTS[part](brain), BFLOAT16), model_of(name)).first is None


@pytest.mark.parametrize("precision", [FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", ALL)
def test_coarse_dumps_are_not_blamed_for_their_rounding(precision: Precision, name: str) -> None:
    arrays = in_few_bits(computed(name, "scale-d_model"), precision)
    first = blamed(diagnose(dumped(arrays, precision), model_of(name)).first)
    assert first.cause == "scale-d_model", first


# Hidden scores, and padding

PADDED = [5, 1, 3, 7, 2, 0, 0]
MASKED = "encoder.0.self_attention.masked"


def padded(fault: str = "") -> tuple[Arrays, Model]:
    """What a program computes; where it is right, whatever it likes stands in the rows of the padding."""
    model = model_of("post")
    model = dataclasses.replace(model, config=dataclasses.replace(model.config, pad_id=0))
    arrays = encoder(model, PADDED, frozenset({fault} - {""}), np.float32)
    real = np.arange(len(PADDED)) < (7 if fault else 5)
    return {key: np.where(real[:, None], array, 9.0).astype(np.float32) for key, array in arrays.items()}, model


def first_of(arrays: Arrays, model: Model) -> First | None:
    return diagnose(dumped(arrays, input_ids=PADDED), model).first


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("fault", ["", "mask-missing", "mask-finite", "mask-zero", "scale-d_model", "key-d-by-n"])
def test_mistakes_in_a_padded_sentence_are_named(fault: str, part: str) -> None:
    arrays, model = padded(fault)
    first = first_of(PARTS[part](arrays), model)
    assert (first and first.cause) == (MISTAKES.get(fault, (fault,))[0] or None), first


@pytest.mark.parametrize("fault", ["", "mask-missing"])
def test_padding_that_a_mask_or_an_id_says_is_not_compared_whatever_stands_there(fault: str) -> None:
    arrays, model = padded(fault)
    anything = np.arange(len(PADDED))[:, None] >= 5
    arrays |= {name: np.where(anything, 9.0, array) for name, array in arrays.items() if array.ndim == 2}
    for given, read in (({}, model), ({"attention_mask": [[1, 1, 1, 1, 1, 0, 0]]}, model_of("post"))):
        first = diagnose(dumped(arrays, input_ids=PADDED, **given), read).first
        assert (first and first.cause) == (fault or None), first


def test_numbers_of_padding_are_compared_as_they_count() -> None:
    arrays, model = padded()
    arrays[MASKED][:, 0, 6] = 0.25  # a real query, a padded key
    first = blamed(first_of(arrays, model))
    assert first.step == MASKED
    assert "0.25 where the model has −∞" in first.says
    arrays, model = padded()
    arrays[MASKED][1, 2, 1] = -np.inf
    first = blamed(first_of(arrays, model))
    assert (first.step, first.index) == (MASKED, (1, 2, 1))
    assert "−∞ where the model has " in first.says
    arrays, model = padded()
    arrays["encoder.0.self_attention.weights"][0, 0, 5] = 0.01
    first = blamed(first_of(arrays, model))
    assert first.step == "encoder.0.self_attention.weights"


@pytest.mark.parametrize(("number", "same"), [(-1e9, True), (-1e4, True), (-5000.0, True), (-4999.0, False)])
def test_a_number_that_stands_for_infinity_is_said_though_padding_holds_anything(number: float, same: bool) -> None:
    arrays, model = padded()
    arrays[MASKED] = np.where(np.isneginf(arrays[MASKED]), np.float32(number), arrays[MASKED])
    diagnosis = diagnose(dumped(arrays, input_ids=PADDED), model)
    assert (diagnosis.first is None) is same
    assert any(f"{spoken(number, 3)} stands for −∞" in line for line in diagnosis.assumed) is same


# What is said of the inputs


def said(arrays: Arrays) -> First:
    return blamed(diagnose(dumped(arrays), model_of("post")).first)


def test_inputs_that_are_in_the_dump_are_said_to_agree() -> None:
    arrays = computed("post", "scale-d_model")
    value, scaled = "encoder.0.self_attention.value", "encoder.0.self_attention.scaled"
    alone = said({value: arrays[value], scaled: arrays[scaled]})
    assert "nothing that it is computed from is in the dump" in alone.says
    assert not alone.inputs_agree
    assert "in the dump" not in said({key: arrays[key] for key in ("embedding.output", scaled)}).says
    query = "encoder.0.self_attention.query"
    first = said({"Layer 0 Head 1 Q": arrays[query][1], scaled: arrays[scaled]})
    assert first.step == scaled
    assert "what is in the dump of its inputs agrees" in first.says
    assert not first.inputs_agree
    # too coarse to tell
    arrays = computed("post")
    coarse = arrays["embedding.output"].astype(np.float16).astype(np.float32)
    wrong = "encoder.0.self_attention.value"
    arrays = {"embedding.output": coarse, wrong: arrays[wrong] * np.float32(1.0002)}
    dump = dumped(arrays)
    tensors = {**dump.tensors, "embedding.output": held("embedding.output", coarse, FLOAT16)}
    first = blamed(diagnose(Dump(dump.path, tensors), model_of("post")).first)
    assert first.step == wrong
    assert "inputs agree to" in first.says
