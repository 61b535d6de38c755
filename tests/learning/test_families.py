"""Checkpoints of published families are trained further, saved and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import text_file

from tui_transformer.learning.run import Run
from tui_transformer.learning.settings import Settings
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent.parent / "references"


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("gpt2", "next-word"),
        ("qwen3", "next-word"),
        ("bert", "masked-word"),
        ("bart", "pairs"),
        ("marian", "pairs"),
        ("t5", "pairs"),
    ],
)
def test_a_published_model_is_trained_further(tmp_path, family, task):
    file = str(text_file(tmp_path, task, 20))
    options = {"steps": 3, "batch": 2, "length": 12, "device": "cpu", "save_every": 100, "accumulate": 1}
    settings = Settings(task, file, model=str(REFERENCES / family), **options)
    run = Run.start(tmp_path / "run", settings)
    before = run.trainer.validate()
    losses = [run.trainer.advance().loss for _ in range(2)]
    run.save()
    losses.append(run.trainer.advance().loss)
    run.close()
    again = Run.resume(tmp_path / "run", {})
    assert again.trainer.advance().loss == losses[2]
    assert again.trainer.validate() != before
    again.close()
    opened = Model.load(tmp_path / "run", device="cpu")
    assert opened.family.model_type == Model.load(REFERENCES / family, device="cpu").family.model_type
