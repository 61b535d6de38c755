from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer.model import Model

USUAL = ("--model", "encoder")

SCALED = "encoder.0.self_attention.scaled"


def test_a_trace_holds_every_step_and_alias_under_its_name(run: Run, tmp_path: Path) -> None:
    ended = run("trace", "--out", "a.npz", "--text", "the waves crashed")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("wrote a.npz: 24 steps")
    trace = Model.load("encoder").trace("the waves crashed")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive.files == list(trace.names)
        for name in trace.names:
            np.testing.assert_array_equal(archive[name], trace[name])


def test_only_the_steps_that_match_are_written(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", "--steps", "*.sc*")
    with np.load(tmp_path / "a.npz") as archive:
        assert archive.files == ["encoder.0.self_attention.scores", SCALED]


def test_the_same_trace_gives_the_same_bytes_and_leaves_no_other_file(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz")
    run("trace", "--out", "b.npz", "--budget", "0")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


def test_a_trace_is_the_same_as_itself_and_as_the_model_that_made_it(run: Run) -> None:
    run("trace", "--out", "a.npz", "--ids", "1,2,3", "--seed", "4")
    assert run("diff", "a.npz", "a.npz").code == 0
    ended = run("diff", "a.npz", "--seed", "4", "--dtype", "float64")
    assert ended.code == 0
    assert ended.out.endswith("same: the 23 steps that were compared are the same, as far as rounding goes\n")


def test_the_first_step_that_differs_is_named_with_its_cell(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays[SCALED][2, 4, 1] += 0.5
    arrays["output.logits"][0, 0] += 9
    np.savez(tmp_path / "b.npz", **arrays)
    ended = run("diff", "a.npz", "b.npz")
    assert ended.code == 1
    last = ended.out.splitlines()[-1]
    assert last.startswith(f"first difference: {SCALED}[2, 4, 1] is ")
    assert "2 of 24 steps differ" in last
    assert run("diff", "a.npz", "b.npz", "--tolerance", "10").code == 0


def test_other_shapes_differ_and_names_of_one_side_are_listed(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", tokens=np.arange(3), mine=np.zeros(2))
    np.savez(tmp_path / "b.npz", tokens=np.arange(4), yours=np.zeros(2))
    ended = run("diff", "a.npz", "b.npz")
    assert ended.code == 1
    assert "only in the first: mine" in ended.out
    assert "only in the second: yours" in ended.out
    assert ended.out.splitlines()[-1].startswith("first difference: tokens is 3 ≠ 4")


def test_nothing_in_common_is_an_error(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", mine=np.zeros(2))
    assert run("diff", "a.npz").code == 1


@pytest.mark.parametrize("family", ["vanilla-encoder", "vanilla-decoder"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", "1e-5"), ("float64", "1e-12")])
def test_reference_dumps_agree_with_the_checkpoint_beside_them(
    run: Run, family: str, dtype: str, tolerance: str
) -> None:
    folder = REFERENCES / family
    arguments = ("--model", str(folder), "--dtype", dtype, "--tolerance", tolerance)
    ended = run("diff", str(folder / "expected.npz"), *arguments)
    assert ended.code == 3, ended.out  # its gradients are not compared
    (left,) = (line for line in ended.out.splitlines() if line.startswith("not compared"))
    assert left.startswith("not compared (a gradient: only what the forward pass computes is compared): ")
    assert left.count("gradient/") == left.count(", ") + 1
    assert "self_attention.weights" in ended.out


def test_two_checkpoints_are_compared_on_the_same_ids(run: Run) -> None:
    ended = run("diff", "encoder", str(REFERENCES / "vanilla-encoder"), "--ids", "1,2,3")
    assert ended.code == 1
    assert "≠" in ended.out
