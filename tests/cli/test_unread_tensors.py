"""A command says on standard error which tensors of a checkpoint nothing reads."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from command_line import REFERENCES, Run
from safetensors.numpy import load_file, save_file


def test_one_line_names_them(run: Run, tmp_path: Path) -> None:
    shutil.copytree(REFERENCES / "llama", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    save_file(load_file(path) | {"extra\x1b[31m": np.ones(2, "f4")}, path)
    given = ("--model", str(tmp_path / "model"), "--ids", "5,6", "--device", "cpu")
    for command in (("show", "tokens"), ("generate", "--max-new-tokens", "1")):
        ended = run(*command, *given)
        assert ended.code == 0
        lines = [line for line in ended.err.splitlines() if "nothing here reads a tensor of the file: extra" in line]
        assert len(lines) == 1
        assert "\x1b" not in ended.err


def test_nothing_is_said_of_a_file_that_is_read_whole(run: Run) -> None:
    assert run("show", "tokens", "--model", str(REFERENCES / "llama"), "--ids", "5,6", "--device", "cpu").err == ""
