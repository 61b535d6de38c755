"""Every head of GPT-2's sizes ablated, or patched from another sentence, beside TransformerLens, in turn."""

from __future__ import annotations

from benchmarks.measure import quick, repetitions
from benchmarks.recording import beside

TOKENS = (16, 64)
BOUND = 0.4


def main() -> None:
    for tokens in TOKENS[:1] if quick() else TOKENS:
        for what in ("ablate", "patch"):
            title = f"every head, {what}, GPT-2 sizes, n {tokens}"
            beside("transformer_lens", "TransformerLens", title, (what, what), (tokens,), repetitions(5), BOUND)


if __name__ == "__main__":
    main()
