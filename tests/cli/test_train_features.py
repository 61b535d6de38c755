"""The command `train --features`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from command_line import Ended, Run

from tui_transformer.features.dictionary import own_dictionary
from tui_transformer.model.model import Model


def test_the_command_learns_one_and_tells_how_good_it_is(run: Run, tmp_path: Path):
    options = ("--recipe", "copy", "--at", "decoder.0.output", "--out", "d", "--device", "cpu")
    ended = run("train", "--features", "48", *options, "--active", "5", "--steps", "4", "--batch", "64", code=0)
    assert "48, 5 active at a token" in ended.out
    assert "step 4 of 4" in ended.err
    assert json.loads((tmp_path / "d/cfg.json").read_text())["k"] == 5
    assert "not empty" in run("train", "--features", "48", *options).err


def test_the_explorer_begins_with_the_features_of_a_dictionary(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(own_dictionary(Model.load("story", device="cpu").folder))

    def told(typed: str, *more: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{typed}\nquit\n"))
        return run("--model", "story", "--plain", *more)

    assert "decoder.1.output.features" in told(": decoder.1.output.features", "--features", folder).out
    out = told(": decoder.0.output.error", "--features", folder, "--at", "decoder.0.output").out
    assert "decoder.0.output.error" in out
    assert "nothing" in told("", "--features", folder, "--at", "nothing").err
    assert "--features" in told("", "--at", "decoder.0.output").err
