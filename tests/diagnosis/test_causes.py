"""Each mistake planted in an independent implementation is the one that is named; a right one gives nothing."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from diagnosis.small import Arrays, encoder, llama

from tui_transformer.diagnosis import Diagnosis, diagnose
from tui_transformer.diagnosis.dumps.dump import Dump, held
from tui_transformer.diagnosis.dumps.precision import FLOAT32
from tui_transformer.engine.weights import Reader, Weights
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent.parent / "references"
IDS = [5, 1, 3, 7, 1, 2, 4]

MODELS = {
    "post": {"where": "encoder", "layers": 2, "d_model": 16, "heads": 2, "d_ff": 24, "bias": True, "scale_embedding": True},
    "pre": {"where": "decoder", "layers": 2, "d_model": 16, "heads": 2, "d_ff": 24, "bias": True, "norm": "pre", "activation": "gelu", "positions": "learned"},
}


@lru_cache
def model_of(name: str) -> Model:
    if name == "llama":
        return Model.load(REFERENCES / "llama")
    settings = dict(MODELS[name])
    model = Model.load(settings.pop("where"), **settings)
    return dataclasses.replace(model, weights=Weights(model.backend, _with_norms(model.weights.read)))


def _with_norms(read: Reader) -> Reader:
    """γ and β that are neither 1 nor 0, so that leaving them out is seen."""

    def reader(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if ".norm." not in name:
            return read(name, shape)
        generator = np.random.default_rng(zlib.crc32(name.encode()))
        return generator.normal(1.0, 0.3, shape).astype(np.float32)

    return reader


def computed(name: str, fault: str, dtype: type = np.float32) -> Arrays:
    faults = frozenset({fault} - {""})
    return (llama if name == "llama" else encoder)(model_of(name), IDS, faults, dtype)


def dumped(arrays: Mapping[str, np.ndarray], ids: list[int] = IDS) -> Dump:
    tensors = {name: held(name, np.asarray(array, np.float32), FLOAT32) for name, array in arrays.items()}
    return Dump(Path("dump.npz"), tensors | {"input_ids": held("input_ids", np.array(ids), FLOAT32)})


def hidden_states(arrays: Arrays) -> Arrays:
    """What `output_hidden_states` gives: what enters each layer, and what leaves the last."""
    outputs = [name for name in arrays if name.endswith(".output") and name.count(".") == 2]
    entrance = "embedding.output" if "embedding.output" in arrays else "embedding.tokens"
    found = {"hidden_states_0": arrays[entrance]}
    for i, name in enumerate(outputs, 1):
        found[f"hidden_states_{i}"] = arrays[name]
    last = next((name for name in arrays if name.count(".") == 1 and name.endswith(".norm") and "embedding" not in name), None)
    if last:
        found[f"hidden_states_{len(outputs)}"] = arrays[last]
    return found


def projections(arrays: Arrays) -> Arrays:
    """What hooks on the linear modules give."""
    return {name: array for name, array in arrays.items() if name.endswith((".query", ".key", ".value", "self_attention.output", ".hidden", "feed_forward.output", ".gate", "embedding.output", "embedding.tokens"))}


PARTS = {"every step": lambda arrays: arrays, "hidden states": hidden_states, "projections": projections, "logits": lambda arrays: {"logits": arrays["output.logits"]}}

COMMON = (
    "scale-missing", "scale-d_model", "scale-d_k", "softmax-axis", "weight-transposed", "heads-order", "norm-epsilon",
    "norm-gamma-missing", "norm-place", "residual-missing", "residual-place", "activation",
)
OF = {
    "post": (*COMMON, "bias-missing", "bias-twice", "norm-beta-missing", "norm-variance", "position-off-by-one", "position-halves", "position-missing", "position-exponent", "embedding-unscaled"),
    "pre": (*COMMON, "bias-missing", "bias-twice", "norm-beta-missing", "norm-variance", "position-off-by-one", "position-missing", "gelu-tanh", "mask-missing", "mask-flipped", "mask-finite", "mask-before-scale", "embedding-scaled"),
    "llama": (*COMMON, "mask-missing", "mask-flipped", "keys-tiled", "rotary-interleaved", "rotary-theta", "position-off-by-one", "gate-swapped"),
}
UNSEEN = {("llama", "position-off-by-one")}
"""Scores depend on the distance alone: where all places are one more, only what is turned is another."""
CASES = [
    (name, fault, part)
    for name, faults in OF.items()
    for fault in faults
    for part in PARTS
    if part == "every step" or (name, fault) not in UNSEEN
]


def found(name: str, fault: str, part: str) -> Diagnosis:
    return diagnose(dumped(PARTS[part](computed(name, fault))), model_of(name))


@pytest.mark.parametrize(("name", "fault", "part"), CASES)
def test_the_planted_mistake_is_named(name: str, fault: str, part: str) -> None:
    first = found(name, fault, part).first
    assert first is not None
    assert first.cause == fault, first.says


@pytest.mark.parametrize("name", OF)
@pytest.mark.parametrize("part", PARTS)
def test_a_right_dump_gives_nothing(name: str, part: str) -> None:
    diagnosis = found(name, "", part)
    assert diagnosis.first is None, diagnosis.first
    assert all(step.verdict == "agrees" for step in diagnosis.steps)
