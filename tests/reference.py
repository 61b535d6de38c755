"""The reference checkpoints, what an independent implementation computes for them, and what several folders measure."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent / "references"
LEFT_OUT = object()
IDS = [2, 5, 3, 6, 4]


def with_settings(folder: Path, family: str, **settings: object) -> Path:
    """A copy of a reference checkpoint with other settings; those that are `LEFT_OUT` it does not have."""
    shutil.copytree(REFERENCES / family, folder, dirs_exist_ok=True)
    return reconfigured(folder, **settings)


def reconfigured(where: Path, **settings: object) -> Path:
    """The file of settings, or the folder that has one, in which these are changed, or left out."""
    path = where / "config.json" if where.is_dir() else where
    config = json.loads(path.read_text()) | settings
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not LEFT_OUT}))
    return where


def in_float64(where: Path | str, **settings: Any) -> Model:
    """A reference checkpoint by its name, or another model by its own or its folder, with numbers of 64 bits."""
    folder = REFERENCES / where
    return Model.load(folder if folder.is_dir() else where, device="cpu", dtype="float64", **settings)


def trace_of(where: Path | str, ids: Any = IDS, decoder_ids: Any = (2, 3, 4), **options: Any) -> Trace:
    """What such a model computes of token IDs; the second ones are for a decoder beside an encoder."""
    model = in_float64(where)
    return model.trace(ids=ids, decoder_ids=decoder_ids if model.has_decoder else None, **options)


def with_weights(model: Model, change: Callable[[str, np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Model:
    """The model with weights that are changed as they are read, each by its name."""
    read = model.weights.read
    weights = Weights(model.backend, lambda name, shape: change(name, read(name, shape)))
    return replace(model, weights=weights)


def slope(trace: Trace, name: str, index: tuple[int, ...], targets: Any, smoothing: float = 0.0) -> float:
    """∂loss by central differences in one cell."""
    value, width = float(trace[name][index]), 1e-5
    moved = (trace.edited([Edit(name, index, value + move)]) for move in (-width, width))
    low, high = (gradients(each, targets, smoothing).loss for each in moved)
    return (high - low) / (2 * width)


def reference_of(family: str) -> Reference:
    """A checkpoint, and what is expected of it."""
    with np.load(REFERENCES / family / "expected.npz") as file:
        return Reference(REFERENCES / family, dict(file))


@dataclass(frozen=True, eq=False)
class Reference:
    """A checkpoint folder and what an independent implementation computes for it in float64."""

    folder: Path
    expected: Mapping[str, np.ndarray[Any, Any]]

    def model(self, dtype: str = "float64") -> Model:
        return Model.load(self.folder, device="cpu", dtype=dtype)

    def trace(self, dtype: str = "float64") -> Trace:
        target = self.expected.get("decoder_input_ids")
        return self.model(dtype).trace(ids=self.expected["input_ids"].tolist(), decoder_ids=target)

    def config(self) -> dict[str, Any]:
        """The settings in `config.json`."""
        return json.loads((self.folder / "config.json").read_text())

    def tensors(self) -> dict[str, np.ndarray[Any, Any]]:
        """The tensors of the file, by its names."""
        return load_file(self.folder / "model.safetensors")

    def table(self, kind: str) -> dict[str, np.ndarray[Any, Any]]:
        """The arrays whose keys are `kind/<name>`, by name."""
        return {key.partition("/")[2]: self.expected[key] for key in self.expected if key.startswith(f"{kind}/")}


def check_same(again: Model, model: Model, ids: list[Any], last: str = "output.logits") -> None:
    """The same weights to the bit; products of weights that lie otherwise in memory may be rounded otherwise."""
    new, old = again.trace(ids=ids), model.trace(ids=ids)
    for name in old.program.weights:
        np.testing.assert_array_equal(new[name], old[name])
    close = 1e-5 if old[last].dtype == np.float32 else 1e-12
    np.testing.assert_allclose(new[last], old[last], rtol=close, atol=close)


def peak(action: Callable[[], object]) -> int:
    """The most memory that an action takes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
