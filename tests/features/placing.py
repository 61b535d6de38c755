"""A small model, and the dictionaries of this folder at its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tui_transformer import Features, Model

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/expected.npz"))
SMALL = {"d_model": 32, "heads": 4, "layers": 2, "norm": "pre", "dtype": "float64"}
STREAM, FED = "decoder.1.output", "decoder.{}.feed_forward.norm"
IDS = [3, 5, 4, 6]


def loaded(name: str) -> Features:
    return Features.load(HERE / name)


def expected(name: str) -> dict[str, np.ndarray]:
    """Activations `x`, and the `features` and the `output` that a library computes of them."""
    with np.load(HERE / name / "expected.npz") as file:
        return {key: file[key] for key in file.files}


def place_of(features: Features) -> str:
    """The steps of the small model that a dictionary reads."""
    return FED if features.is_cross else FED.format(1) if features.transcodes else STREAM


def model(name: str = "decoder", **settings: object) -> Model:
    return Model.load(name, **{**SMALL, **settings})
