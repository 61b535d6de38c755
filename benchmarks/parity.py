"""How far the program is from an independent implementation: a line for every reference checkpoint.

The references hold what PyTorch computed in float64 (some of their softmaxes, angles and norms in float32).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer import Model, Trace

REFERENCES = Path(__file__).parent.parent / "tests" / "references"
KINDS = {
    "hidden": "{stack}.{before}.output",
    "attention": "{stack}.{i}.self_attention.weights",
    "cross_attention": "{stack}.{i}.cross_attention.weights",
}


@dataclass(frozen=True)
class Differences:
    """The largest difference from a reference, absolute and relative to an array's largest value, of so many arrays."""

    absolute: float
    relative: float
    arrays: int


def main() -> None:
    """Print the largest difference of every array of every reference, in both precisions."""
    print("largest difference from the reference, absolute (and relative to the array's largest value)")
    for folder in folders():
        print(f"  {folder.name:24}", end="")
        for dtype in ("float64", "float32"):
            found = differences(folder, dtype)
            print(f"  {dtype} {found.absolute:.1e} ({found.relative:.1e}) in {found.arrays} arrays", end="")
        print()


def folders() -> list[Path]:
    """The reference checkpoints that have expected values, by name."""
    return sorted(path for path in REFERENCES.iterdir() if (path / "expected.npz").exists())


def differences(folder: Path, dtype: str) -> Differences:
    """How far what is computed in a precision is from what the reference of a folder says."""
    with np.load(folder / "expected.npz") as expected:
        arrays = {name: expected[name] for name in expected.files}
    target = arrays.get("decoder_input_ids")
    model = Model.load(folder, device="cpu", dtype=dtype)
    trace = model.trace(ids=arrays["input_ids"].tolist(), decoder_ids=None if target is None else target.tolist())
    pairs = [(trace[name], wanted) for name, wanted in _wanted(trace, arrays)]
    relative = max(
        _difference(computed, wanted) / (np.abs(wanted[np.isfinite(wanted)]).max() or 1.0) for computed, wanted in pairs
    )
    return Differences(max(_difference(computed, wanted) for computed, wanted in pairs), relative, len(pairs))


def _wanted(trace: Trace, arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The step and the array that it has to equal, for every array of a reference."""
    for key, array in arrays.items():
        if key.startswith("value/"):
            yield key.removeprefix("value/"), array
        elif key == "logits":
            yield trace.program.logits, array
        elif key.rpartition("_")[2].isdigit():
            yield _step(trace, key, arrays), array


def _step(trace: Trace, key: str, arrays: Mapping[str, Any]) -> str:
    kind, _, number = key.rpartition("_")
    if kind == "router":
        return [name for name in trace.program.by_name if name.endswith("feed_forward.router")][int(number)]
    i, second = int(number), kind.startswith(("decoder_", "cross_"))
    stack = "decoder" if second or ("decoder.0.output" in trace and "encoder.0.output" not in trace) else "encoder"
    kind = kind.removeprefix("decoder_")
    if kind == "hidden" and i == 0:
        return "decoder.embedding.output" if second else "embedding.output"
    if kind == "hidden" and f"{key.rpartition('_')[0]}_{i + 1}" not in arrays and f"{stack}.norm" in trace:
        return f"{stack}.norm"
    return KINDS[kind].format(stack=stack, i=i, before=i - 1)


def _difference(computed: Any, wanted: Any) -> float:
    finite = np.isfinite(wanted)
    return float(np.abs(computed[finite] - wanted[finite]).max())


if __name__ == "__main__":
    main()
