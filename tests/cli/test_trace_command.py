"""`trace`: every step and gradient in a file, and two of them compared, however large they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run, arrays_of, traced
from reference import peak
from safetensors.numpy import load_file

from tui_transformer import Metric, gradients_of
from tui_transformer.cli import output
from tui_transformer.cli.two_traces import Computed, compared, together
from tui_transformer.diagnosis.dumps import npz_reader
from tui_transformer.engine import backend as backend_module
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model
from tui_transformer.report.export import Blocks, write_npz

USUAL = ("--model", "encoder")

SCALED = "encoder.0.self_attention.scaled"


def test_the_ending_of_a_file_may_be_in_capitals(run: Run, tmp_path: Path) -> None:
    run("trace", "--steps", "tokens", "--out", "a.SAFETENSORS", code=0)
    assert list(load_file(tmp_path / "a.SAFETENSORS")) == ["tokens"]


def test_no_file_is_called_as_if_another_format_were_in_it(run: Run, tmp_path: Path) -> None:
    shown = "what is shown ends in .txt, .json, .csv, .dat, .svg, .npz"
    of_weights = "a file of weights ends in .safetensors, .npz"
    for line, says in {
        "trace --out a.csv": "a trace ends in .safetensors, .npz",
        "trace --steps tokens --out a.JSON": "a trace ends in",
        "show --out a.safetensors": shown,
        "show weights --explain 0,0 --out a.html": shown,
        "weights export --model encoder --out a.csv": of_weights,
    }.items():
        run(*line.split()).refuses(f"--out {line.split()[-1]}: {says}", 2)
    assert not [*tmp_path.iterdir()]


def test_a_trace_holds_every_step_and_alias_under_its_name(run: Run) -> None:
    ended = run("trace", "--out", "a.npz", "--text", "the waves crashed")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("wrote a.npz: 24 steps")
    trace = Model.load("encoder").trace("the waves crashed")
    written = arrays_of("a.npz")
    assert list(written) == list(trace.names)
    for name in trace.names:
        np.testing.assert_array_equal(written[name], trace[name])
    # only the steps that match are written
    assert list(traced(run, "a", "--steps", "*.sc*")) == ["encoder.0.self_attention.scores", SCALED]


def test_the_same_trace_gives_the_same_bytes_and_the_first_step_that_differs_is_named(run: Run, tmp_path: Path) -> None:
    arrays = traced(run, "a")
    run("trace", "--out", "b.npz", "--budget", "0")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]
    # the first step that differs
    arrays[SCALED][2, 4, 1] += 0.5
    arrays["output.logits"][0, 0] += 9
    np.savez(tmp_path / "b.npz", **arrays)
    ended = run("diff", "a.npz", "b.npz", code=1)
    last = ended.out.splitlines()[-1]
    assert last.startswith(f"first difference: {SCALED}[2, 4, 1] is ")
    assert "2 of 24 steps differ" in last
    assert run("diff", "a.npz", "b.npz", "--tolerance", "10").code == 0


def test_a_trace_is_the_same_as_itself_and_as_the_model_that_made_it_without_a_budget_too(run, tmp_path) -> None:
    run("trace", "--out", "a.npz", "--ids", "1,2,3", "--seed", "4")
    assert run("diff", "a.npz", "a.npz").code == 0
    ended = run("diff", "a.npz", "--seed", "4", "--dtype", "float64", code=0)
    assert ended.out.endswith("same: the 23 steps that were compared are the same, as far as rounding goes\n")
    # without a budget
    arrays = traced(run, "a", "--budget", "0")
    assert run("diff", "a.npz", "--budget", "0").code == 0
    arrays["encoder.0.self_attention.weights"][5, 4, 3] += 0.25
    np.savez(tmp_path / "b.npz", **arrays)
    ended = run("diff", "b.npz", "--budget", "0")
    assert "encoder.0.self_attention.weights[5, 4, 3] is " in ended.out
    assert "encoder.0.self_attention.weights differs first" in ended.out


def test_other_shapes_differ_and_names_of_one_side_are_listed(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", tokens=np.arange(3), mine=np.zeros(2))
    np.savez(tmp_path / "b.npz", tokens=np.arange(4), yours=np.zeros(2))
    ended = run("diff", "a.npz", "b.npz", code=1)
    assert "only in the first: mine" in ended.out
    assert "only in the second: yours" in ended.out
    assert ended.out.splitlines()[-1].startswith("first difference: tokens is 3 ≠ 4")
    # nothing in common is an error
    np.savez(tmp_path / "a.npz", mine=np.zeros(2))
    assert run("diff", "a.npz").code == 1
    # two checkpoints
    assert "≠" in run("diff", "encoder", str(REFERENCES / "vanilla-encoder"), "--ids", "1,2,3", code=1).out


@pytest.mark.parametrize("family", ["vanilla-encoder", "vanilla-decoder", "vanilla-encoder-decoder"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", "1e-5"), ("float64", "1e-12")])
def test_reference_dumps_agree_with_the_checkpoint_beside_them(run: Run, family, dtype, tolerance) -> None:
    folder = REFERENCES / family
    arguments = ("--model", str(folder), "--dtype", dtype, "--tolerance", tolerance)
    ended = run("diff", str(folder / "expected.npz"), *arguments, code=3)
    (left,) = (line for line in ended.out.splitlines() if line.startswith("not compared"))
    assert left.startswith("not compared (a gradient: only what the forward pass computes is compared): ")
    assert left.count("gradient/") == left.count(", ") + 1
    assert "self_attention.weights" in ended.out
    assert ("cross_attention.weights" in ended.out) == (family == "vanilla-encoder-decoder")


# Gradients


TARGETS = "5,3,-1,6"


def trace(run: Run, *options: str, targets: str = TARGETS):
    return run("trace", "--out", "a.npz", "--ids", "1,2,3,4", "--gradients", "--targets", targets, *options)


def test_gradients_of_a_logit_difference_are_written_under_the_same_names(run: Run):
    options = ("--model", "decoder", "--ids", "1,2,3,4", "--dtype", "float64")
    ended = run("trace", "--out", "a.npz", *options, "--gradients", "--tokens", "5,6", "--position", "2", code=0)
    assert "less that of" in ended.err
    trace = Model.load("decoder", dtype="float64").trace(ids=[1, 2, 3, 4])
    expected = gradients_of(trace, Metric("difference", (5, 6)), 2)
    for name in ("decoder.0.self_attention.weights", "embedding.tokens.weight"):
        np.testing.assert_array_equal(arrays_of("a.npz")[f"gradient/{name}"], expected.values[name])
    several = run("trace", "--out", "a.npz", "--ids", "1,2;3,4", "--gradients", "--tokens", "5", code=2)
    assert "a metric is of one sentence" in several.err


def test_the_loss_is_said_and_is_the_mean_cross_entropy(run: Run):
    ended = trace(run)
    arrays = arrays_of("a.npz")
    wanted = dict(gradients(Model.load("encoder").trace(ids=IDS), [TARGETS]).values)
    wanted["encoder.0.output"] = wanted["encoder.0.feed_forward.norm"]
    assert {name for name in arrays if name.startswith("gradient/")} == {f"gradient/{name}" for name in wanted}
    assert all((arrays[f"gradient/{name}"] == array).all() for name, array in wanted.items())
    shares = arrays["output.probabilities"]
    loss = -np.mean([np.log(shares[row, target]) for row, target in ((0, 5), (1, 3), (3, 6))])
    first, second = ended.err.splitlines()
    assert first.endswith(": mean cross-entropy in nats over 3 of 4 positions")
    assert float(first.removeprefix("loss ").partition(":")[0]) == pytest.approx(loss, rel=1e-5)
    assert second.startswith("wrote a.npz: 24 steps, ")
    assert ended.out == ""


def test_a_pattern_is_for_steps_and_their_gradients(run: Run):
    trace(run, "--steps", "*.scaled")
    assert list(arrays_of("a.npz")) == [SCALED, f"gradient/{SCALED}"]
    trace(run, "--steps", "gradient/*.query.weight")
    assert list(arrays_of("a.npz")) == ["gradient/encoder.0.self_attention.query.weight"]
    # without gradients nothing else is written
    assert not [name for name in traced(run, "a", "--ids", "1,2,3,4") if name.startswith("gradient/")]


# `show --gradient`


IDS, TARGETS = (1, 2, 3, 4), (5, 3, -1, 6)
WEIGHT = "encoder.0.feed_forward.output.weight"
GRADIENT = ("--ids", "1,2,3,4", "--gradient", "--targets", "5,3,-1,6")


def gradient(name: str) -> np.ndarray:
    return gradients(Model.load("encoder").trace(ids=IDS), [TARGETS]).values[name]


def test_the_text_says_whose_gradient_it_is_and_what_its_numbers_are(run: Run, tmp_path: Path) -> None:
    ended = run("show", "scaled", "--head", "3", *GRADIENT)
    assert ended.out.startswith(f"∂loss/∂{SCALED} · 8 × 4 × 4 · head 3 of 0 to 7\n")
    assert "∂y/∂x says how much y, the loss or a metric, grows" in " ".join(ended.out.split())
    assert ended.err.startswith("loss ")
    assert "over 3 of 4 positions" in ended.err
    assert run("show", "output.logits", "--ids", "5", "--gradient", "--targets", "2").err.endswith(
        "over 1 of 1 position\n"
    )
    for name in (SCALED, WEIGHT, "output.logits", "embedding.output"):
        wanted = gradient(name)[0] if name == SCALED else gradient(name)
        read = run("show", name, *GRADIENT, "--format", "json").json
        assert read["name"] == f"gradient/{name}"
        assert read["formula"]
        np.testing.assert_allclose(np.array(read["values"]), wanted, rtol=1e-6)
        table = list(csv.reader(io.StringIO(run("show", name, *GRADIENT, "--format", "csv").out)))
        np.testing.assert_allclose(np.array([row[1:] for row in table[1:]], float), wanted, rtol=1e-6)
        run("show", name, *GRADIENT, "--out", "a.svg")
        assert f"∂loss/∂{name}" in (tmp_path / "a.svg").read_text()
    # a pattern shows what has a gradient
    out = run("show", "embedding.*", *GRADIENT).out
    assert "∂loss/∂embedding.tokens · " in out
    assert "∂loss/∂embedding.positions" not in out


def test_a_cell_is_explained_by_the_chain_rule(run: Run) -> None:
    for name in (SCALED, WEIGHT, "output.logits", "encoder.0.output"):
        ended = run("show", name, *GRADIENT, "--explain", "1,2", "--format", "json")
        read = ended.json
        own = "encoder.0.feed_forward.norm" if name == "encoder.0.output" else name
        index = (0, 1, 2) if name == SCALED else (1, 2)
        assert read["name"] == f"gradient/{own}"
        assert read["stored"] == pytest.approx(float(gradient(own)[index]), rel=1e-6)
        assert read["recomputed"] == pytest.approx(read["stored"], rel=1e-3, abs=1e-7)
        text = run("show", name, *GRADIENT, "--explain", "1,2").out
        assert text.startswith(f"gradient/{own}[{', '.join(map(str, index))}]")


# Steps that are larger than a block are written and compared without ever being whole


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


def test_a_trace_goes_to_a_device_and_to_a_loop_of_links(run: Run, tmp_path: Path) -> None:
    given = ("--steps", "tokens", "--model", "encoder", "--ids", "1,2")
    assert "wrote /dev/null: 1 steps" in run("trace", "--out", "/dev/null", *given, code=0).err
    loop = tmp_path / "loop.npz"
    loop.symlink_to(loop)
    run("trace", "--out", "loop.npz", *given, code=0)
    assert np.load(loop)["tokens"].tolist() == [1, 2]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    run("weights", "export", "--model", "encoder", "--out", "loop").refuses("cannot be written", 1)
