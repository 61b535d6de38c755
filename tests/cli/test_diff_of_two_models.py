"""`diff` of two files of one model: steps, layers, heads and answers, as text and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import REFERENCES, Run

pytest.importorskip("gguf")
from gguf_files import write_gguf

LLAMA = str(REFERENCES / "llama")
TEXT = ("--text", "The cat sat on the mat")


@pytest.fixture
def quantized(tmp_path: Path) -> str:
    return str(write_gguf(tmp_path / "llama-q4.gguf", "llama", "Q4_1"))


def test_a_folder_and_a_quantized_file_of_it_are_compared_part_by_part(run: Run, quantized: str) -> None:
    ended = run("diff", LLAMA, quantized, *TEXT)
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("decoder.") and " × " not in line][:2] == [
        "decoder.0.output",
        "decoder.1.output",
    ]
    assert any(line.startswith("decoder.1.self_attention head ") for line in lines)
    assert any(line.startswith("logits: divergence 0.") for line in lines)
    assert lines[-1].startswith("first difference: decoder.0.self_attention.")


def test_the_same_as_data(run: Run, quantized: str) -> None:
    report = json.loads(run("diff", LLAMA, quantized, *TEXT, "--format", "json").out)
    assert [each["name"] for each in report["layers"]] == ["decoder.0.output", "decoder.1.output"]
    assert len(report["heads"]) == 8
    errors = [each["error"] for each in report["heads"]]
    assert errors == sorted(errors, reverse=True)
    assert report["logits"]["positions"] == 9
    assert report["first"]["step"].startswith("decoder.0.self_attention.")


def test_a_file_of_floats_is_the_same(run: Run, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "llama.gguf", "llama")
    ended = run("diff", LLAMA, str(path), "--ids", "3,4,5")
    assert (ended.code, ended.out.splitlines()[-1].split(":")[0]) == (0, "same")
    assert "logits: divergence 0 nats" in ended.out


def test_a_second_model_without_a_vocabulary_reads_the_tokens_of_the_first(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(LLAMA, folder, ignore=shutil.ignore_patterns("tokenizer.json"))
    assert run("diff", LLAMA, str(folder), *TEXT).code == 0


def test_models_that_cut_the_sentence_otherwise_are_not_compared(run: Run) -> None:
    ended = run("diff", LLAMA, str(REFERENCES / "bert"), *TEXT)
    assert (ended.code, ended.out) == (1, "")
    assert "cuts the sentence into" in ended.err
