"""The commands on a model with two token sequences."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer.cli import explore
from tui_transformer.explorer import run as explorer_run
from tui_transformer.explorer.run import open_session
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading

MODEL = ("--model", "encoder-decoder")
BOTH = (*MODEL, "--text", "The waves crashed", "--decoder-text", "the shore!")
WEIGHTS = "decoder.0.cross_attention.weights"
REFERENCE = REFERENCES / "vanilla-encoder-decoder"


def _trace(decoder_text: str | None = "the shore!", **sizes: object):
    return Model.load("encoder-decoder", **sizes).trace("The waves crashed", decoder_text=decoder_text)


def test_rows_are_words_of_the_decoder_and_columns_words_of_the_source(run: Run) -> None:
    read = json.loads(run("show", WEIGHTS, *BOTH, "--format", "json").out)
    assert read["shape"] == [8, 4, 3]
    assert read["rows"]["labels"] == ["[UNK]", "the", "shore", "!"]
    assert read["columns"]["labels"] == ["the", "waves", "crashed"]
    np.testing.assert_array_equal(np.array(read["values"], dtype=np.float32), _trace()[WEIGHTS][0])


def test_every_side_has_the_words_of_its_own_sequence(run: Run) -> None:
    def first_column(step: str) -> list[str]:
        return [row[0] for row in csv.reader(io.StringIO(run("show", step, *BOTH, "--format", "csv").out))][1:]

    source, target = ["the", "waves", "crashed"], ["[UNK]", "the", "shore", "!"]
    for step in ("tokens", "embedding.output", "encoder.0.output", "decoder.0.cross_attention.key"):
        assert first_column(step) == source, step
    for step in ("decoder.tokens", "decoder.embedding.output", "decoder.0.cross_attention.query", "output.logits"):
        assert first_column(step) == target, step


def test_equally_long_sequences_are_told_apart(run: Run) -> None:
    arguments = (*MODEL, "--ids", "2,3", "--decoder-ids", "4,6")
    read = json.loads(run("show", WEIGHTS, *arguments, "--format", "json").out)
    assert read["rows"]["labels"] == ["forcefully", "shore"]
    assert read["columns"]["labels"] == ["waves", "crashed"]


def test_a_cell_is_named_by_both_words(run: Run) -> None:
    first = run("show", WEIGHTS, *BOTH, "--explain", "2,1").out.splitlines()[0]
    assert first == f"{WEIGHTS}[0, 2, 1] · query shore · key waves"


def test_beside_a_sentence_that_is_given_there_is_the_start_token(run: Run) -> None:
    shown = run("show", "decoder.tokens", *MODEL, "--text", "the shore", "--format", "csv").out
    assert shown.splitlines() == [",decoder.tokens", "[UNK],0"]


@pytest.mark.parametrize(
    ("model", "words"), [("encoder-decoder", "[UNK] the waves crashed"), ("dates", "[BOS] 2 @1 0 2 @3 1 -")]
)
def test_beside_the_sample_a_few_words_are_written(run: Run, model: str, words: str) -> None:
    lines = run("show", "decoder.tokens", "--model", model, "--format", "csv").out.splitlines()
    assert " ".join(line.rpartition(",")[0] for line in lines[1:]) == words


def test_steps_of_both_stacks_are_listed_with_both_lengths(run: Run) -> None:
    lines = {line.split()[0]: line for line in run("show", *BOTH, "--decoder-layers", "2").out.splitlines()}
    assert "8 × 4 × 3" in lines["decoder.1.cross_attention.scores"]
    assert "8 × 3 × 3" in lines["encoder.0.self_attention.scores"]
    assert "encoder.1.output" not in lines
    assert next(iter(lines)) == "tokens"


def test_a_decoder_text_that_is_cut_is_said(run: Run) -> None:
    arguments = (*MODEL, "--max-length", "3", "--cut", "--text", "the shore", "--decoder-text", "the waves crashed")
    ended = run("show", "decoder.tokens", *arguments, "--format", "csv")
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 4
    assert "the decoder's text is cut: the model reads 3 tokens, 1 are left out" in ended.err


def test_a_trace_holds_the_steps_of_both_and_is_the_same_as_its_model(run: Run, tmp_path: Path) -> None:
    run("trace", "--out", "a.npz", *BOTH)
    expected = _trace()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive.files == list(expected.names)
        assert archive["decoder.tokens"].tolist() == [0, 1, 6, 7]
    ended = run("diff", "a.npz", *MODEL)
    assert ended.code == 0
    computed = [name for name in expected.names if not name.endswith("tokens") or "embedding" in name]
    assert ended.out.endswith(
        f"same: the {len(computed)} steps that were compared are the same, as far as rounding goes\n"
    )
    assert run("diff", "a.npz", *MODEL, "--decoder-text", "the shore").code == 1


def test_the_decoder_ids_of_a_file_are_no_input_for_a_model_of_one_sentence(run: Run) -> None:
    run("trace", "--out", "a.npz", *BOTH)
    ended = run("diff", "a.npz", "--model", "encoder")
    assert ended.err == ""
    assert re.search(r"^not compared \(no step of this name\): .*decoder\.embedding\.tokens", ended.out, re.MULTILINE)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", "1e-4"), ("float64", "1e-10")])
def test_the_reference_dump_agrees_with_its_checkpoint(run: Run, dtype: str, tolerance: str) -> None:
    arguments = ("--model", str(REFERENCE), "--dtype", dtype, "--tolerance", tolerance)
    ended = run("diff", str(REFERENCE / "expected.npz"), *arguments)
    assert ended.code == 3, ended.out  # its gradients are not compared
    assert re.findall(r"^not compared \((.*?):", ended.out, re.MULTILINE) == ["a gradient"]
    assert "decoder.1.cross_attention.weights" in ended.out


def test_the_explorer_begins_with_what_was_given() -> None:
    options = ModelOptions("encoder-decoder")
    assert open_session(options, "the waves", None).trace["decoder.tokens"].tolist() == [0]
    session = open_session(options, "the waves", None, decoder_text="the shore")
    assert session.trace["decoder.tokens"].tolist() == [0, 1, 6]
    cut = ModelOptions("encoder-decoder", sizes={"max_length": 3}, cut=True)
    opened = open_session(cut, "the waves", None, decoder_text="the waves crashed")
    assert opened.trace["decoder.tokens"].tolist() == [0, 1, 2]
    assert open_session(options, None, (2, 3), decoder_ids=(4,)).trace["decoder.tokens"].tolist() == [4]


def test_the_command_gives_both_sentences_to_the_explorer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(explore, "check_terminal", lambda: None)
    monkeypatch.setattr(explorer_run, "run", lambda *args, **more: given.append((*args, more)) or 0)
    assert run(*BOTH).code == 0
    assert run(*MODEL, "--ids", "1,2", "--decoder-ids", "3 4").code == 0
    (_, first, *_), (_, second, *_) = given
    assert first == Reading("The waves crashed", decoder_text="the shore!")
    assert second == Reading(ids=(1, 2), decoder_ids=(3, 4))


def test_the_explorer_refuses_a_second_sentence_for_a_model_of_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "check_terminal", lambda: None)
    ended = run("--model", "encoder", "--decoder-text", "a")
    assert ended.code == 1
    assert ended.err.startswith("tui-transformer: encoder reads no second sentence")


# Pairs


BERT = ("--model", str(REFERENCES / "bert"), "--device", "cpu")


def test_a_second_sentence_is_the_second_segment(run: Run) -> None:
    arguments = ("show", "embedding.segments", "--format", "json", *BERT)
    alone = json.loads(run(*arguments, "--text", "the waves").out)["values"]
    pair = json.loads(run(*arguments, "--text", "the waves", "--text-pair", "a shore").out)["values"]
    assert len({tuple(row) for row in alone}) == 1
    assert len({tuple(row) for row in pair}) == 2
    assert pair[0] == alone[0] != pair[-1]


def test_a_second_sentence_without_a_first_or_for_a_model_without_pairs_is_refused(run: Run) -> None:
    alone = run("show", *BERT, "--text-pair", "a")
    assert (alone.code, len(alone.err.splitlines())) == (2, 1)
    other = run("show", "tokens", "--text", "the", "--text-pair", "a")
    assert other.code == 1
    assert "puts nothing between two sentences" in other.err
