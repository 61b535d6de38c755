"""`weights list` and `weights export`, and the page that says what a folder of one's own has to hold."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

import tui_transformer
from tui_transformer.model import Model
from tui_transformer.model.config import Config

PAGE = (Path(tui_transformer.__file__).parent / "WEIGHTS.md").read_text(encoding="utf-8")
TABLE = "embedding.tokens.weight"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_every_weight_is_listed_with_its_shape_type_bytes_and_place(run: Run) -> None:
    bert = str(REFERENCES / "bert")
    rows = json.loads(run("weights", "list", "--model", bert, "--dtype", "float64", "--format", "json").out)
    program = Model.load(bert, device="cpu").program(1)
    assert [row["name"] for row in rows] == list(program.weights)
    assert rows[0] == {
        "name": TABLE,
        "shape": [140, 32],
        "type": "float64",
        "bytes": 140 * 32 * 8,
        "stored": "F32",
        "tensor": "bert.embeddings.word_embeddings.weight",
    }
    table = list(csv.DictReader(io.StringIO(run("weights", "list", "--model", bert, "--format", "csv").out)))
    assert (table[0]["shape"], table[0]["bytes"]) == ("140 × 32", str(140 * 32 * 4))


def test_a_model_of_random_weights_has_no_file(run: Run) -> None:
    lines = run("weights", "list", "--model", "encoder", "--d-model", "16").out.splitlines()
    assert lines[0].split() == ["name", "shape", "type", "bytes", "stored", "tensor"]
    assert lines[1].split() == [TABLE, "8", "×", "16", "float32", "512", "–", "–"]
    count = sum(int(line.split()[-3]) for line in lines[1:-2])
    assert lines[-1].endswith(f"{count // 4:,} numbers, {count // 1024} KiB")


@pytest.mark.parametrize("form", ["safetensors", "npz", "raw", "csv"])
def test_what_is_exported_opens_and_gives_the_same_answer(run: Run, tmp_path: Path, form: str) -> None:
    out = tmp_path / "mine"
    ended = run("weights", "export", "--model", "story", "--format", form, "--out", str(out))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith(f"wrote {out}: ")
    assert ended.err.endswith(f" MiB; --model {out} opens it\n") or " KiB; --model" in ended.err
    shown = ("show", "output.logits", "--text", "Once there was", "--dtype", "float64", "--format", "csv")
    assert run(*shown, "--model", str(out)).out == run(*shown, "--model", "story").out


def test_the_name_of_a_file_says_the_format(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "w.npz"
    ended = run("weights", "export", "--model", "encoder", "--seed", "4", "--out", str(out))
    assert (ended.code, "opens it" in ended.err) == (0, False)
    with np.load(out) as arrays:
        trace = Model.load("encoder", seed=4, device="cpu").trace(ids=[1])
        np.testing.assert_array_equal(arrays[TABLE], trace[TABLE])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("export", "--out", "x", "--text", "the"), 2, "--text: weights are the same for every text"),
        (("list", "--bracket"), 2, "--bracket: weights are the same"),
        (("export", "--out", "w.npz", "--format", "csv"), 2, "a file that ends in .npz is npz, not csv"),
        (("list", "--model", "nowhere"), 1, "no such folder"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, arguments: tuple[str, ...], code: int, says: str) -> None:
    ended = run("weights", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert says in ended.err


# The page


def test_the_commands_of_the_page_run_one_after_another(run: Run, tmp_path: Path) -> None:
    del tmp_path  # the commands run in it
    for line in block("sh").splitlines():
        ended = run(*shlex.split(line)[1:])
        assert ended.code == 0, ended.err


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_program_in_cpp_writes_a_folder_that_opens(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text(block("cpp"))
    compiled = ["g++", "-std=c++17", "-Wall", "-Werror", "mine.cpp", "-o", "mine_writes"]
    subprocess.run(compiled, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "mine_writes"], cwd=tmp_path, check=True)
    model = Model.load(tmp_path / "mine", device="cpu", dtype="float64")
    assert (model.vocabulary.pad_id, model.config.layers, model.unread) == (0, 2, ())
    trace = model.trace("the waves crashed")
    for name in ("encoder.1.feed_forward.hidden.weight", "encoder.0.self_attention.query.weight"):
        numbers = np.fromfile(tmp_path / "mine" / f"{name}.f32", "<f4")
        np.testing.assert_array_equal(trace[name].reshape(-1), numbers)
    assert trace["output.logits"].shape == (3, 6)
    ended = run("show", "0.self_attention.weights", "--model", "mine", "--text", "the waves crashed", "--head", "2")
    assert ended.code == 0, ended.err


def test_a_program_in_numpy_writes_a_folder_that_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block("python"), names)  # noqa: S102 - the project's own text
    model = Model.load(tmp_path / "mine", device="cpu")
    trace = model.trace("the waves crashed")
    for name, array in names["weights"].items():
        np.testing.assert_array_equal(trace[name], array)
    assert set(names["weights"]) == set(model.program(1).weights)


def test_the_page_says_the_defaults_of_the_configuration() -> None:
    config = Config().to_json()
    for key, said in {
        "norm_epsilon": "1e-5",
        "activation": '"relu"',
        "norm": '"post"',
        "positions": '"sinusoidal"',
        "max_length": "4096",
        "vocab_size": "8",
    }.items():
        assert re.search(rf"`{key}` +\| `?{re.escape(said)}", PAGE)
        assert json.loads(said) == config[key]
    assert "| `d_model`, `heads`, `d_ff` | 8, 8, 128 |" in PAGE
    assert (config["d_model"], config["heads"], config["d_ff"]) == (8, 8, 128)
    assert not any(config[key] for key in ("scale_embedding", "bias", "tie_output"))
