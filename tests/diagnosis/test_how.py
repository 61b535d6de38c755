"""Code that `diff --how` prints is run as it stands, and its dump is read and agrees with the model."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.model import Model

IDS = [1, 2, 3, 4, 5, 1]
NEEDS_CPP = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
REFERENCES = Path(__file__).parent.parent / "references"


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("encoder", layers=2, d_model=16, heads=2, d_ff=24)


def snippet(name: str) -> str:
    return (resources.files("tui_transformer.diagnosis") / "how" / f"{name}.txt").read_text(encoding="utf-8")


def test_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.load("encoder", layers=1, d_model=16, heads=2, d_ff=24)
    trace, at = model.trace(ids=IDS), "encoder.0.self_attention"
    values = {"q": f"{at}.query", "k": f"{at}.key", "weights": f"{at}.weights", "y": f"{at}.output"}
    given: dict[str, Any] = {name: trace[step] for name, step in values.items()}
    given |= {"ids": IDS, "x": trace["embedding.output"]}
    monkeypatch.chdir(tmp_path)
    text = snippet("numpy").replace('["encoder.0.output"] = x', '["encoder.0.output"] = leaves')
    exec(text, given | {"leaves": trace["encoder.0.output"]})  # noqa: S102 - the project's own text
    dump = open_dump(tmp_path / "dump.npz")
    diagnosis = diagnose(dump, model, Input(dump.ids))
    assert diagnosis.first is None
    assert len(diagnosis.steps) == 6


@NEEDS_CPP
def test_cpp(tmp_path: Path, model: Model) -> None:
    trace, at = model.trace(ids=IDS), "encoder.1.self_attention"
    headings = {"layer 1 head 1 Q": f"{at}.query", "layer 1 head 1 scores": f"{at}.scores"}
    calls = []
    for heading, step in headings.items():
        rows = ", ".join("{" + ", ".join(f"{x:.9g}" for x in row) + "}" for row in trace[step][1])
        calls.append(f'print("{heading}", std::vector<std::vector<double>>{{{rows}}});')
    source = f"#include <vector>\n{snippet('cpp')}\nint main() {{ {' '.join(calls)} }}\n"
    (tmp_path / "a.cpp").write_text(source, encoding="utf-8")
    subprocess.run(["g++", "-o", tmp_path / "a.out", tmp_path / "a.cpp"], check=True)
    log = subprocess.run([tmp_path / "a.out"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "run.log").write_text(log, encoding="utf-8")
    diagnosis = diagnose(open_dump(tmp_path / "run.log"), model, Input(np.array([IDS])))
    assert diagnosis.first is None
    assert {each.step for each in diagnosis.steps} == set(headings.values())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gemma2", "mixtral"])
@pytest.mark.parametrize("way", ["pytorch", "transformers"])
def test_hooks_on_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, way: str) -> None:
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    folder = REFERENCES / family
    kind = transformers.AutoModel if family == "bert" else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    given: dict[str, Any] = {"AutoModelForCausalLM": kind, "folder": folder, "model": model}
    expected = np.load(folder / "expected.npz")
    ids = torch.tensor(expected["input_ids"])[None]
    monkeypatch.chdir(tmp_path)
    text = snippet(way)
    if family == "bert":
        text = text.replace(', "logits": out.logits.float().numpy()', "")
    exec(text, given | {"input_ids": ids})  # noqa: S102 - the project's own text
    dump = open_dump(next(tmp_path.glob("dump.*")))
    diagnosis = diagnose(dump, Model.load(folder, device="cpu"), Input(dump.ids))
    assert diagnosis.first is None, diagnosis.first
    assert len(diagnosis.steps) >= 5


# A program in C++ that prints its matrices with `cout` is told what is wrong with it


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    steps = model.program(1)
    with (folder / "weights.txt").open("w") as file:
        for name in steps.weights:
            weight = np.atleast_2d(model.weights.get(name, steps.shape(name)))
            file.write(f"{name} {weight.shape[0]} {weight.shape[1]}\n")
            np.savetxt(file, weight, fmt="%.9g")
    subprocess.run(["g++", "-O1", "-o", folder / "encoder", Path(__file__).with_name("encoder.cpp")], check=True)
    return folder


@NEEDS_CPP
@pytest.mark.parametrize(("fault", "cause"), [("", None), ("scale", "scale-d_model"), ("residual", "residual-missing")])
def test_its_log_is_read_and_its_mistake_is_named(program: Path, model: Model, fault: str, cause: str | None) -> None:
    run = subprocess.run([program / "encoder", fault], cwd=program, capture_output=True, text=True, check=True)
    log = program / f"{fault}.log"
    log.write_text(run.stdout)
    diagnosis = diagnose(open_dump(log), model, Input(np.array([[*IDS, 6, 7]])))
    assert (diagnosis.first and diagnosis.first.cause) == cause, diagnosis.first
    assert len(diagnosis.steps) > 20
    assert not diagnosis.unmatched
