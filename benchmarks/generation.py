"""A token with kept keys and values against reading every weight once; tokens a second with and without the cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.weights import Weights, random_weights
from tui_transformer.generation.rules import Rules
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model
from tui_transformer.model.families.gpt2 import Gpt2Config

LENGTHS = (32, 256, 768)
"""Tokens that are there before the measured ones."""

WITHOUT = 64
"""Tokens of the text that is computed again for every token."""

BOUND = 1.2
SETTINGS = Settings(greedy=True, max_new_tokens=1000)


def main() -> None:
    model = Model("gpt2", Gpt2Config.from_json({}), Weights(numpy_backend(), random_weights(0, 0.02)), None)
    for length in LENGTHS:
        functions = {"token": _tokens(model, SETTINGS, length), "products": _products(model)}
        spent = interleaved(functions, repetitions(30))
        name = f"token after {length} others ÷ a product with every weight, GPT-2 sizes"
        report(Promise(name, spent["token"] / spent["products"], bound=BOUND, note=milliseconds(**spent)))
        report(Promise(f"tokens a second with the cache, after {length}", 1 / spent["token"], "/s"))
    without = dataclasses.replace(SETTINGS, use_cache=False)
    spent = interleaved({"token": _tokens(model, without, WITHOUT)}, repetitions(9))
    report(Promise(f"tokens a second without the cache, after {WITHOUT}", 1 / spent["token"], "/s"))


def _tokens(model: Model, settings: Settings, length: int) -> Callable[[], float]:
    """One more token each time."""
    writer = Writer(model, settings, Rules())
    state = writer.begin(range(100, 100 + length))

    def advance() -> None:
        nonlocal state
        state = writer.next(state)

    return lambda: timed(advance)


def _products(model: Model) -> Callable[[], float]:
    """The product of a vector with every matrix that a token is multiplied by: every weight is read once."""
    held = {name: np.array(weight, order="C") for name, weight in model.weights.held.items()}  # each in one piece
    matrices = [weight for name, weight in held.items() if weight.ndim == 2 and not name.startswith("embedding.")]
    matrices.append(held["embedding.tokens.weight"].T)
    vectors = {matrix.shape[0]: np.ones((1, matrix.shape[0]), matrix.dtype) for matrix in matrices}
    return lambda: timed(lambda: [vectors[matrix.shape[0]] @ matrix for matrix in matrices])


if __name__ == "__main__":
    main()
