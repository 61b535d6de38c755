"""Mistakes that are made in a step or two, and no whole program: each is named, what follows from it is not blamed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from dumping import GGML, IDS, REFERENCES, batched, blamed, computed, dumped, hidden_states, model_of, renamed
from plain_numpy import softmax
from reference import with_weights
from safetensors.numpy import load_file
from small import encoder

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.diagnose import cause_of
from tui_transformer.diagnosis.diagnosis import describe_factor, factor_of_sizes, sizes_of
from tui_transformer.diagnosis.dumps.dump import FLOAT32, Precision
from tui_transformer.diagnosis.local import given_by, local
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.diagnosis.reference_values import reference_values
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


# Of several mistakes that fit, the one that fits best, and reaches no further than it must, is named


@pytest.mark.parametrize(
    ("inside", "outside", "digits", "says"),
    [
        # ε = 1e-12 is near it
        (1e-8, 0.0, 0.1, "with ε = 1e-8: this model has ε = 1e-5"),
        (0.0, 1e-5, 1e-4, "when ε is added to the standard deviation: add it to the variance, under the root"),
    ],
)
def test_of_several_mistakes_that_fit_the_best_is_named(inside, outside, digits, says):
    model = model_of("post")
    at = "encoder.0.self_attention"
    gamma, beta = (np.array(model.weights.get(f"{at}.norm.{part}", (16,)), np.float64) for part in ("weight", "bias"))
    x = np.random.default_rng(0).normal(0, 1e-3, (1, len(IDS), 16))
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + inside) + outside
    entries = [
        Entry(f"{at}.residual", "sum", x, None, FLOAT32),
        Entry(f"{at}.norm", "norm", centred / deviation * gamma + beta, None, Precision("few digits", 0.0, digits)),
    ]
    reference = reference_values(model, Input(np.array([IDS])))
    cause = cause_of(local(entries[1], given_by(entries, reference), reference))
    assert cause is not None
    assert (cause.name, cause.says) == ("norm-epsilon", says)


def only_queries_biased() -> Model:
    """A model of which no other projection than that of the queries has a bias that is not 0."""

    def biased(name: str, weight: np.ndarray) -> np.ndarray:
        if name.endswith("query.bias"):
            return np.linspace(-1, 1, len(weight)).astype(np.float32)
        return np.zeros_like(weight) if name.endswith(".bias") else weight

    return with_weights(model_of("post"), biased)


def test_a_mistake_that_reaches_no_further_than_it_must_is_named() -> None:
    model = only_queries_biased()
    arrays = encoder(model, IDS, frozenset({"bias-missing"}), np.float32)
    first = blamed(diagnose(dumped(hidden_states(arrays)), model).first)
    assert first.cause == "bias-missing"
    assert "when the bias of query is left out" in first.says


@pytest.mark.parametrize(("times", "cause"), [(0, "position-missing"), (2, "position-twice")])
def test_positions_that_are_right_and_not_added_or_added_twice_are_named(times: int, cause: str) -> None:
    arrays = computed("post")
    arrays["embedding.output"] = arrays["embedding.tokens"] + times * arrays["embedding.positions"]
    first = blamed(diagnose(dumped(arrays), model_of("post")).first)
    assert (first.step, first.cause) == ("embedding.output", cause)


def test_a_step_that_is_right_and_not_used_is_missed() -> None:
    at, steps, model = "decoder.0.self_attention", computed("llama"), model_of("llama")
    key, scores = (np.asarray(steps[f"{at}.{name}"], np.float64) for name in ("key", "scaled"))
    query = np.asarray(steps[f"{at}.query_rotated"], np.float64)
    head = np.asarray(model.weights.get("output.logits.weight", model.program(1).shape("output.logits.weight")))
    planted = {
        f"{at}.scores": (query @ np.repeat(key, len(query) // len(key), axis=0).swapaxes(-1, -2), "rotary-missing"),
        f"{at}.weights": (softmax(scores), "mask-missing"),
        "output.logits": (np.asarray(steps["decoder.1.output"]) @ head, "norm-missing"),
        f"{at}.scaled": (np.asarray(steps[f"{at}.scores"]) / 7, None),  # what is there is not blamed
    }
    for step, (array, cause) in planted.items():
        first = blamed(diagnose(dumped({**steps, step: array}), model).first)
        assert (first.step, first.cause) == (step, cause), first.says


@pytest.mark.parametrize("names", [("Qcur-{}", "Kcur-{}"), ("q-{}", "k-{}")])
def test_columns_in_the_order_of_gguf_files_are_found(names: tuple[str, str]) -> None:
    steps = computed("llama")
    arrays = renamed(steps, GGML)
    order = np.arange(8).reshape(2, 4).T.reshape(-1)  # columns i and i + d_k/2 side by side
    for i in range(2):
        for name, part in zip(names, ("query", "key"), strict=True):
            step = f"decoder.{i}.self_attention.{part}{'_rotated' if name[0] in 'qk' else ''}"
            arrays[name.format(i)] = steps[step][..., order]
    for name in [name for name in arrays if "(rope)" in name]:
        del arrays[name]
    diagnosis = diagnose(dumped(batched(arrays)), model_of("llama"), names="ggml")
    assert diagnosis.first is None, diagnosis.first
    assert any("columns i and i + d_k/2 lie side by side" in line for line in diagnosis.assumed)
    assert all(step.verdict == "agrees" for step in diagnosis.steps)
    assert {name.format(0) for name in names} <= {step.theirs for step in diagnosis.steps}


def in_file_order(family: str, layers: int = 2) -> tuple[Model, dict[str, np.ndarray]]:
    """Products of a layer's weights as the published model has them: x Wᵀ of the tensors of its file."""
    model = Model.load(REFERENCES / family)
    trace = model.trace(ids=IDS)
    weights = load_file(REFERENCES / family / "model.safetensors")
    arrays = {"logits": np.array(trace["output.logits"])}
    for name, weight in weights.items():
        module = name.removesuffix(".weight")
        if module.endswith(("q_proj", "k_proj", "query_key_value")):
            layer = next(i for i in range(layers) if f".{i}." in name)
            x = np.array(trace[f"decoder.{layer}.self_attention.norm"], np.float64)
            arrays[module] = x @ weight.T.astype(np.float64) + weights.get(f"{module}.bias", 0.0)
    return model, arrays


@pytest.mark.parametrize("family", ["cohere", "glm", "gptj", "gpt_neox", "bloom"])
def test_columns_in_another_order_than_that_of_the_steps_are_found(family: str) -> None:
    model, arrays = in_file_order(family)
    diagnosis = diagnose(dumped(arrays), model)
    assert diagnosis.first is None, diagnosis.first
    assert not diagnosis.unmatched
    assert {"decoder.0.self_attention.query", "decoder.1.self_attention.key"} <= {step.step for step in diagnosis.steps}
    assert any("in the order of the model's file" in line for line in diagnosis.assumed) == (
        family in ("cohere", "glm", "gptj")
    )


def test_a_mistake_in_columns_in_another_order_is_told_as_in_the_usual_one() -> None:
    model, arrays = in_file_order("cohere")
    name = "model.layers.0.self_attn.q_proj"
    first = blamed(diagnose(dumped({**arrays, name: 2 * arrays[name]}), model).first)
    assert first.step == "decoder.0.self_attention.query"
    assert "every cell is twice the right one" in first.says, first.says


# A constant factor is said in terms of the model's numbers

SIZES = {"d_k": 8, "d_model": 32, "number of heads": 4, "d_ff": 128, "number of tokens": 9}

SAID = {
    math.sqrt(32): "5.65685 = √32 = √d_model",
    math.sqrt(8): "2.82843 = √8 = √d_k",
    8.0: "8 = d_k",
    32.0: "32 = d_model",
    4.0: "4 = number of heads",
    -math.sqrt(32): "−5.65685 = −√32 = −√d_model",
    1 / math.sqrt(8): "0.353553 = 1 ÷ √8 = 1 ÷ √d_k",
    1 / 8: "0.125 = 1 ÷ 8 = 1 ÷ d_k",
    3.0: "3 = √9 = √(number of tokens)",
    math.sqrt(8 / 9): "0.942809 = √8 ÷ √9 = √d_k ÷ √(number of tokens)",
    9 / 8: "1.125 = 9 ÷ 8 = number of tokens ÷ d_k",
    1 / math.log(2): "1.4427 = 1 ÷ ln 2",
    1.2345: "1.2345",
}


def test_a_factor_is_said_as_what_it_is() -> None:
    assert {factor: factor_of_sizes(factor, SIZES) for factor in SAID} == SAID
    for factor in (math.sqrt(32) * 1.00001, 5.6569, 5.65685):  # digits that were printed are enough
        assert factor_of_sizes(factor, SIZES) == "5.65685 = √32 = √d_model"
    assert factor_of_sizes(5.66, SIZES) == "5.66"
    assert factor_of_sizes(8.0, {"d_k": 8, "number of heads": 8}) == "8 = d_k = number of heads"
    # simple ones in words
    assert describe_factor(-1.0, SIZES) == "has the opposite sign"
    assert describe_factor(2.00001, SIZES) == "is twice the right one"
    assert describe_factor(0.5, SIZES) == "is half the right one"
    assert describe_factor(8.0, SIZES) == "is 8 = d_k times the right one"
    assert sizes_of(Model.load("question").program(9)) == SIZES | {"size of the vocabulary": 123}
