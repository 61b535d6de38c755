"""Mistakes that are made in a step or two, and no whole program: each is named, what follows from it is not blamed."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from dumping import IDS, REFERENCES, blamed, computed, dumped, model_of
from plain_numpy import softmax
from small import encoder

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.model import Model


def test_a_causal_mask_where_all_keys_are_visible_is_seen() -> None:
    model = model_of("post")
    causal = dataclasses.replace(model, config=dataclasses.replace(model.config, causal=True))
    first = blamed(diagnose(dumped(encoder(causal, IDS, frozenset(), np.float32)), model).first)
    assert first.cause == "mask-added", first


LABELS = [
    (1, IDS, None, ""),
    (0, IDS, "label-shift", "when labels are not shifted: "),
    (2, IDS, "label-shift", "when labels are shifted twice: "),
    (-1, IDS, "label-shift", "when labels are shifted the other way: "),
    # labels that are not counted
    *((1, [*IDS[:3], ignored, *IDS[4:]], None, "") for ignored in (-1, -100)),
]


@pytest.mark.parametrize(("shift", "labels", "cause", "says"), LABELS)
def test_a_loss_of_labels_that_are_shifted_otherwise_is_seen(shift: int, labels: list[int], cause, says: str) -> None:
    logits = computed("pre")["output.logits"]
    shares = softmax(logits.astype(np.float64))
    pairs = [(i, labels[i + shift]) for i in range(len(IDS)) if 0 <= i + shift < len(IDS)]
    loss = -np.mean([np.log(shares[i, label]) for i, label in pairs if label >= 0])
    dump = dumped({"logits": logits, "loss": np.array(loss)}, labels=[labels])
    first = diagnose(dump, model_of("pre")).first
    assert (first and first.cause) == cause, first
    assert first is None or f"It matches {says}" in first.says


def test_dropout_that_was_left_on_is_seen() -> None:
    arrays = computed("post", "dropout-on")
    for kept in (arrays, {key: array for key, array in arrays.items() if key.endswith(("weights", "scores"))}):
        first = blamed(diagnose(dumped(kept), model_of("post")).first)
        assert first.cause == "dropout-on", first


def test_what_follows_from_a_mistake_is_not_blamed_and_the_sentence_says_what_to_mend() -> None:
    diagnosis = diagnose(dumped(computed("post", "scale-d_model")), model_of("post"))
    verdicts = {step.step: step.verdict for step in diagnosis.steps}
    assert verdicts["encoder.0.self_attention.scaled"] == "first"
    assert verdicts["encoder.0.self_attention.output"] == "follows"
    assert verdicts["encoder.1.self_attention.scaled"] == "wrong"
    assert "encoder.0.self_attention.output" in diagnosis.following
    assert "encoder.0.self_attention.query" not in diagnosis.following
    first = blamed(diagnosis.first)
    assert first.says.startswith("encoder.0.self_attention.scaled differs first (relative ")
    assert first.says.endswith("It matches when divided by √d_model: divide by √d_k = √8 instead of √16.")
    assert first.inputs_agree
    # no mistake explains it
    name = "encoder.0.self_attention.value"
    arrays = computed("post") | {name: computed("post")[name] * np.float32(1.25)}
    first = blamed(diagnose(dumped(arrays), model_of("post")).first)
    assert first.cause is None
    assert "every cell is 1.25 times the right one" in first.says


@pytest.mark.parametrize("name", ["question", "copy", "dates"])
def test_right_dumps_of_the_trained_models_give_nothing(name: str) -> None:
    model = Model.load(name)
    ids = [5, 6, 7, 8, 9]
    trace = model.trace(ids=ids)
    arrays = {step.name: np.array(trace[step.name]) for step in trace.program.steps}
    assert diagnose(dumped(arrays, input_ids=ids), model).first is None


def buckets(n: int, *, both: bool, count: int = 8, limit: int = 16, sign: int = 1) -> np.ndarray:
    """The bucket of every query and key, as the paper's authors count them."""
    relative = sign * (np.arange(n)[None, :] - np.arange(n)[:, None])
    side = count // 2 if both else count
    distance = np.abs(relative) if both else np.maximum(-relative, 0)
    exact = side // 2
    far = exact + (np.log(np.maximum(distance, 1) / exact) / np.log(limit / exact) * (side - exact)).astype(int)
    numbers = np.where(distance < exact, distance, np.minimum(far, side - 1))
    return numbers + side * (relative > 0) if both else numbers


def test_distances_that_are_counted_otherwise_are_seen() -> None:
    folder = REFERENCES / "t5"
    model = Model.load(folder)
    trace = model.trace(ids=IDS, decoder_ids=[0, 1])
    at = "encoder.0.self_attention"
    settings = json.loads((folder / "config.json").read_text())
    count, limit = settings["relative_attention_num_buckets"], settings["relative_attention_max_distance"]
    table, scores = (np.array(trace[f"{at}.{name}"]) for name in ("biased.weight", "scores"))
    for name, both, sign in (("relative-bidirectional", False, 1), ("relative-flipped", True, -1), (None, True, 1)):
        bias = table[buckets(len(IDS), both=both, count=count, limit=limit, sign=sign)].transpose(2, 0, 1)
        arrays = {f"{at}.scores": scores, f"{at}.biased": scores + bias}
        first = diagnose(dumped(arrays), model, Input(np.array([IDS]), np.array([[0, 1]]))).first
        assert (first and first.cause) == name, first
    # none at all
    arrays = {f"{at}.scores": scores, f"{at}.biased": scores}
    first = blamed(diagnose(dumped(arrays), model, Input(np.array([IDS]), np.array([[0, 1]]))).first)
    assert first.cause == "relative-missing"


SOURCES = {
    "decoder.0.self_attention.norm": "of the decoder itself",
    "encoder.0.feed_forward.norm": "of encoder.0.feed_forward.norm",
}


@pytest.mark.parametrize("source", ["encoder.1.feed_forward.norm", *SOURCES])
def test_keys_and_values_of_something_else_than_the_encoders_output_are_named(source: str) -> None:
    model = Model.load("encoder-decoder", layers=2, decoder_layers=1, d_model=16, heads=2, d_ff=24)
    trace = model.trace(ids=IDS, decoder_ids=IDS[:4])
    at = "decoder.0.cross_attention"
    weight = {part: np.array(trace[f"{at}.{part}.weight"], np.float64) for part in ("key", "value", "output")}
    read = np.array(trace[source], np.float64)
    key, value = ((read @ weight[part]).reshape(-1, 2, 8).swapaxes(0, 1) for part in ("key", "value"))
    scores = np.array(trace[f"{at}.query"], np.float64) @ key.swapaxes(-1, -2) / np.sqrt(8)
    joined = (softmax(scores) @ value).swapaxes(0, 1).reshape(-1, 16)
    names = ("encoder.0.feed_forward.norm", "encoder.1.feed_forward.norm", "decoder.0.self_attention.norm")
    dump = dumped({name: np.array(trace[name]) for name in names} | {f"{at}.output": joined @ weight["output"]})
    first = diagnose(dump, model, Input(np.array([IDS]), np.array([IDS[:4]]))).first
    if source not in SOURCES:
        assert first is None, first
        return
    assert first is not None
    assert first.cause == "cross-source"
    assert SOURCES[source] in first.says


def test_a_residual_stream_that_a_tool_centred_is_seen() -> None:
    arrays = computed("pre")
    name = "decoder.0.feed_forward.residual"
    arrays[name] = arrays[name] - arrays[name].mean(-1, keepdims=True)
    first = blamed(diagnose(dumped(arrays), model_of("pre")).first)
    assert (first.step, first.cause) == (name, "residual-centred")


@pytest.mark.parametrize("family", ["phi", "qwen3", "olmo2"])
def test_every_cause_can_be_tried_in_every_kind_of_layer(family: str) -> None:
    trace = Model.load(REFERENCES / family).trace(ids=IDS)
    last = [step.name for step in trace.program.steps if step.layer == "decoder.0"][-1]
    wrong = np.array(trace[last]) * np.linspace(0.5, 1.5, len(IDS))[:, None]
    first = blamed(diagnose(dumped({last: wrong}), Model.load(REFERENCES / family)).first)
    assert (first.step, first.cause) == (last, None)


def test_rows_of_keys_in_blocks_that_are_not_rescaled_are_seen_where_keys_are_more_than_queries() -> None:
    model = Model.load("encoder-decoder", layers=1, decoder_layers=1, d_model=16, heads=2, d_ff=24)
    trace = model.trace(ids=IDS, decoder_ids=IDS[:2])
    at = "decoder.0.cross_attention"
    scores = np.array(trace[f"{at}.scaled"], np.float64)
    running = np.maximum.accumulate(scores, -1)[..., [3, 3, 3, 3, 6, 6, 6]]  # blocks of 4 keys
    powers = np.exp(scores - running)
    arrays = {f"{at}.scaled": scores, f"{at}.weights": powers / powers.sum(-1, keepdims=True)}
    first = blamed(diagnose(dumped(arrays), model, Input(np.array([IDS]), np.array([IDS[:2]]))).first)
    assert first.cause == "softmax-rescale-missing", first.says
    assert "in blocks of 4" in first.says
