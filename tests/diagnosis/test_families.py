"""Mistakes of what a family does otherwise than most: each planted in a step or two, and named; right dumps pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import pytest
from dumping import IDS, REFERENCES, blamed, dumped, merged
from plain_numpy import softmax
from safetensors.numpy import load_file
from small import Arrays

from tui_transformer.diagnosis import diagnose
from tui_transformer.diagnosis.diagnosis import Diagnosis
from tui_transformer.diagnosis.dumps.dump import FLOAT16, Dump, held
from tui_transformer.model import Model

A, B, F = "decoder.0.self_attention.", "decoder.1.self_attention.", "decoder.0.feed_forward."
X = "encoder.0.self_attention."
E, Q, NORM = "embedding.tokens", f"{A}query", f"{F}norm"
N, WRITTEN = len(IDS), [0, 1]
BACK = np.arange(N)[:, None] - np.arange(N)[None, :]


@lru_cache
def of(family: str) -> tuple[Model, Arrays]:
    """A model, and what it computes, with its weights."""
    model = Model.load(REFERENCES / family, device="cpu")
    trace = model.trace(ids=IDS, decoder_ids=WRITTEN if model.has_decoder else None)
    program = trace.program
    weights = {name: np.array(model.weights.get(name, program.shape(name)), np.float64) for name in program.weights}
    return model, weights | {step.name: np.array(trace[step.name], np.float64) for step in program.steps}


def diagnosed(family: str, arrays: Arrays) -> Diagnosis:
    given = {"decoder_input_ids": WRITTEN} if of(family)[0].has_decoder else {}
    return diagnose(dumped(arrays, **given), of(family)[0])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def layer_norm(x: np.ndarray, *weights: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * weights[0]
    return y + weights[1] if len(weights) > 1 else y


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def turned(x: np.ndarray, columns: int, theta: float = 1e4, width: int = 0) -> np.ndarray:
    """The first columns of every head turned; `width`: what exponents are divided by."""
    half = columns // 2
    angles = np.arange(N)[:, None] * theta ** (-2 * np.arange(half) / (width or columns))
    cos, sin, a, b = np.cos(angles), np.sin(angles), x[..., :half], x[..., half:columns]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., columns:]], -1)


def split(y: np.ndarray, width: int) -> np.ndarray:
    return y.reshape(N, -1, width).transpose(1, 0, 2)


def thirds(v: Arrays) -> list[np.ndarray]:
    """Query, key and value as thirds of columns that every head has three parts of."""
    parts = [v[f"{A}{part}"].transpose(1, 0, 2) for part in ("query", "key", "value")]
    return [split(part, 8) for part in np.split(np.stack(parts, 2).reshape(N, -1), 3, 1)]


def parts_of_heads(v: Arrays) -> list[np.ndarray]:
    """The other way round: two query heads share a key."""
    whole = np.concatenate([merged(v[f"{A}{part}"]) for part in ("query", "key", "value")], 1).reshape(N, 2, 4, 8)
    return [split(part, 8) for part in (whole[:, :, :2], whole[:, :, 2], whole[:, :, 3])]


def unmasked_norms(v: Arrays) -> Arrays:
    """Weights of queries and keys that are not normalised."""
    q, k = (turned(v[f"{A}{part}"], 16) for part in ("query", "key"))
    scores = q @ k.repeat(2, 0).transpose(0, 2, 1) / 4
    return {E: v[E], f"{A}weights": softmax(np.where(BACK < 0, -np.inf, scores))}


def normed_late(v: Arrays) -> Arrays:
    """Queries and keys that are turned and then normalised, and their scores."""
    q, k = (turned(v[f"{A}{part}"], 16) for part in ("query", "key"))
    late = [rms_norm(x, v[f"{A}{part}_norm.weight"]) for x, part in ((q, "query"), (k, "key"))]
    scores = late[0] @ late[1].repeat(2, 0).transpose(0, 2, 1)
    return kept(v, "query", "key") | {f"{A}query_rotated": q, f"{A}key_rotated": k, f"{A}scores": scores}


def kept(v: Arrays, *parts: str, at: str = A) -> Arrays:
    return {f"{at}{part}": v[f"{at}{part}"] for part in parts}


def in_buckets(*, both: bool, sign: int = 1) -> Callable[[Arrays], Arrays]:
    """Scores with a bias for the bucket of every query and key, as the paper's authors count them."""
    relative = -sign * BACK
    side, limit = 4 if both else 8, 20
    distance = np.abs(relative) if both else np.maximum(-relative, 0)
    exact = side // 2
    far = exact + (np.log(np.maximum(distance, 1) / exact) / np.log(limit / exact) * (side - exact)).astype(int)
    numbers = np.where(distance < exact, distance, np.minimum(far, side - 1)) + side * (relative > 0) * both
    return lambda v: (
        kept(v, "scores", at=X) | {f"{X}biased": v[f"{X}scores"] + v[f"{X}biased.weight"][numbers].transpose(2, 0, 1)}
    )


def slopes(*numbers: float) -> Callable[[Arrays], Arrays]:
    distance = np.array(numbers)[:, None, None] * BACK
    return lambda v: kept(v, "scaled") | {f"{A}biased": v[f"{A}scaled"] - distance}


def divided_by(number: float) -> Callable[[Arrays], Arrays]:
    return lambda v: kept(v, "scores") | {f"{A}scaled": v[f"{A}scores"] / np.sqrt(number)}


def shares(change: Callable[[np.ndarray], np.ndarray], *, among: bool) -> Callable[[Arrays], Arrays]:
    """Shares of the experts that are chosen, of other numbers than the powers of the logits."""

    def planted(v: Arrays) -> Arrays:
        taken = np.where(v[f"{F}expert_weights"] > 0, change(v[f"{F}router"]), 0)
        return kept(v, "router", at=F) | {
            f"{F}expert_weights": taken / taken.sum(-1, keepdims=True) if among else taken
        }

    return planted


def chosen(count: int, *, among: bool = True, largest: bool = True) -> Callable[[Arrays], Arrays]:
    """Shares of another number of experts, of all of them, or of the smallest."""

    def planted(v: Arrays) -> Arrays:
        logits = v[f"{F}router"]
        taken = np.zeros_like(logits)
        np.put_along_axis(taken, np.argsort(-logits if largest else logits, -1)[:, :count], 1.0, -1)
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        whole = (powers * taken if among else powers).sum(-1, keepdims=True)
        return kept(v, "router", at=F) | {f"{F}expert_weights": powers * taken / whole}

    return planted


def windowed(window: int, at: str = A) -> Callable[[Arrays], Arrays]:
    """Scores with another window."""
    hidden = (BACK < 0) | (window <= BACK)
    return lambda v: kept(v, "capped", at=at) | {f"{at}masked": np.where(hidden, -np.inf, v[f"{at}capped"])}


def normed_as(other: str) -> Callable[[Arrays], Arrays]:
    """A norm with the weights of another."""
    return lambda v: v | {NORM: rms_norm(v[f"{A}residual"], v[f"{A}{other}.weight"])}


def step(source: str, name: str, change: Callable[[Arrays], np.ndarray]) -> Callable[[Arrays], Arrays]:
    """One step that is wrong, and what it reads."""
    return lambda v: {each: v[each] for each in source.split()} | {name: change(v)}


PLANTED: list[tuple[str, str, str, Callable[[Arrays], Arrays]]] = [
    ("gpt_neox", "sublayers-in-sequence", "both read x", step(f"{E} {A}output", NORM, lambda v: layer_norm(
        v[E] + v[f"{A}output"], v[f"{NORM}.weight"], v[f"{NORM}.bias"]))),
    ("cohere", "sublayers-in-sequence", "both read x", step(f"{E} {A}output", f"{F}hidden", lambda v: layer_norm(
        v[E] + v[f"{A}output"], v[f"{A}norm.weight"]) @ v[f"{F}hidden.weight"])),
    ("bloom", "sublayers-parallel", "let it read the sum", lambda v: {f"{F}hidden": v[f"{F}hidden"]} | step(
        f"embedding.norm {A}output", NORM, lambda v: layer_norm(
            v["embedding.norm"], v[f"{NORM}.weight"], v[f"{NORM}.bias"]))(v)),
    ("gpt_neox", "qkv-cut", "thirds of the fused", step(f"{A}norm", Q, lambda v: thirds(v)[0])),
    ("bloom", "qkv-cut", "thirds of the fused", step(f"{A}norm {Q} {A}key {A}value", f"{A}scores", lambda v:
        thirds(v)[0] @ thirds(v)[1].transpose(0, 2, 1))),
    ("phi3", "qkv-cut", "all queries come first", step(f"{A}norm", f"{A}key", lambda v: parts_of_heads(v)[1])),
    ("gpt_neox", "rotary-part", "8 of the 8 columns of a head are turned: turn 4", step(Q, f"{Q}_rotated", lambda v:
        turned(v[Q], 8))),
    ("phi3", "rotary-part", "4 of the 8 columns of a head are turned: turn 8", step(Q, f"{Q}_rotated", lambda v:
        turned(v[Q], 4))),
    ("gpt_neox", "rotary-exponent", "2i/8: it is 2i/4, the columns that", step(Q, f"{Q}_rotated", lambda v:
        turned(v[Q], 4, width=8))),
    ("smollm3", "rotary-added", "it has no positions", lambda v: {
        key.replace("decoder.0", "decoder.1"): value for key, value in kept(
            {key.replace("decoder.1", "decoder.0"): x for key, x in v.items() if "r.1.self_attention" in key},
            "query", "key").items()} | {"decoder.1.self_attention.scores": turned(
                v["decoder.1.self_attention.query"], 8, 2e6) @ turned(
                v["decoder.1.self_attention.key"], 8, 2e6).repeat(2, 0).transpose(0, 2, 1)}),
    ("gpt_oss", "rotary-scaling-missing", "scale them", step(Q, f"{Q}_rotated", lambda v: turned(v[Q], 16, 1.5e5))),
    ("gpt_oss", "rotary-factor-missing", "multiplied by 1.34657", step(Q, f"{Q}_rotated", lambda v:
        v[f"{Q}_rotated"] / (0.1 * np.log(32) + 1))),
    ("gpt_oss", "sinks-missing", "without the sinks", step(f"{A}masked", f"{A}weights", lambda v:
        softmax(v[f"{A}masked"]))),
    ("bloom", "slopes", "take it off", slopes(-(2**-2), -(2**-4), -(2**-6), -(2**-8))),
    ("bloom", "slopes", "head 0 has the steepest", slopes(2**-8, 2**-6, 2**-4, 2**-2)),
    ("bloom", "slopes", "every head has its own", slopes(*[2**-2] * 4)),
    ("bloom", "slopes", "begin with another power", slopes(1, 2**-2, 2**-4, 2**-6)),
    ("bloom", "slopes", "after the division", slopes(*[2**-i / np.sqrt(8) for i in (2, 4, 6, 8)])),
    ("granite", "multiplier-missing", "what a sublayer adds by 0.3", step(f"{A}output", f"{A}output_scaled", lambda v:
        v[f"{A}output"])),
    ("granite", "multiplier-missing", "the logits by 0.25", step("decoder.norm", "logits", lambda v:
        v["output.logits"] * 4)),
    ("cohere", "multiplier-divided", "the logits by 0.25", step("decoder.norm", "logits", lambda v:
        v["output.logits"] * 16)),
    ("granite", "embedding-unscaled", "multiply them by 6.", step("", E, lambda v: v[E] / 6)),
    ("granite", "embedding-scaled", "√d_model = √32: multiply them by 6.", step("", E, lambda v:
        v[E] / 6 * np.sqrt(32))),
    ("granite", "embedding-unscaled", "multiply them by 6.", lambda v: {"model.embed_tokens": v[E] / 6, f"{A}norm":
        rms_norm(v[E] / 6, v[f"{A}norm.weight"])}),
    ("gemma2", "cap-factor-missing", "multiply it by 5", step(f"{A}scaled", f"{A}capped", lambda v:
        v[f"{A}capped"] / 5)),
    ("gemma2", "cap-other", "the soft cap 50: here it is 5", step(f"{A}scaled", f"{A}capped", lambda v:
        50 * np.tanh(v[f"{A}scaled"] / 50))),
    ("gemma2", "cap-place", "divide, then cap", step(f"{A}scores", f"{A}capped", lambda v:
        5 * np.tanh(v[f"{A}scores"] / 5) / np.sqrt(24))),
    ("gemma2", "cap-place", "cap, then mask", step(f"{A}scaled", f"{A}masked", lambda v:
        5 * np.tanh(np.where((BACK < 0) | (BACK >= 4), -np.inf, v[f"{A}scaled"]) / 5))),
    ("gemma2", "cap-missing", "without the soft cap", step("decoder.norm", "logits", lambda v: v["output.logits"])),
    ("gemma2", "window-layers", "in other layers", lambda v: windowed(99)(v) | windowed(4, B)(v)),
    ("gemma2", "cap-missing", "", step(f"{B}scaled", f"{B}weights", lambda v:
        softmax(np.where(BACK < 0, -np.inf, v[f"{B}scaled"])))),
    ("gpt_neo", "scale-added", "", step(f"{A}scores", f"{A}masked", lambda v:
        np.where(BACK < 0, -np.inf, v[f"{A}scores"] / np.sqrt(v[Q].shape[-1])))),
    ("gemma2", "scale-missing", "divide the scores by √24.", divided_by(1)),
    ("gemma2", "scale-size", "when divided by √d_k = √8: divide by √24.", divided_by(8)),
    ("gemma2", "scale-d_model", "divide by √24 instead of √32.", divided_by(32)),
    ("gemma2", "mask-missing", "without the window", windowed(99)),
    ("gemma2", "mask-shifted", "keys up to 4 places away: it sees those up to 3", windowed(5)),
    ("gemma2", "mask-shifted", "keys up to 2 places away: it sees those up to 3", windowed(3)),
    ("gemma2", "weight-exchanged", "the self_attention.norm: take those of the feed_forward.norm", normed_as("norm")),
    ("gemma2", "weight-exchanged", "the self_attention.output_norm: take those of the feed_forward.norm", normed_as(
        "output_norm")),
    ("gemma2", "weight-exchanged", "weights of the gate: take those of the hidden", lambda v: v | {
        f"{F}hidden": v[f"{F}gate"], f"{F}gate": v[f"{F}hidden"]}),
    ("t5", "relative-bidirectional", "", in_buckets(both=False)),
    ("t5", "relative-flipped", "", in_buckets(both=True, sign=-1)),
    ("t5", "relative-missing", "", step(f"{X}scores", f"{X}biased", lambda v: v[f"{X}scores"])),
    ("bert", "bias-missing", "when the bias of logits is left out", step("output.transform.norm", "logits", lambda v:
        v["output.transform.norm"] @ v[f"{E}.weight"].T)),
    ("bert", "segments-missing", "", step(f"{E} embedding.positions", "embedding.norm", lambda v: layer_norm(
        v[E] + v["embedding.positions"], v["embedding.norm.weight"], v["embedding.norm.bias"], epsilon=1e-12))),
    ("qwen3", "norm-missing", "without the norm", unmasked_norms),
    ("qwen3", "norm-place", "normalise, then turn", normed_late),
    ("olmo2", "norm-axis", "columns of all heads", step(Q, f"{Q}_norm", lambda v: rms_norm(
        v[Q], v[f"{Q}_norm.weight"].reshape(4, 1, 8), 1e-5))),
    ("olmo2", "norm-epsilon", "with ε = 0.001: this model has ε = 1e-5", step(Q, f"{Q}_norm", lambda v: split(rms_norm(
        merged(v[Q]), v[f"{Q}_norm.weight"], 1e-3), 8))),
    ("mixtral", "experts-gate", "sigmoids that add up to 1", shares(sigmoid, among=True)),
    ("mixtral", "experts-gate", "sigmoids of their logits", shares(sigmoid, among=False)),
    ("mixtral", "experts-gate", "all equal", shares(np.ones_like, among=True)),
    ("mixtral", "experts-gate", "are their logits:", shares(lambda x: x, among=False)),
    ("mixtral", "experts-shares", "", chosen(2, among=False)),
    *(("mixtral", "experts-count", "", chosen(count)) for count in (1, 3, 4)),
    ("mixtral", "experts-smallest", "", chosen(2, largest=False)),
    ("mixtral", "experts-gate", "a softmax of a softmax", shares(lambda x: np.exp(softmax(x)), among=True)),
    ("qwen2_moe", "experts-shared-missing", "add what it computes", step(NORM, f"{F}output", lambda v:
        v[f"{F}experts.output"])),
    ("qwen2_moe", "experts-shared-gate-missing", "its gate", step(NORM, f"{F}output", lambda v:
        v[f"{F}experts.output"] + v[f"{F}shared.output"])),
]  # fmt: skip
"""The model, the cause, what is said, and what a program computes."""


@pytest.mark.parametrize(("family", "cause", "says", "planted"), PLANTED)
def test_a_mistake_in_what_a_family_does_otherwise_is_named(family: str, cause: str, says: str, planted) -> None:
    first = blamed(diagnosed(family, planted(of(family)[1])).first)
    assert first.cause == cause, first.says
    assert says in first.says, first.says


def right() -> Iterator[tuple[str, Arrays]]:
    for family in ("cohere", "granite"):  # the module leaves logits that are multiplied afterwards
        logits = of(family)[1]["output.logits"]
        yield family, {"lm_head": logits * 4, "logits": logits}
    v = of("mixtral")[1]
    yield "mixtral", {"model.layers.0.block_sparse_moe": v[f"{F}output"]} | chosen(2)(v)
    yield "t5", in_buckets(both=True)(of("t5")[1])
    v = of("cohere2")[1]  # columns of the file, in a layer that turns none of them too
    tensors = load_file(REFERENCES / "cohere2" / "model.safetensors")
    for i in range(2):
        path, x = f"model.layers.{i}.self_attn.q_proj", v[f"decoder.{i}.self_attention.norm"]
        yield "cohere2", {path: x @ tensors[f"{path}.weight"].T}
    v = of("gemma2")[1]  # logits before the cap, where what is capped is there too
    yield "gemma2", {"logits": v["output.logits"], "probabilities": v["output.probabilities"]}
    loss = -np.mean([np.log(v["output.probabilities"][i, label]) for i, label in enumerate(IDS[1:])])
    yield "gemma2", {"logits": v["output.capped"], "loss": loss, "labels": np.array([IDS])}


def test_right_dumps_of_what_a_module_leaves_give_nothing() -> None:
    for family, arrays in right():
        diagnosis = diagnosed(family, arrays)
        assert diagnosis.same, (family, diagnosis.unmatched, diagnosis.first)


def test_scores_of_distances_in_float16_are_compared_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    scores = np.where(BACK < 0, -np.inf, of("bloom")[1][f"{A}biased"]).astype(np.float16)
    dump = dumped({})
    tensors = {**dump.tensors, f"{A}masked": held(f"{A}masked", scores, FLOAT16)}
    assert diagnose(Dump(dump.path, tensors), of("bloom")[0]).same
    assert not recwarn.list
