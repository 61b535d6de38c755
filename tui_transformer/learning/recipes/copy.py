"""`copy`: a decoder of two layers that repeats sequences, with induction heads (Olsson et al. 2022)."""

from __future__ import annotations

from tui_transformer.learning.recipes import Recipe

RECIPE = Recipe(
    "copy",
    "repeats sequences of letters",
    40_000,
    {
        "task": "next-word",
        "sizes": {"layers": 2, "d_model": 64, "heads": 4, "positions": "learned"},
        "steps": 4_000,
        "batch": 64,
        "length": 48,
        "learning_rate": 0.003,
        "warm_up": 200,
        "dropout": 0.0,
    },
)
