"""Dumps that other programs write: by the code that `diff --how` prints, by a program in C++, by TransformerLens."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dumping import REFERENCES, blamed

from tui_transformer.diagnosis import Diagnosis, Input, diagnose
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.model import Model

IDS = [1, 2, 3, 4, 5, 1]
NEEDS_CPP = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")


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


# Caches that TransformerLens 4.3.0 (`TransformerBridge`, `run_with_cache`) wrote for the reference checkpoints


CACHES = Path(__file__).with_name("transformer_lens")
FAMILIES = ("gpt2", "gemma2", "bloom", "mixtral")


def diagnosed(path: Path, family: str) -> Diagnosis:
    dump = open_dump(path)
    return diagnose(dump, Model.load(REFERENCES / family, device="cpu"), Input(dump.ids))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cache_of_the_library_agrees_from_embedding_to_logits_every_hook_in_the_layer_of_its_name(family):
    diagnosis = diagnosed(CACHES / f"{family}.npz", family)
    assert diagnosis.first is None
    compared = {each.step for each in diagnosis.steps}
    layers = {"self_attention.weights", "self_attention.masked", "self_attention.context", "feed_forward.output"}
    assert {f"decoder.{i}.{step}" for i in (0, 1) for step in layers} <= compared
    assert "decoder.norm" in compared
    assert all(any(step.startswith(part) for step in compared) for part in ("embedding.", "output."))
    for each in diagnosis.steps:
        number = each.theirs.removeprefix("blocks.").partition(".")[0]
        if each.theirs.startswith("blocks.") and ".hook_resid_pre" not in each.theirs:
            assert each.step.startswith(f"decoder.{number}."), each.theirs


HOOKS = {
    ("gpt2", "blocks.1.ln1.hook_out"): "decoder.1.self_attention.norm",
    ("gpt2", "blocks.1.attn.q.hook_out"): "decoder.1.self_attention.query",
    ("gpt2", "blocks.0.hook_resid_mid"): "decoder.0.self_attention.residual",
    ("gpt2", "blocks.1.mlp.in.hook_out"): "decoder.1.feed_forward.hidden",
    ("gpt2", "unembed.hook_out"): "output.logits",
    # scores whose distances count otherwise within a row
    ("bloom", "blocks.0.attn.hook_attn_scores"): "decoder.0.self_attention.masked",
}


@pytest.mark.parametrize(("family", "hook"), HOOKS)
def test_a_wrong_hook_is_named(tmp_path: Path, family: str, hook: str) -> None:
    arrays = dict(np.load(CACHES / f"{family}.npz"))
    np.savez(tmp_path / "cache.npz", **arrays | {hook: arrays[hook] * 0.5})
    first = blamed(diagnosed(tmp_path / "cache.npz", family).first)
    assert (first.step, first.theirs) == (HOOKS[family, hook], hook)


def test_the_values_before_gamma_are_no_norm_where_those_behind_it_are_there(tmp_path: Path) -> None:
    arrays = dict(np.load(CACHES / "gpt2.npz"))
    for name in [name for name in arrays if ".ln" in name and name.endswith("hook_out")]:
        del arrays[name]
    np.savez(tmp_path / "cache.npz", **arrays)
    first = blamed(diagnosed(tmp_path / "cache.npz", "gpt2").first)
    assert first.theirs == "blocks.0.ln1.hook_normalized"
    assert "γ" in first.says
