"""The studies of LIBRARY.md beside the same ones by hand, with TransformerLens and PyTorch: numbers, lines and time."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

import tui_transformer
from benchmarks.measure import Promise, milliseconds, repetitions, report
from benchmarks.own_studies import TITLES, code
from benchmarks.sides import ROOT, least, python_with

MODELS = str(Path(tui_transformer.__file__).parent / "trained")
BY_HAND = (ROOT / "benchmarks" / "torch_studies.py").read_text(encoding="utf-8")
APART = 1e-6
"""How far numbers may be apart, beside the largest of a study: by hand all but the graph is in float32."""


def main() -> None:
    python = python_with("transformer_lens", "safetensors", "tokenizers")
    if python is None:
        return
    for study, title in TITLES.items():
        own, other = numbers(sys.executable, "own_studies", study), numbers(python, "torch_studies", MODELS, study)
        if own.shape != other.shape:
            raise SystemExit(f"{study}: {len(own)} numbers here, {len(other)} by hand")
        exact = numbers(sys.executable, "own_studies", study, "exact")
        apart, *rounded = (
            float(np.abs(a - b).max() / np.abs(exact).max()) for a, b in combinations((own, other, exact), 2)
        )
        said = "own and by hand from float64: {:.2g} and {:.2g}".format(*rounded)
        report(Promise(f"{title}: {len(own)} numbers apart ÷ {APART:g}", apart / APART, bound=1.0, note=said))
        lines = len(worked(code(study))), len(worked(by_hand(study)))
        report(Promise(f"{title}: lines ÷ by hand", lines[0] / lines[1], bound=1.0, note="{} and {}".format(*lines)))
        sides = {
            "own": (sys.executable, "own_studies", study, "serve"),
            "other": (python, "torch_studies", MODELS, study, "serve"),
        }
        spent = least(sides, repetitions(9))
        clock = milliseconds(own=spent["own"].clock, by_hand=spent["other"].clock)
        report(Promise(f"{title}: time ÷ by hand", spent["own"].clock / spent["other"].clock, bound=1.0, note=clock))
    shared = len(worked(BY_HAND.partition("# The studies\n")[0].partition("MODELS = ")[2]))
    print(f"  by hand {shared} lines more are shared by all of them: the model, its words, path patching")


def numbers(python: str, module: str, *words: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What one side found."""
    command = (python, "-m", f"benchmarks.{module}", *words)
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return np.array(json.loads(found.splitlines()[-1]))


def by_hand(study: str) -> str:
    """The function of a study, and what it alone uses."""
    own = re.search(rf"^def {study}\(.*?(?=^def (?:{'|'.join(TITLES)})\(|^STUDIES)", BY_HAND, re.M | re.S)
    assert own is not None  # noqa: S101
    return own[0]


def worked(source: str) -> list[str]:
    """Lines that do something: neither blank nor a comment, a docstring, an import or a print."""
    without = re.sub(r'^ *""".*?"""$', "", inspect.cleandoc(source), flags=re.M | re.S)
    return [line for line in without.splitlines() if not re.match(r" *(#|$|import |from |print\()", line)]


if __name__ == "__main__":
    main()
