"""`dates`: an encoder–decoder that turns a written date into the form of ISO 8601, character by character."""

from __future__ import annotations

from tui_transformer.learning.recipes import Recipe

RECIPE = Recipe(
    "dates",
    "writes dates as 2021-05-03",
    20_000,
    {
        "task": "pairs",
        "tokens": "characters",
        "sizes": {"layers": 2, "d_model": 64, "heads": 4},
        "steps": 3_000,
        "batch": 64,
        "length": 40,
        "learning_rate": 0.002,
    },
)
