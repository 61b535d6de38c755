"""Steps that are larger than a block are written and compared without ever being whole."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Run

from tui_transformer.cli import output
from tui_transformer.cli.two_traces import Computed, compared, together
from tui_transformer.diagnosis.dumps import npz_reader
from tui_transformer.engine import backend as backend_module
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
from tui_transformer.report.export import Blocks, write_npz

USUAL = ("--model", "encoder")

WORDS, LENGTH = 20_000, 64
PROBABILITIES = "output.probabilities"


def written(trace: Trace, name: str) -> bytes:
    file = io.BytesIO()
    write_npz(file, [(name, Blocks(output.full_shape(trace, name), output.runs(trace, name)))])
    return file.getvalue()


@pytest.mark.parametrize("ids", [[1, 2, 3, 4, 5], [[1, 2, 3], [4, 5, 6]]])
def test_blocks_give_the_bytes_of_the_whole_array(ids) -> None:
    trace = replace(Model.load("encoder", device="cpu", heads=4).trace(ids=ids), block=24)
    for name in trace.names:
        whole = io.BytesIO()
        write_npz(whole, [(name, trace[name])])
        assert written(trace, name) == whole.getvalue(), name


def test_runs_of_different_lengths_are_brought_together() -> None:
    cells, runs = np.arange(23), (np.split(np.arange(23), places) for places in ([4, 5, 20], [1, 21]))
    pairs = list(together(*map(iter, runs)))
    assert all(np.array_equal(one, other) for _, one, other in pairs)
    assert np.array_equal(np.concatenate([cells[region[0].start : region[0].stop] for region, _, _ in pairs]), cells)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_files_are_compared_in_runs(tmp_path: Path, save: Callable[..., None], order: str) -> None:
    first = np.random.default_rng(1).normal(size=(3, 5, 4))
    second = first.copy()
    second[1, 3, 2] += 0.5
    save(tmp_path / "a.npz", x=np.asarray(first, order=order), y=first[0])  # type: ignore[call-overload]
    np.savez(tmp_path / "b.npz", x=second, y=first[:1])
    one, other = (replace(npz_reader.open_trace(tmp_path / name), run=5) for name in ("a.npz", "b.npz"))
    x, y = (compared(name, one, other, 1e-5, run=7) for name in ("x", "y"))
    assert (x.beyond, x.index, x.shapes) == (True, (1, 3, 2), ((3, 5, 4), (3, 5, 4)))
    assert x.largest == pytest.approx(0.5)
    assert (y.beyond, y.largest) == (False, 0.0)


def test_two_files_are_compared_by_the_command(run: Run, tmp_path: Path) -> None:
    first = np.arange(60.0).reshape(3, 5, 4)
    second = first.copy()
    second[1, 3, 2] += 0.5
    np.savez(tmp_path / "a.npz", x=first, y=first[0])
    np.savez(tmp_path / "b.npz", x=second, y=first[:1])
    ended = run("diff", "a.npz", "b.npz")
    assert ended.code == 1
    assert "5.00e-01" in ended.out
    assert ended.out.splitlines()[-1].startswith("first difference: x[1, 3, 2] is ")
    assert "1 of 2 steps differ" in ended.out


def test_a_file_is_compared_with_a_model_without_a_budget(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", "--budget", "0")
    assert run("diff", "a.npz", "--budget", "0").code == 0
    with np.load(tmp_path / "a.npz") as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays["encoder.0.self_attention.weights"][5, 4, 3] += 0.25
    np.savez(tmp_path / "b.npz", **arrays)
    ended = run("diff", "b.npz", "--budget", "0")
    assert "encoder.0.self_attention.weights[5, 4, 3] is " in ended.out
    assert "encoder.0.self_attention.weights differs first" in ended.out


def peak(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_probabilities_are_never_whole(tmp_path: Path) -> None:
    backend_module.POOL.clear()
    model = Model.load("decoder", device="cpu", vocab_size=WORDS, d_model=8, heads=1, d_ff=8, max_length=LENGTH)
    trace = replace(model.trace(ids=[1] * LENGTH, budget=1 << 18), block=4 * WORDS)
    trace.window(PROBABILITIES, (range(1), range(1)))  # weights and residual stream are there
    path, whole = tmp_path / "a.npz", LENGTH * WORDS * 4

    def write() -> None:
        with path.open("wb") as file:
            write_npz(file, [(PROBABILITIES, Blocks((LENGTH, WORDS), output.runs(trace, PROBABILITIES)))])

    assert peak(write) < whole / 2
    found = []
    sides = Computed(trace, model), replace(npz_reader.open_trace(path), run=2 * WORDS)
    assert peak(lambda: found.append(compared(PROBABILITIES, *sides, 0.0, run=2 * WORDS))) < whole / 2
    assert (found[0].beyond, found[0].shapes[0]) == (False, (LENGTH, WORDS))
