from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer import Metric, Model, gradients_of
from tui_transformer.engine.gradient import gradients

USUAL = ("--model", "encoder")

TARGETS = "5,3,-1,6"


def trace(run: Run, *options: str, targets: str = TARGETS):
    return run("trace", "--out", "a.npz", "--ids", "1,2,3,4", "--gradients", "--targets", targets, *options)


@pytest.mark.parametrize("name", ["encoder", "decoder", "encoder-decoder"])
def test_gradients_of_a_reference_are_those_of_its_independent_implementation(run: Run, tmp_path: Path, name: str):
    folder = REFERENCES / f"vanilla-{name}"
    with np.load(folder / "expected.npz") as expected:
        wanted = {key: expected[key] for key in expected.files}
    ids, targets, decoder = (
        ",".join(map(str, wanted.get(key, []))) for key in ("input_ids", "targets", "decoder_input_ids")
    )
    more = ("--decoder-ids", decoder) if decoder else ()
    options = ("--ids", ids, *more, "--dtype", "float64", "--targets", targets)
    ended = run("trace", "--model", str(folder), "--out", "a.npz", "--gradients", *options)
    assert ended.code == 0, ended.err
    with np.load(tmp_path / "a.npz") as written:
        for key in (key for key in wanted if key.startswith("gradient/")):
            gap = np.abs(written[key] - wanted[key].reshape(written[key].shape)).max()
            assert gap <= 1e-8 * np.abs(wanted[key]).max() + 1e-15, key


@pytest.mark.parametrize("model", ["encoder", "decoder", "encoder-decoder"])
def test_every_weight_and_every_step_on_the_way_to_the_loss_has_a_gradient(run: Run, tmp_path: Path, model: str):
    more = ("--decoder-ids", "1,2,3,4") if model == "encoder-decoder" else ()
    ended = trace(run, "--model", model, *more)
    assert ended.code == 0, ended.err
    listing = [
        line.split() for line in run("show", "--model", model, "--format", "csv").out.replace(",", " ").split("\n")
    ]
    weights = {line[0] for line in listing if line[1:2] == ["weight"]}
    with np.load(tmp_path / "a.npz") as file:
        steps = {name for name in file.files if not name.startswith("gradient/")}
        gradients = {name.removeprefix("gradient/"): file[name] for name in file.files if name.startswith("gradient/")}
        assert weights <= set(gradients)
        without = {"tokens", "decoder.tokens", "embedding.positions", "decoder.embedding.positions"}
        assert steps - set(gradients) == (without & steps) | {"output.probabilities"}
        assert all(gradients[name].shape == file[name].shape for name in set(gradients) & steps)


def test_gradients_of_a_logit_difference_are_written_under_the_same_names(run: Run, tmp_path: Path):
    options = ("--model", "decoder", "--ids", "1,2,3,4", "--dtype", "float64")
    ended = run("trace", "--out", "a.npz", *options, "--gradients", "--tokens", "5,6", "--position", "2")
    assert ended.code == 0, ended.err
    assert "less that of" in ended.err
    trace = Model.load("decoder", dtype="float64").trace(ids=[1, 2, 3, 4])
    expected = gradients_of(trace, Metric("difference", (5, 6)), 2)
    with np.load(tmp_path / "a.npz") as file:
        for name in ("decoder.0.self_attention.weights", "embedding.tokens.weight"):
            np.testing.assert_array_equal(file[f"gradient/{name}"], expected.values[name])
    several = run("trace", "--out", "a.npz", "--ids", "1,2;3,4", "--gradients", "--tokens", "5")
    assert (several.code, "a metric is of one sentence" in several.err) == (2, True)


def test_the_loss_is_said_and_is_the_mean_cross_entropy(run: Run, tmp_path: Path):
    ended = trace(run)
    with np.load(tmp_path / "a.npz") as file:
        shares = file["output.probabilities"]
    loss = -np.mean([np.log(shares[row, target]) for row, target in ((0, 5), (1, 3), (3, 6))])
    first, second = ended.err.splitlines()
    assert first.endswith(": mean cross-entropy in nats over 3 of 4 positions")
    assert float(first.removeprefix("loss ").partition(":")[0]) == pytest.approx(loss, rel=1e-5)
    assert second.startswith("wrote a.npz: 24 steps, ")
    assert ended.out == ""


def test_a_pattern_is_for_steps_and_their_gradients(run: Run, tmp_path: Path):
    trace(run, "--steps", "*.scaled")
    with np.load(tmp_path / "a.npz") as file:
        name = "encoder.0.self_attention.scaled"
        assert file.files == [name, f"gradient/{name}"]
    trace(run, "--steps", "gradient/*.query.weight")
    with np.load(tmp_path / "a.npz") as file:
        assert file.files == ["gradient/encoder.0.self_attention.query.weight"]


def test_without_gradients_nothing_else_is_written(run: Run, tmp_path: Path):
    run("trace", "--out", "a.npz", "--ids", "1,2,3,4")
    with np.load(tmp_path / "a.npz") as file:
        assert not [name for name in file.files if name.startswith("gradient/")]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--gradients",), 2, "--gradients needs --targets"),
        (("--targets", "1"), 2, "give --gradients too"),
        (("--gradients", "--targets", "1,x"), 2, "--targets: 'x' is not a token ID"),
        (("--gradients", "--targets", ""), 2, "--targets: there is no token ID"),
        (("--gradients", "--targets", "1,2"), 1, "--targets: 2 for 4 positions"),
        (("--gradients", "--targets", "1,2,3,999"), 1, "target 999 is outside the vocabulary"),
        (("--gradients", "--targets", "1,2,3,-2"), 1, "target -2 is outside the vocabulary"),
        (("--gradients", "--targets", "-1,-1,-1,-1"), 1, "every target is −1"),
    ],
)
def test_targets_that_cannot_be_are_one_line(run: Run, tmp_path: Path, options: tuple[str, ...], code: int, said: str):
    ended = run("trace", "--out", "a.npz", "--ids", "1,2,3,4", *options)
    assert ended.code == code
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_model_without_logits_has_no_loss(run: Run):
    ended = run("trace", "--model", "attention", "--out", "a.npz", "--gradients", "--targets", "1,2,3")
    assert (ended.code, ended.out) == (1, "")
    assert "this model has no output.logits" in ended.err


# `show --gradient`


IDS, TARGETS = (1, 2, 3, 4), (5, 3, -1, 6)
SCALED, WEIGHT = "encoder.0.self_attention.scaled", "encoder.0.feed_forward.output.weight"
GRADIENT = ("--ids", "1,2,3,4", "--gradient", "--targets", "5,3,-1,6")


def gradient(name: str) -> np.ndarray:
    return gradients(Model.load("encoder").trace(ids=IDS), [TARGETS]).values[name]


def test_the_text_says_whose_gradient_it_is_and_how_it_is_made(run: Run) -> None:
    ended = run("show", "scaled", "--head", "3", *GRADIENT)
    assert ended.out.startswith(f"∂loss/∂{SCALED} · 8 × 4 × 4 · head 3 of 0 to 7\n")
    assert "∂loss/∂x says how much the loss grows" in " ".join(ended.out.split())
    assert ended.err.startswith("loss ")
    assert "over 3 of 4 positions" in ended.err


@pytest.mark.parametrize("name", [SCALED, WEIGHT, "output.logits", "embedding.output"])
def test_numbers_are_those_of_the_backward_pass(run: Run, name: str, tmp_path: Path) -> None:
    wanted = gradient(name)[0] if name == SCALED else gradient(name)
    read = json.loads(run("show", name, *GRADIENT, "--format", "json").out)
    assert read["name"] == f"gradient/{name}"
    assert read["formula"]
    np.testing.assert_allclose(np.array(read["values"]), wanted, rtol=1e-6)
    table = list(csv.reader(io.StringIO(run("show", name, *GRADIENT, "--format", "csv").out)))
    np.testing.assert_allclose(np.array([row[1:] for row in table[1:]], float), wanted, rtol=1e-6)
    run("show", name, *GRADIENT, "--out", "a.svg")
    assert f"∂loss/∂{name}" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize("name", [SCALED, WEIGHT, "output.logits", "encoder.0.output"])
def test_a_cell_is_explained_by_the_chain_rule(run: Run, name: str) -> None:
    ended = run("show", name, *GRADIENT, "--explain", "1,2", "--format", "json")
    read = json.loads(ended.out)
    own = "encoder.0.feed_forward.norm" if name == "encoder.0.output" else name
    index = (0, 1, 2) if name == SCALED else (1, 2)
    assert read["name"] == f"gradient/{own}"
    assert read["stored"] == pytest.approx(float(gradient(own)[index]), rel=1e-6)
    assert read["recomputed"] == pytest.approx(read["stored"], rel=1e-3, abs=1e-7)
    text = run("show", name, *GRADIENT, "--explain", "1,2").out
    assert text.startswith(f"gradient/{own}[{', '.join(map(str, index))}]")


def test_a_pattern_shows_what_has_a_gradient(run: Run) -> None:
    out = run("show", "embedding.*", *GRADIENT).out
    assert "∂loss/∂embedding.tokens · " in out
    assert "∂loss/∂embedding.positions" not in out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("scaled", "--gradient"), 2, "--gradient needs --targets"),
        (("scaled", "--targets", "1"), 2, "give --gradient too"),
        (("--gradient", "--targets", "1"), 2, "need a STEP"),
        (("scaled", "--gradient", "--targets", "1,2"), 1, "--targets: 2 for 4 positions"),
        (("tokens", "--gradient", "--targets", "1,2,3,4"), 1, "tokens has no gradient"),
        (("output.probabilities", "--gradient", "--targets", "1,2,3,4"), 1, "output.probabilities has no gradient"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, options: tuple[str, ...], code: int, said: str) -> None:
    ended = run("show", "--ids", "1,2,3,4", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
