"""Weights so large that the numbers overflow: nothing is printed that was not asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run
from safetensors.numpy import load_file, save_file

IDS = ("--ids", "3,4,5")


@pytest.fixture(params=["gpt2", "vanilla-decoder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A checkpoint with weights of about 1e30."""
    reference = REFERENCES / request.param
    shutil.copy(reference / "config.json", tmp_path)
    weights = {name: array * np.float32(1e30) for name, array in load_file(reference / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors")
    return str(tmp_path)


@pytest.mark.parametrize("command", ["heads", "links", "lens", "rollout", "ablate"])
def test_what_overflows_is_null_in_json(run: Run, folder: str, command: str) -> None:
    ended = run(command, "--model", folder, *IDS, "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    json.loads(ended.out, parse_constant=pytest.fail)


@pytest.mark.parametrize("more", [("--greedy",), ("--temperature", "0.7"), ("--no-cache",)])
def test_no_text_is_written_from_logits_that_overflow(run: Run, folder: str, more: tuple[str, ...]) -> None:
    ended = run("generate", "--model", folder, *IDS, *more)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith("the logits of the next token overflow: try --dtype float64\n")
