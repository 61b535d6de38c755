"""Several sentences at once, what is put around them, and the one that is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer.cli import explore
from tui_transformer.explorer import run as explorer_run
from tui_transformer.model.options import Reading

ENCODER = ("--model", "encoder", "--vocab", "english")


def rows(run: Run, *arguments: str) -> list[str]:
    labels = json.loads(run("show", "tokens", "--format", "json", *arguments).out)["rows"]["labels"]
    return [label.partition(" @")[0] for label in labels]  # of words that come again, their places are said too


def test_a_sentence_has_its_begin_end_and_padding(run: Run) -> None:
    labels = rows(run, "--text", "the dog", "--bracket", "--pad-to", "6", *ENCODER)
    assert labels == ["[BOS]", "the", "dog", "[EOS]", "[PAD]", "[PAD]"]


def test_a_sentence_that_is_cut_keeps_its_begin_and_end(run: Run) -> None:
    arguments = ("--text", "the dog bites the cat", "--cut", "--bracket", *ENCODER)
    assert rows(run, *arguments, "--max-length", "4") == ["[BOS]", "the", "dog", "[EOS]"]
    assert rows(run, *arguments, "--pad-to", "5") == ["[BOS]", "the", "dog", "bites", "[EOS]"]
    said = run("show", "tokens", *arguments, "--max-length", "4").err
    assert said == "the sentence is cut: the model reads 4 tokens, 3 are left out\n"
    both = ("--text", "the dog bites the cat", "--text", "the", "--cut", "--pad-to", "4", *ENCODER)
    assert "reads 4 tokens, 1 are left out" in run("show", "tokens", *both).err


def test_padding_is_not_counted_among_what_is_read(run: Run) -> None:
    both = ("--text", "the dog bites the cat", "--text", "the dog", "--bracket", "--cut", "--pad-to", "4", *ENCODER)
    assert rows(run, *both, "--item", "1") == ["[BOS]", "the", "dog", "[EOS]"]


def test_a_sentence_that_is_patched_from_is_framed_like_the_other(run: Run) -> None:
    arguments = ("patch", "0.output", "--text", "the dog bites", "--from-text", "the cat bites", "--rows", "4")
    ended = run(*arguments, "--bracket", *ENCODER)  # row 4 is [EOS]: there is none without brackets
    assert (ended.code, "5 × 8" in ended.out) == (0, True), ended.err


@pytest.mark.parametrize(("item", "expected"), [("0", ["the", "dog", "bites"]), ("1", ["the", "cat", "[PAD]"])])
def test_one_of_several_sentences_is_shown(run: Run, item: str, expected: list[str]) -> None:
    assert rows(run, "--text", "the dog bites", "--text", "the cat", "--item", item, *ENCODER) == expected


def test_a_trace_has_all_of_them(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "all.npz"
    assert run("trace", "--out", str(out), "--ids", "1,2,3;4,5", "--model", "encoder", "--steps", "tokens").code == 0
    with np.load(out) as arrays:
        assert arrays["tokens"].tolist()[0] == [1, 2, 3]
        assert arrays["tokens"].tolist()[1][:2] == [4, 5]
        assert arrays["padding"].astype(int).tolist() == [[1, 1, 1], [1, 1, 0]]


def test_the_shown_one_has_the_numbers_of_its_batch(run: Run, tmp_path: Path) -> None:
    out, batch = tmp_path / "all.npz", ("--ids", "1,2,3;4,5", "--model", "encoder")
    run("trace", "--out", str(out), *batch, "--steps", "encoder.0.output")
    shown = json.loads(run("show", "encoder.0.output", "--format", "json", "--item", "1", *batch).out)
    with np.load(out) as arrays:
        np.testing.assert_allclose(shown["values"], arrays["encoder.0.output"][1], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "tokens", "--text", "a", "--item", "1"), "--item 1: there is 1 sentence, 0"),
        (("show", "tokens", "--ids", "1;2,3", "--mask", "1,0", "--model", "encoder"), "--mask is of one sentence"),
        (("show", "tokens", "--ids", "1;;2", "--model", "encoder"), "there is no token ID"),
        (("generate", "--text", "a", "--text", "b"), "--text is given 2 times"),
        (("generate", "--ids", "1;2"), "--ids has 2 sentences"),
        (("generate", "--bracket"), "--bracket: a prompt is read as it is"),
        (("show", "tokens", "--text", "the dog", "--pad-to", "1", *ENCODER), "2 tokens are more than the 1"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run(*arguments)
    assert ended.code in (1, 2)
    assert ended.out == ""
    assert says in ended.err.splitlines()[-1]


def test_the_explorer_is_given_all_sentences_and_the_one_to_show(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(explore, "check_terminal", lambda: None)
    monkeypatch.setattr(explorer_run, "run", lambda *args, **more: given.append((*args, more)) or 0)
    assert run("--text", "the dog", "--text", "the cat", "--item", "1", "--bracket").code == 0
    ((options, reading, *_),) = given
    assert options.framing.bracket
    assert reading == Reading("the cat", batch=("the dog", "the cat"), item=1)


def test_decoding_stops_at_the_end_and_leaves_padding_out(run: Run) -> None:
    coded = json.loads(
        run("vocab", "tokens", "[BOS] the dog [EOS] [PAD] a", "--vocab", "english", "--format", "json").out
    )
    ids = ",".join(str(token["id"]) for token in coded["tokens"])
    assert run("vocab", "decode", ids, "--vocab", "english").out == "the dog\n"
    assert run("vocab", "decode", ids, "--around", "--vocab", "english").out == "[BOS] the dog [EOS] [PAD] a\n"
    assert run("vocab", "decode", "2,4,5,3,1,4", "--vocab", "nation").out == "strong nation\n"
    assert run("vocab", "decode", "99999", "--vocab", "waves").code == 1


# Masks


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
