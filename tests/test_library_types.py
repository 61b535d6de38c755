"""The types that the library ships say what it takes: programs of its users can be checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tui_transformer

HOME = Path(tui_transformer.__file__).parent
PAGE = (HOME / "LIBRARY.md").read_text(encoding="utf-8")
EXAMPLES = ["\n".join(re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)) for section in PAGE.split("\n## ")]
PROGRAM = """
import numpy as np
from tui_transformer import Add, Apply, Model, Patch, Scale, Set, Trace

model = Model.load("story")
trace: Trace = model.trace("The fox found a shell")
vector = np.zeros(80)
edited = trace.edited([
    Set("0.self_attention.context", 0, heads=2, rows=np.int64(1)),
    Set("0.self_attention.context", [0.0, 1.0], heads=range(2), columns=range(2)),
    Set("*.self_attention.context", 0, heads=[0, 2]),
    Add("0.output", vector, rows=1),
    Scale("0.output", np.float32(2), columns=0),
    Apply("0.feed_forward.activation", function=lambda x: np.maximum(x, 0)),
    Patch.between(trace, model.trace("The crow found a shell"), "0.output", rows=1),
    Patch.of("0.feed_forward.output", 2 * trace["0.feed_forward.output"]),
])
shapes: dict[str, tuple[int, ...]] = {name: value.shape for name, value in edited.items()}
model.trace(ids=np.arange(5, 8))
"""

MISTAKEN = """
from tui_transformer import Metric, Model, effects, measure_texts, sweep, table_of

model = Model.load("story")
trace = model.trace("The fox found a shell")
Metric("logits", (5,))
sweep(trace, trace, "heads", Metric("logit", (5,)))
table_of(trace.program, "rows")
effects(trace, "head", metric=trace.program.shape)
measure_texts(model, ["The fox"], ["ablation"], metric="kl")
"""
"""A typing mistake in every one of its last lines."""


def test_a_program_of_a_user_is_found_right_by_mypy_and_its_mistakes_in_names_are_found(tmp_path: Path) -> None:
    assert (HOME / "py.typed").is_file()
    check = pytest.importorskip("mypy.api", reason="mypy is not installed").run
    texts = {f"example_{i}.py": text for i, text in enumerate((*EXAMPLES, PROGRAM))} | {"mistaken.py": MISTAKEN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in texts]
    said, mistakes, _ = check(["--strict", "--config-file=", "--cache-dir", str(tmp_path), *files])
    assert mistakes == ""
    errors = re.findall(r"(\w+)\.py:(\d+): error", said)
    assert errors == [("mistaken", str(line)) for line in (6, 7, 8, 9, 10)], said


def test_that_program_runs() -> None:
    exec(PROGRAM, {})  # noqa: S102 - as above
