"""Dumps of what a family does otherwise than most."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from dumping import IDS, REFERENCES, dumped
from safetensors.numpy import load_file
from small import Arrays

from tui_transformer.diagnosis import diagnose
from tui_transformer.diagnosis.diagnosis import Diagnosis
from tui_transformer.model import Model

F = "decoder.0.feed_forward."


@lru_cache
def of(family: str) -> tuple[Model, Arrays]:
    """A model, and what it computes, with its weights."""
    model = Model.load(REFERENCES / family, device="cpu")
    trace = model.trace(ids=IDS)
    program = trace.program
    weights = {name: np.array(model.weights.get(name, program.shape(name)), np.float64) for name in program.weights}
    return model, weights | {step.name: np.array(trace[step.name], np.float64) for step in program.steps}


def diagnosed(family: str, arrays: Arrays) -> Diagnosis:
    return diagnose(dumped(arrays), of(family)[0])


def right() -> Iterator[tuple[str, Arrays]]:
    for family in ("cohere", "granite"):  # the module leaves logits that are multiplied afterwards
        logits = of(family)[1]["output.logits"]
        yield family, {"lm_head": logits * 4, "logits": logits}
    v = of("mixtral")[1]
    yield "mixtral", {"model.layers.0.block_sparse_moe": v[f"{F}output"]}
    v = of("cohere2")[1]  # columns of the file, in a layer that turns none of them too
    tensors = load_file(REFERENCES / "cohere2" / "model.safetensors")
    for i in range(2):
        path, x = f"model.layers.{i}.self_attn.q_proj", v[f"decoder.{i}.self_attention.norm"]
        yield "cohere2", {path: x @ tensors[f"{path}.weight"].T}


def test_right_dumps_of_what_a_module_leaves_give_nothing() -> None:
    for family, arrays in right():
        diagnosis = diagnosed(family, arrays)
        assert diagnosis.same, (family, diagnosis.unmatched, diagnosis.first)
