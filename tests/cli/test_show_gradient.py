"""`show --gradient`: the gradient of a step or weight in every format, and how one of its cells was made."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, of_the_encoder

from tui_transformer.engine.gradient import gradients
from tui_transformer.model import Model

IDS, TARGETS = (1, 2, 3, 4), (5, 3, -1, 6)
SCALED, WEIGHT = "encoder.0.self_attention.scaled", "encoder.0.feed_forward.output.weight"
GRADIENT = ("--ids", "1,2,3,4", "--gradient", "--targets", "5,3,-1,6")


@pytest.fixture
def run(run: Run) -> Run:
    return of_the_encoder(run)


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
