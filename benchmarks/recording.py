"""Everything recorded, beside TransformerLens' `run_with_cache` and transformers' eager pass, in turn.

Both sides have the same sizes, random weights and as many threads (`--threads`).
"""

from __future__ import annotations

import sys

from benchmarks.measure import Promise, milliseconds, quick, repetitions, report
from benchmarks.sides import Taken, least, python_with

GPT2 = {32: 0.7, 256: 0.85, 1024: 0.85}
"""Tokens, and what is promised beside TransformerLens."""

ENCODERS = {"MiniLM": (384, 12, 1536, 6), "BERT base": (768, 12, 3072, 12)}
"""d_model, heads, d_ff, layers."""

TOKENS = (16, 128, 256, 512)
BOUND = 1.1
"""What is promised of MiniLM's sizes beside transformers."""


def main() -> None:
    for tokens, bound in [*GPT2.items()][: 2 if quick() else None]:
        times = repetitions(max(5, 1500 // tokens))
        title = f"GPT-2 sizes, n {tokens}"
        beside("transformer_lens", "TransformerLens", title, ("decoder", "lens"), (tokens,), times, bound)
        beside("transformers", "transformers", title, ("decoder", "decoder"), (tokens,), times)
    for name, sizes in ENCODERS.items():
        for tokens in TOKENS[:2] if quick() else TOKENS:
            promised = BOUND if name == "MiniLM" else None
            title, passes = f"{name}, n {tokens}", ("encoder", "encoder")
            beside("transformers", "transformers", title, passes, (*sizes, tokens), repetitions(21), promised)


def beside(
    module: str,
    name: str,
    title: str,
    passes: tuple[str, str],
    numbers: tuple[int, ...],
    times: int,
    bound: float | None = None,
) -> None:
    """This program beside another, where that is installed: by the clock, and in processor time."""
    python = python_with("torch", module)
    if python is None:
        return
    own, other = passes
    words = tuple(map(str, numbers))
    spent = least(
        {"own": (sys.executable, "own_passes", own, *words), "other": (python, "torch_passes", other, *words)}, times
    )
    report(*promises(f"{title} ÷ {name}", spent, bound))


def promises(title: str, spent: dict[str, Taken], bound: float | None) -> tuple[Promise, Promise]:
    """The ratio by the clock, which is promised, and that of processor time."""
    own, other = spent["own"], spent["other"]
    clock = milliseconds(own=own.clock, other=other.clock)
    processor = milliseconds(own=own.processor, other=other.processor)
    return (
        Promise(title, own.clock / other.clock, bound=bound, note=clock),
        Promise(f"{title}, processor time", own.processor / other.processor, note=processor),
    )


if __name__ == "__main__":
    main()
