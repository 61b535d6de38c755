"""On another device the same is written: on a stand-in whose arrays never mix with the host's, and on a GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from reference import REFERENCES
from strict import strict_backend

from tui_transformer.engine.backend import Backend, choose_backend, find_gpu
from tui_transformer.engine.weights import Weights
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import State, Writer
from tui_transformer.model import Model

GPU = find_gpu()
FAMILIES = ("gpt2", "qwen3", "bart", "t5")


def texts(model: Model) -> list[State]:
    """A text, and another one from its middle."""
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8), Rules(), (5, 6, 7) if model.has_decoder else ())
    first = list(writer.run(writer.begin((5, 6))))
    return [*first, *writer.run(writer.next(first[2], 9))]


def assert_same(family: str, backend: Backend, tolerance: float) -> None:
    model = Model.load(REFERENCES / family, device="cpu", dtype=str(backend.dtype))
    there = dataclasses.replace(model, weights=Weights(backend, model.weights.read))
    for text, wanted in zip(texts(there), texts(model), strict=True):
        assert text.ids == wanted.ids
        np.testing.assert_allclose(text.logits, wanted.logits, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_host_and_device_are_kept_apart(family: str) -> None:
    assert_same(family, strict_backend(), 1e-12)


@pytest.mark.gpu
@pytest.mark.skipif(GPU.cupy is None, reason=GPU.finding)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_writes_what_the_cpu_writes(family: str) -> None:
    assert_same(family, choose_backend("gpu"), 1e-4)
