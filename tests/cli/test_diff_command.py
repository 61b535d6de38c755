"""`diff`: what it writes of a dump and of two models, and its exit codes."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run, traced

SCALED = "encoder.0.self_attention.scaled"
SIZES, IDS = ("--heads", "4"), ("--model", "encoder", "--ids", "1,2,3")


@pytest.fixture
def wrong(run: Run, tmp_path: Path) -> Path:
    """A trace whose scores are divided by √d_model."""
    arrays = traced(run, "right", *SIZES)
    arrays[SCALED] = arrays["encoder.0.self_attention.scores"] / np.float32(np.sqrt(8))
    np.savez(tmp_path / "wrong.npz", **arrays)
    return tmp_path / "wrong.npz"


def test_two_traces_are_compared_in_either_format_that_is_written_and_in_bf16(run: Run, wrong: Path) -> None:
    run("trace", "--out", "right.safetensors", *SIZES, code=0)
    for files in (("right.safetensors", "right.npz"), ("right.safetensors", "right.safetensors")):
        ended = run("diff", *files, code=0)
        assert ended.out.splitlines()[-1] == "same: the 24 steps that were compared agree within 1e-05"
    assert f"first difference: {SCALED}[3, 6, 3] is" in run("diff", "right.safetensors", "wrong.npz", code=1).out
    # NumPy has bf16 as two bytes
    brain = (np.arange(6, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2").reshape(2, 3)
    np.savez("brain.npz", x=brain)
    np.savez("floats.npz", x=np.arange(6.0).reshape(2, 3))
    run("diff", "brain.npz", "brain.npz", code=0)
    run("diff", "brain.npz", "floats.npz", code=0)
    np.savez("brain.npz", x=brain[::-1])
    assert "first difference: x[0, 0] is 3 and 0;" in run("diff", "brain.npz", "floats.npz", code=1).out
    # others are of use beside a model alone
    Path("run.log").write_text("scores:\n1 2\n3 4\n")
    Path("folder").mkdir()
    np.save("folder/scores.npy", np.ones(3))
    for other in ("run.log", "folder"):
        refused = f"{other}: two dumps are compared as .npz or .safetensors: name it beside a model"
        run("diff", "right.npz", other).refuses(refused, 1)


def test_a_right_dump_is_the_same_and_a_wrong_one_is_told_what_to_mend(run: Run, wrong: Path) -> None:
    ended = run("diff", "right.npz", "encoder", *SIZES, code=0)
    assert ended.out.splitlines()[-1] == "same: the 23 steps that were compared are the same, as far as rounding goes"
    ended = run("diff", "wrong.npz", "encoder", *SIZES, code=1)
    assert "It matches when divided by √d_model: divide by √d_k = √2 instead of √8." in ended.out.splitlines()[-1]
    assert "differs first" in ended.out
    # the model may stand first
    assert run("diff", "encoder", "wrong.npz", *SIZES).code == 1
    # two traces
    assert run("diff", "right.npz", "wrong.npz", "--format", "json", code=1).json["first"]["step"] == SCALED


def test_as_json(run: Run, wrong: Path) -> None:
    ended = run("diff", "wrong.npz", "encoder", *SIZES, "--format", "json", code=1)
    report = ended.json
    assert list(report) == ["compared", "unmatched", "missing", "assumed", "first"]
    keys = ["step", "theirs", "index", "difference", "relative", "noise", "inputs_agree", "cause", "says"]
    assert list(report["first"]) == keys
    assert (report["first"]["step"], report["first"]["cause"]) == (SCALED, "scale-d_model")
    assert len(report["first"]["index"]) == 3
    assert run("diff", "right.npz", "encoder", *SIZES, "--format", "json", code=0).json["first"] is None


def test_a_log_of_printed_matrices(run: Run, tmp_path: Path) -> None:
    arrays = traced(run, "a", *IDS)
    embedding, positions = arrays["embedding.tokens"], arrays["embedding.positions"]
    with (tmp_path / "run.log").open("w") as file:
        for name, array in (("Embedding", embedding), ("Positional encoding", positions[:, ::-1])):
            file.write(f"{name}:\n")
            np.savetxt(file, array, fmt="%.6g")
    assert "embedding.positions differs first" in run("diff", "run.log", "encoder", "--ids", "1,2,3", code=1).out
    # a folder of arrays is a dump
    (tmp_path / "dump").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / "dump" / f"{name}.npy", array)
    assert run("diff", "dump", "encoder").code == 0


def test_a_dump_without_ids_is_compared_on_the_example_and_one_with_names_of_its_own_is_harmless(run, tmp_path) -> None:
    run("trace", "--out", "a.npz", "--model", "encoder", "--steps", "*.query")
    ended = run("diff", "a.npz", "encoder", code=0)
    assert "assumed: the dump names no token IDs: the example sentence of the model is taken" in ended.out
    # a pickled dump prints the lines that convert it
    (tmp_path / "dump.pt").write_bytes(b"\x80")
    assert "import torch; from safetensors.torch import save_file" in run("diff", "dump.pt", "encoder", code=1).err
    # names are shown harmless
    np.savez(tmp_path / "a.npz", **{"evil\x1b[31m": np.zeros((2, 2)), "logits": np.zeros((3, 8))})
    ended = run("diff", "a.npz", "encoder", "--ids", "1,2,3", code=1)
    assert "\x1b" not in ended.out + ended.err


def test_a_dump_of_several_sentences_is_compared_with_all_of_them_and_one_with_its_own(run: Run) -> None:
    given = ("--model", "encoder", "--text", "the waves crashed", "--text", "the shore")
    arrays = traced(run, "all", "--steps", "*.query", *given)
    assert arrays["encoder.0.self_attention.query"].shape[0] == 2
    run("diff", "all.npz", *given, code=0)
    np.savez("one.npz", **{name: array[1] for name, array in arrays.items()})
    arrays["encoder.0.self_attention.query"][1, 0, 1, 0] += 1
    np.savez("wrong.npz", **arrays)
    assert "encoder.0.self_attention.query[1, 0, 1, 0] is" in run("diff", "wrong.npz", *given, code=1).out
    assert run("diff", "one.npz", *given, "--item", "1").code == 0


def test_one_cell_that_is_nan_is_one(run: Run) -> None:
    arrays = traced(run, "a", *IDS)
    arrays["embedding.tokens"][0, 0] = np.nan
    np.savez("nan.npz", **arrays)
    assert "1 cell is NaN." in run("diff", "nan.npz", "encoder", *IDS).out


def test_how_a_dump_is_written_is_said_and_what_open_needs(run: Run) -> None:
    for subject in ("pytorch", "transformers", "jax", "numpy", "cpp", "llama.cpp"):
        assert "tui-transformer diff" in run("diff", "--how", subject, code=0).out
    np.savez("dump.npz", input_ids=np.arange(3))
    assert "the explorer needs a terminal" in run("diff", "dump.npz", "encoder", "--open").err
    assert "name one of each" in run("diff", "encoder", "--open", code=2).err


def rows(array: np.ndarray) -> str:
    return "\n".join(" ".join(f"{x:.9g}" for x in row) for row in array) + "\n"


def test_exit_codes_and_counts(run: Run, tmp_path: Path) -> None:
    logits = traced(run, "a", *IDS)["output.logits"]
    right, unknown = f"Tokens: [1, 2, 3]\nlogits:\n{rows(logits)}", "my matrix:\n1.5 2\n"
    for text, code, said in (
        (right, 0, "same: the step that was compared is the same"),
        (right + unknown, 3, "not all compared: the step that was compared is the same"),
        (right.replace("logits:", "Layer 0\nlogits:").replace("\n", "\n ") + "\n" + unknown, 3, "not all compared"),
        (f"Tokens: [1, 2, 3]\nLayer 0\nlogits:\n{rows(3 * logits)}{unknown}", 1, "output.logits differs first"),
    ):
        (tmp_path / "run.log").write_text(text)
        ended = run("diff", "run.log", "encoder")
        assert (ended.code, said in ended.out) == (code, True), ended.out
        report = run("diff", "run.log", "encoder", "--format", "json").json
        assert report["compared"] == 1
        assert report["unmatched"] == (["my matrix: no step of this name"] if unknown in text else [])
    assert "not compared (no step of this name): my matrix" in ended.out


def test_traces_of_which_one_holds_more_are_not_all_compared(run: Run) -> None:
    traced(run, "a", *IDS)
    traced(run, "b", *IDS, "--steps", "*.query")
    assert "not all compared: the 1 steps" in run("diff", "a.npz", "b.npz", code=3).out


def test_the_plan_says_what_was_taken_for_what(run: Run, tmp_path: Path) -> None:
    query = traced(run, "a", *IDS, *SIZES)["encoder.0.self_attention.query"]
    numbers = rows(query.transpose(1, 0, 2).reshape(3, -1))
    (tmp_path / "run.log").write_text(f"Tokens: [1, 2, 3]\nd_model: 8\nLayer 1\nQ:\n{numbers}odd:\n1.5 2\n")
    ended = run("diff", "run.log", "encoder", *SIZES, "--matched", code=3)
    lines = [line.split("  ") for line in ended.out.splitlines()]
    said = {line[0].strip(): [each.strip() for each in line[1:] if each.strip()] for line in lines}
    assert said["Tokens"][1:] == ["input.ids", "the same"]
    assert said["layer 1 Q"][1:] == ["encoder.0.self_attention.query", "axes are tokens × heads × d_k"]
    assert said["layer 1 odd"][-1] == "not compared: no step of this name"
    assert said["d_model"][-1] == "a setting"
    plan = run("diff", "run.log", "encoder", *SIZES, "--matched", "--format", "json").json["matched"]
    assert [each["theirs"] for each in plan] == ["Tokens", "d_model", "layer 1 Q", "layer 1 odd"]
    assert plan[2] == {
        "theirs": "layer 1 Q", "shape": [3, 8], "step": "encoder.0.self_attention.query",
        "assumed": "axes are tokens × heads × d_k", "reason": None,
    }  # fmt: skip
    # nothing at all
    (tmp_path / "run.log").write_text("odd:\n1.5 2\n")
    assert "not compared: no step of this name" in run("diff", "run.log", "encoder", "--matched", code=1).out


def test_the_sentence_that_is_wrong_is_said(run: Run, tmp_path: Path) -> None:
    text = ""
    for i, ids in enumerate(("1,2,3", "4,5")):
        logits = traced(run, str(i), "--model", "encoder", "--ids", ids)["output.logits"]
        text += f"Tokens: [{ids}]\nlogits:\n{rows(logits + 0.1 * i)}"
    (tmp_path / "run.log").write_text(text)
    assert "sentence 2: output.logits differs first" in run("diff", "run.log", "encoder", code=1).out
    report = run("diff", "run.log", "encoder", "--format", "json").json
    assert (report["compared"], report["sentence"], report["first"]["step"]) == (2, 2, "output.logits")


# Ends


COMMAND = (sys.executable, "-m", "tui_transformer", "diff", "encoder")
LOGS = {"headings": "scores of {}:\n" * 2, "one line": "0.125 1 {} ", "rows": "0.125 1 {}\n"}


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the files that a process has open")
@pytest.mark.parametrize("kind", LOGS)
def test_sigterm_ends_a_log_that_is_read_within_a_moment(kind, environment, tmp_path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(LOGS[kind].replace("{}", str(i)) for i in range(500)) * 2000)
    command = [*COMMAND, str(path)]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = usage.ru_utime + usage.ru_stime
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        _wait_until_open(process.pid, path)
        process.send_signal(signal.SIGTERM)
        before = _used(process.pid)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (143, b"", b"tui-transformer: diff was ended by SIGTERM\n")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - others - before < 2  # of the processor: far less than reading it takes


def _used(process: int) -> float:
    """Seconds of the processor that a process has used."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _wait_until_open(process: int, path: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(FileNotFoundError):  # a file that is closed while it is looked at
            if str(path) in map(os.path.realpath, Path(f"/proc/{process}/fd").iterdir()):
                return
        time.sleep(0.005)
    raise AssertionError(f"{path} was not opened")


# Two files of one model: steps, layers, heads and answers


LLAMA = str(REFERENCES / "llama")
TEXT = ("--text", "The cat sat on the mat")


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """The reference as a GGUF file, with the numbers as it stores them or in blocks."""
    pytest.importorskip("gguf")
    from gguf_files import write_gguf

    return lambda *kind: str(write_gguf(tmp_path / "llama.gguf", "llama", *kind))


def test_a_folder_and_a_quantized_file_of_it_are_compared_part_by_part(run: Run, written) -> None:
    quantized = written("Q4_1")
    ended = run("diff", LLAMA, quantized, *TEXT, code=1)
    lines = ended.out.splitlines()
    layers = [line.split()[0] for line in lines if line.startswith("decoder.") and " × " not in line][:2]
    assert layers == ["decoder.0.output", "decoder.1.output"]
    assert any(line.startswith("decoder.1.self_attention head ") for line in lines)
    assert any(line.startswith("logits: divergence 0.") for line in lines)
    assert lines[-1].startswith("first difference: decoder.0.self_attention.")
    report = run("diff", LLAMA, quantized, *TEXT, "--format", "json").json
    assert [each["name"] for each in report["layers"]] == layers
    assert len(report["heads"]) == 8
    errors = [each["error"] for each in report["heads"]]
    assert errors == sorted(errors, reverse=True)
    assert report["logits"]["positions"] == 9
    assert report["first"]["step"].startswith("decoder.0.self_attention.")
    # a file of floats is the same
    ended = run("diff", LLAMA, written(), "--ids", "3,4,5")
    assert (ended.code, ended.out.splitlines()[-1].split(":")[0]) == (0, "same")
    assert "logits: divergence 0 nats" in ended.out


def test_a_second_model_without_a_vocabulary_reads_the_tokens_of_the_first(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(LLAMA, folder, ignore=shutil.ignore_patterns("tokenizer.json"))
    assert run("diff", LLAMA, str(folder), *TEXT).code == 0


def test_what_names_stand_for_is_not_left_unread(run: Run, wrong: Path) -> None:
    Path("names.map").write_text("mine = encoder.0.self_attention.scaled\n")
    for option in (("--map", "names.map"), ("--names", "ggml")):
        run("diff", "right.npz", "right.npz", *option).refuses(f"{option[0]} says what the names of a dump", 2)
    beside = ("right.npz", "encoder", *SIZES, "--map", "names.map")
    run("diff", *beside).refuses("names.map: names nothing that is in the dump: it has tokens", 1)
    Path("names.map").write_text(f"mine = {SCALED}\n{SCALED} = {SCALED}\n")
    assert "names.map names what is not in the dump: mine\n" in run("diff", *beside, code=0).out
