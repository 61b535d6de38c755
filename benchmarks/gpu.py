"""On a GPU: everything recorded and a token written, beside transformers and the products alone; keys and first screen.

Both sides compute in float32, PyTorch with TF32 off, as it is unless it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.keys import BARE, DEFAULT, LARGE, PRESSES, Case, measured, reported
from benchmarks.measure import Promise, milliseconds, quick, repetitions, report
from benchmarks.sides import Side, python_with
from benchmarks.start import LAST_WORD, PROGRAM
from benchmarks.terminal import Terminal
from tui_transformer.engine.backend import find_gpu

LENGTHS = (32, 128, 512, 1024, 2048, 4096)
"""Tokens that are recorded."""

OTHERS = (32, 256, 768)
"""Tokens that are there before those that are written."""

PLACES = LENGTHS[-1]


def main() -> None:
    gpu = find_gpu()
    if gpu.cupy is None:
        print(f"  not measured: {gpu.finding}")
        return
    print(f"  {gpu.finding}")
    python = python_with("torch", "transformers")
    others = {} if python is None else {"transformers": (python, "torch_passes")}
    products = {"products": (sys.executable, "own_passes", "products_on_gpu")}
    recording = {name: (*side, "on_gpu") for name, side in others.items()}
    for tokens, spent in _beside("on_gpu", {**recording, **products}, LENGTHS, 15).items():
        _report(f"GPT-2 sizes recorded, n {tokens}", spent)
    writing = {name: (*side, "token_on_gpu") for name, side in others.items()}
    for tokens, spent in _beside("token_on_gpu", writing, OTHERS, 60).items():
        _report(f"a token after {tokens} others", spent)
    _screens()


def _beside(
    own: str, others: Mapping[str, tuple[str, ...]], lengths: tuple[int, ...], times: int
) -> dict[int, dict[str, float]]:
    """The least seconds of each side for so many tokens, in turn, after two passes that do not count."""
    sides = {"own": (sys.executable, "own_passes", own), **others}
    taken: dict[int, dict[str, float]] = {}
    with ExitStack() as stack:
        running = {name: stack.enter_context(Side(*command, str(PLACES), threads=2)) for name, command in sides.items()}
        for tokens in lengths:
            passes = [
                {name: side(tokens).clock for name, side in running.items()} for _ in range(repetitions(times) + 2)
            ]
            taken[tokens] = {name: min(each[name] for each in passes[2:]) for name in running}
    return taken


def _report(title: str, spent: Mapping[str, float]) -> None:
    for name, seconds in spent.items():
        if name != "own":
            report(
                Promise(f"{title} ÷ {name}", spent["own"] / seconds, note=milliseconds(own=spent["own"], other=seconds))
            )


def _screens() -> None:
    for device in ("cpu", "gpu"):
        with Terminal((*PROGRAM, "--device", device), 160, 45) as terminal:
            report(Promise(f"first screen, --device {device}", terminal.until(LAST_WORD), "s"))
    for sizes in (LARGE,) if quick() else (DEFAULT, LARGE):
        for device in ("cpu", "gpu"):
            case = Case(f"n 512, d {sizes.get('d_model', 16)}, {device}", 512, sizes, device=device)
            taken = measured(case, PRESSES, beside=True)
            plain = taken.pop(BARE)
            for name, spent in taken.items():
                reported(f"{name}, {case.name}", spent, plain)


if __name__ == "__main__":
    main()
