"""The recorded pass of an encoder against PyTorch's eager one, each in its own process.

`TORCH_PYTHON` names an interpreter that has torch and transformers, where this one has not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks.measure import Promise, interleaved, milliseconds, quick, repetitions, report

SIZES = {"MiniLM": (384, 12, 1536, 6), "BERT base": (768, 12, 3072, 12)}
"""d_model, heads, d_ff, layers."""

TOKENS = (16, 128, 512)
HERE = Path(__file__).parent


def main() -> None:
    python = torch_python()
    if python is None:
        print(
            "  not measured: torch and transformers are not there (TORCH_PYTHON may name an interpreter that has them)"
        )
        return
    for name, sizes in SIZES.items():
        for tokens in TOKENS[:2] if quick() else TOKENS:
            numbers = tuple(map(str, (*sizes, tokens)))
            own = printed(sys.executable, "-m", "benchmarks.own_encoder", *numbers)
            eager = printed(python, str(HERE / "eager_encoder.py"), *numbers)
            bare = printed(sys.executable, "-m", "benchmarks.products", *numbers)
            spent = interleaved({"recorded": own, "eager": eager, "products": bare}, repetitions(5))
            title = f"PyTorch's eager pass, {name}, n {tokens}"
            report(
                Promise(
                    f"recorded pass ÷ {title}",
                    spent["recorded"] / spent["eager"],
                    bound=0.8,
                    note=milliseconds(**spent),
                ),
                Promise(f"bare products ÷ {title}", spent["products"] / spent["eager"]),
            )


@cache
def torch_python() -> str | None:
    """An interpreter that can import torch and transformers."""
    for python in filter(None, (os.environ.get("TORCH_PYTHON"), sys.executable)):
        if (
            subprocess.run((python, "-c", "import torch, transformers"), capture_output=True, check=False).returncode
            == 0
        ):
            return python
    return None


def printed(*command: str) -> Callable[[], float]:
    """The number that a process prints."""
    return lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
