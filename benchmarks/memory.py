"""Memory of a run that keeps nothing."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np

from benchmarks.measure import Promise, report
from tui_transformer.engine.program import Program
from tui_transformer.model import Model

TOKENS, LAYERS = 256, 6
ITEM = np.dtype(np.float32).itemsize
MIB = 1 << 20


def main() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    model = Model.load("encoder", device="cpu", d_model=256, heads=8, d_ff=1024, layers=LAYERS)
    trace = model.trace(ids=[1 + i % 7 for i in range(TOKENS)], budget=0)
    for name in trace.program.weights:
        trace.array(name)
    tracemalloc.reset_peak()
    trace.compute()
    peak = tracemalloc.get_traced_memory()[1] - before
    needed = _needed(trace.program)
    steps = trace.program.step_cells() * ITEM
    note = f"{peak / MIB:.1f} MiB against {needed / MIB:.1f} MiB; all steps would be {steps / MIB:.1f} MiB"
    report(Promise("peak of a run that keeps nothing ÷ weights + one layer", peak / needed, bound=1.0, note=note))


def _needed(program: Program) -> int:
    """Bytes of the weights, the input, the output and the steps of one layer."""
    layer = [step for step in program.steps if step.layer == "encoder.0"]
    ends = (*program.givens, program.steps[-1].name)
    size = program.weight_count() + program.step_cells(layer) + sum(math.prod(program.shape(name)) for name in ends)
    return size * ITEM


if __name__ == "__main__":
    main()
