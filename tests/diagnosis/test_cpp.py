"""A program in C++ that prints its matrices with `cout` is told what is wrong with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.model import Model

SOURCE = Path(__file__).parent / "encoder.cpp"
IDS = [1, 2, 3, 4, 5, 1, 6, 7]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("encoder", layers=2, d_model=16, heads=2, d_ff=24)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    steps = model.program(1)
    with (folder / "weights.txt").open("w") as file:
        for name in steps.weights:
            weight = np.atleast_2d(model.weights.get(name, steps.shape(name)))
            file.write(f"{name} {weight.shape[0]} {weight.shape[1]}\n")
            np.savetxt(file, weight, fmt="%.9g")
    subprocess.run(["g++", "-O1", "-o", folder / "encoder", SOURCE], check=True)
    return folder


@pytest.mark.parametrize(("fault", "cause"), [("", None), ("scale", "scale-d_model"), ("residual", "residual-missing")])
def test_its_log_is_read_and_its_mistake_is_named(program: Path, model: Model, fault: str, cause: str | None) -> None:
    run = subprocess.run([program / "encoder", fault], cwd=program, capture_output=True, text=True, check=True)
    log = program / f"{fault}.log"
    log.write_text(run.stdout)
    diagnosis = diagnose(open_dump(log), model, Input(np.array([IDS])))
    assert (diagnosis.first and diagnosis.first.cause) == cause, diagnosis.first
    assert len(diagnosis.steps) > 20
    assert not diagnosis.unmatched
