"""`--mask`: padding on either side, in every command, kept in files that are written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

LLAMA = ("--model", str(REFERENCES / "llama"), "--device", "cpu", "--dtype", "float64")
WEIGHTS = "decoder.0.self_attention.weights"
PADDED = ("--ids", "2,2,12,10,9", "--mask", "0,0,1,1,1")


def values(run: Run, *arguments: str) -> np.ndarray:
    ended = run("show", WEIGHTS, "--format", "json", *LLAMA, *arguments)
    assert ended.code == 0, ended.err
    return np.array([[cell or 0.0 for cell in row] for row in json.loads(ended.out)["values"]])


@pytest.mark.parametrize(
    ("ids", "mask", "at"), [("2,2,12,10,9", "0,0,1,1,1", slice(2, None)), ("12,10,9,2,2", "1 1 1 0 0", slice(3))]
)
def test_a_padded_sentence_is_what_it_is_alone(run: Run, ids: str, mask: str, at: slice) -> None:
    padded, alone = values(run, "--ids", ids, "--mask", mask), values(run, "--ids", "12,10,9")
    np.testing.assert_allclose(padded[at, at], alone, atol=1e-12)


def test_a_mask_may_be_given_in_parts(run: Run) -> None:
    parts = values(run, *PADDED[:2], "--mask", "0,0", "--mask", "1,1,1")
    np.testing.assert_array_equal(parts, values(run, *PADDED))


def test_a_mask_hides_tokens_of_a_text(run: Run) -> None:
    ended = run(
        "show", "encoder.0.self_attention.weights", "--text", "the cat sat", "--mask", "1,1,0", "--format", "json"
    )
    assert ended.code == 0, ended.err
    assert not any(row[2] for row in json.loads(ended.out)["values"])


@pytest.mark.parametrize(
    ("mask", "code", "says"),
    [
        ("0,2", 2, "--mask: '2' is neither 1 nor 0"),
        (" , ", 2, "--mask: ' , ' is neither 1 nor 0"),
        ("1,1", 1, "this is 1 × 2, for 1 × 5 tokens"),
        ("0,0,0,0,0", 1, "a row of it has no 1"),
    ],
)
def test_a_mask_that_cannot_be_is_refused(run: Run, mask: str, code: int, says: str) -> None:
    ended = run("show", WEIGHTS, *LLAMA, "--ids", "2,2,12,10,9", "--mask", mask)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert says in ended.err


def test_a_model_that_reads_no_tokens_has_no_mask(run: Run) -> None:
    ended = run("show", "weights", "--model", "attention", "--mask", "1,1,0,1")
    assert ended.code == 1
    assert "reads no tokens" in ended.err


def test_a_trace_says_which_tokens_are_padding_and_is_compared_with_them(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "trace.npz"
    assert run("trace", "--out", str(out), *LLAMA, *PADDED).code == 0
    with np.load(out) as file:
        assert file["padding"].tolist() == [False, False, True, True, True]
    ended = run("diff", str(out), str(out), *LLAMA)
    assert (ended.code, "padding" in ended.out) == (0, False)
    diagnosed = run("diff", str(REFERENCES / "llama"), str(out), *LLAMA[2:])
    assert diagnosed.code == 0, diagnosed.out


def test_a_trace_without_padding_has_no_word_of_it(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "trace.npz"
    assert run("trace", "--out", str(out), *LLAMA, "--ids", "2,12").code == 0
    with np.load(out) as file:
        assert "padding" not in file.files


def test_a_dump_without_a_mask_is_compared_under_the_one_that_is_given(run: Run, tmp_path: Path) -> None:
    whole, bare = tmp_path / "whole.npz", tmp_path / "bare.npz"
    assert run("trace", "--out", str(whole), *LLAMA, *PADDED).code == 0
    with np.load(whole) as file:
        np.savez(bare, **{name: file[name] for name in file.files if name != "padding"})
    assert run("diff", str(bare), *LLAMA).code == 1
    assert run("diff", str(bare), *LLAMA, "--mask", "0,0,1,1,1").code == 0


def test_the_sentence_that_values_are_patched_from_has_the_same_mask(run: Run) -> None:
    same = ("patch", "decoder.0.output", "--from-ids", "2,2,12,10,9", *LLAMA)
    ended = run(*same, *PADDED, "--format", "json")
    assert ended.code == 0, ended.err
    assert not any(step["largest"] for step in json.loads(ended.out)["steps"])


def test_a_prompt_with_padding_is_written_on_as_it_is_without(run: Run) -> None:
    said = ("generate", *LLAMA, "--max-new-tokens", "4", "--format", "json")
    padded = run(*said, *PADDED)
    alone = run(*said, "--ids", "12,10,9")
    assert padded.code == alone.code == 0, padded.err
    tokens = [[json.loads(line).get("id") for line in ended.out.splitlines()] for ended in (padded, alone)]
    assert tokens[0] == tokens[1]
