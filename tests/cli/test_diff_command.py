"""`diff` with a dump: what it writes, its exit codes, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

SCALED = "encoder.0.self_attention.scaled"
SIZES = ("--heads", "4")


@pytest.fixture
def wrong(run: Run, tmp_path: Path) -> Path:
    """A trace whose scores are divided by √d_model."""
    run("trace", "--out", "right.npz", *SIZES)
    with np.load(tmp_path / "right.npz") as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays[SCALED] = arrays["encoder.0.self_attention.scores"] / np.float32(np.sqrt(8))
    np.savez(tmp_path / "wrong.npz", **arrays)
    return tmp_path / "wrong.npz"


def test_a_right_dump_is_the_same(run: Run, wrong: Path) -> None:
    ended = run("diff", "right.npz", "encoder", *SIZES)
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "same: 23 arrays agree as far as rounding goes"


def test_a_wrong_dump_is_told_what_to_mend(run: Run, wrong: Path) -> None:
    ended = run("diff", "wrong.npz", "encoder", *SIZES)
    assert ended.code == 1
    assert "It matches when divided by √d_model: divide by √d_k = √2 instead of √8." in ended.out.splitlines()[-1]
    assert "differs first" in ended.out


def test_as_json(run: Run, wrong: Path) -> None:
    ended = run("diff", "wrong.npz", "encoder", *SIZES, "--format", "json")
    assert ended.code == 1
    report = json.loads(ended.out)
    assert list(report) == ["compared", "unmatched", "missing", "assumed", "first"]
    keys = ["step", "theirs", "index", "difference", "relative", "noise", "inputs_agree", "cause", "says"]
    assert list(report["first"]) == keys
    assert (report["first"]["step"], report["first"]["cause"]) == (SCALED, "scale-d_model")
    assert len(report["first"]["index"]) == 3
    same = run("diff", "right.npz", "encoder", *SIZES, "--format", "json")
    assert same.code == 0
    assert json.loads(same.out)["first"] is None


def test_the_model_may_stand_first(run: Run, wrong: Path) -> None:
    assert run("diff", "encoder", "wrong.npz", *SIZES).code == 1


def test_two_traces_as_json(run: Run, wrong: Path) -> None:
    ended = run("diff", "right.npz", "wrong.npz", "--format", "json")
    assert ended.code == 1
    assert json.loads(ended.out)["first"]["step"] == SCALED


def test_a_log_of_printed_matrices(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", "--model", "encoder", "--ids", "1,2,3")
    with np.load(tmp_path / "a.npz") as archive:
        embedding, positions = archive["embedding.tokens"], archive["embedding.positions"]
    with (tmp_path / "run.log").open("w") as file:
        for name, array in (("Embedding", embedding), ("Positional encoding", positions[:, ::-1])):
            file.write(f"{name}:\n")
            np.savetxt(file, array, fmt="%.6g")
    ended = run("diff", "run.log", "encoder", "--ids", "1,2,3")
    assert ended.code == 1
    assert "embedding.positions differs first" in ended.out


def test_a_dump_without_ids_is_compared_on_the_example(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", "--model", "encoder", "--steps", "*.query")
    ended = run("diff", "a.npz", "encoder")
    assert ended.code == 0
    assert "assumed: the dump names no token IDs: the example sentence of the model is taken" in ended.out


def test_a_folder_of_arrays_is_a_dump(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", "--model", "encoder", "--ids", "1,2,3")
    (tmp_path / "dump").mkdir()
    with np.load(tmp_path / "a.npz") as archive:
        for name in archive.files:
            np.save(tmp_path / "dump" / f"{name}.npy", archive[name])
    assert run("diff", "dump", "encoder").code == 0


@pytest.mark.parametrize("subject", ["pytorch", "transformers", "jax", "numpy", "cpp", "llama.cpp"])
def test_how_a_dump_is_written(run: Run, subject: str) -> None:
    ended = run("diff", "--how", subject)
    assert ended.code == 0
    assert "tui-transformer diff" in ended.out


def test_a_pickled_dump_prints_the_lines_that_convert_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dump.pt").write_bytes(b"\x80")
    ended = run("diff", "dump.pt", "encoder")
    assert ended.code == 1
    assert "import torch; from safetensors.torch import save_file" in ended.err


@pytest.mark.parametrize("arguments", [(), ("a.npz", "--tolerance", "-1"), ("a.npz", "--names", "mine")])
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("diff", *arguments).code == 2


def test_names_of_the_dump_are_shown_harmless(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{"evil\x1b[31m": np.zeros((2, 2)), "logits": np.zeros((3, 8))})
    ended = run("diff", "a.npz", "encoder", "--ids", "1,2,3")
    assert ended.code == 1
    assert "\x1b" not in ended.out + ended.err


def test_open_needs_a_terminal_and_one_dump(run):
    np.savez("dump.npz", input_ids=np.arange(3))
    assert "the explorer needs a terminal" in run("diff", "dump.npz", "encoder", "--open").err
    ended = run("diff", "encoder", "--open")
    assert (ended.code, "name one of each" in ended.err) == (2, True)
