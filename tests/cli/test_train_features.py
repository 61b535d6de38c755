"""The command `train --features`."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


def test_the_command_learns_one_and_tells_how_good_it_is(run: Run, tmp_path: Path):
    options = ("--recipe", "copy", "--at", "decoder.0.output", "--out", "d", "--device", "cpu")
    ended = run("train", "--features", "48", *options, "--active", "5", "--steps", "4", "--batch", "64")
    assert ended.code == 0, ended.err
    assert "48, 5 active at a token" in ended.out
    assert "step 4 of 4" in ended.err
    assert json.loads((tmp_path / "d/cfg.json").read_text())["k"] == 5
    assert "not empty" in run("train", "--features", "48", *options).err
    assert "--features" in run("train", "--at", "decoder.0.output", "--out", "e").err
    assert "--task is of a model" in run("train", "--features", "8", *options, "--task", "pairs").err
    assert "--at STEP is missing" in run("train", "--features", "8", "--model", "copy", "--out", "e").err
    assert "--recipe NAME" in run("train", "--features", "8", "--model", "copy", "--at", "x", "--out", "e").err
