"""`story`: a decoder that writes very short stories in pieces of words."""

from __future__ import annotations

from tui_transformer.learning.recipes import Recipe

RECIPE = Recipe(
    "story",
    "writes very short stories",
    6_000,
    {
        "task": "next-word",
        "tokens": "bpe",
        "vocab_size": 512,
        "sizes": {"layers": 3, "d_model": 80, "heads": 4, "tie_output": True, "max_length": 160},
        "steps": 1_500,
        "batch": 16,
        "length": 160,
        "learning_rate": 0.003,
        "dropout": 0.0,
    },
)
