"""Of several mistakes that fit, the one that fits best, and reaches no further than it must, is named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dumping import GGML, IDS, REFERENCES, batched, blamed, computed, dumped, hidden_states, model_of, renamed
from plain_numpy import softmax
from reference import with_weights
from safetensors.numpy import load_file
from small import encoder

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.diagnose import cause_of, local
from tui_transformer.diagnosis.diagnosis import describe_factor, factor_of_sizes, sizes_of
from tui_transformer.diagnosis.dumps.dump import FLOAT32, Precision
from tui_transformer.diagnosis.matching import Entry
from tui_transformer.diagnosis.reference_values import reference_values
from tui_transformer.model import Model


@pytest.mark.parametrize(
    ("inside", "outside", "digits", "says"),
    [
        # ε = 1e-12 is near it
        (1e-8, 0.0, 0.1, "with ε = 1e-8: this model has ε = 1e-5"),
        (0.0, 1e-5, 1e-4, "when ε is added to the standard deviation: add it to the variance, under the root"),
    ],
)
def test_of_several_mistakes_that_fit_the_best_is_named(
    inside: float, outside: float, digits: float, says: str
) -> None:
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
    where = local(entries[1], entries, reference_values(model, Input(np.array([IDS]))))
    cause = cause_of(where)
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
