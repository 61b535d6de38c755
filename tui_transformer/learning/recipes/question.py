"""`question`: an encoder that tells a question from a statement."""

from __future__ import annotations

from tui_transformer.learning.recipes import Recipe

RECIPE = Recipe(
    "question",
    "tells questions from statements",
    8_000,
    {
        "task": "classify",
        "sizes": {"layers": 1, "d_model": 32, "heads": 4},
        "steps": 600,
        "batch": 64,
        "length": 24,
        "learning_rate": 0.003,
        "warm_up": 40,
        "weight_decay": 0.1,
    },
)
