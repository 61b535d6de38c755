from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run, of_the_encoder

from tui_transformer import Metric, Model, gradients_of

TARGETS = "5,3,-1,6"


@pytest.fixture
def run(run: Run) -> Run:
    return of_the_encoder(run)


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
