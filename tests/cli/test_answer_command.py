"""`answer`: the most likely tokens of every position, with words, logits and probabilities."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, of_the_encoder

from tui_transformer.model import Model

TEXT = ("--text", "the waves crashed")


@pytest.fixture
def run(run: Run) -> Run:
    return of_the_encoder(run)


def test_every_position_has_its_most_likely_tokens(run: Run) -> None:
    model = Model.load("decoder")
    trace = model.trace("the waves crashed")
    ended = run("answer", "--model", "decoder", *TEXT, "--top", "2", "--temperature", "0.7", "--format", "json")
    rows = json.loads(ended.out)
    assert [(row["position"], row["of"], row["rank"]) for row in rows] == [
        (position, word, rank) for position, word in enumerate(("the", "waves", "crashed")) for rank in (1, 2)
    ]
    for row in rows:
        logits = trace["output.logits"][row["position"]].astype(float)
        shares = np.exp(logits / 0.7) / np.exp(logits / 0.7).sum()
        assert row["id"] == np.argsort(-shares)[row["rank"] - 1]
        assert row["word"] == model.word(row["id"])
        assert row["probability"] == pytest.approx(shares[row["id"]])
        assert row["logit"] == logits[row["id"]]


def test_the_formats_say_the_same(run: Run) -> None:
    table = list(csv.DictReader(io.StringIO(run("answer", *TEXT, "--format", "csv").out)))
    rows = json.loads(run("answer", *TEXT, "--format", "json").out)
    assert [{key: str(value) for key, value in row.items()} for row in rows] == table
    assert len(rows) == 3 * 5
    text = run("answer", *TEXT).out
    assert text.split()[:7] == ["position", "of", "rank", "id", "word", "logit", "probability"]
    assert text.endswith("\nprobability = softmax(output.logits ÷ 1)\n")


def test_a_model_that_tells_lines_apart_answers_at_the_first_token(run: Run, tmp_path: Path) -> None:
    ended = run("answer", "--model", "question", "--top", "1")
    assert [line.split()[0] for line in ended.out.splitlines()[1:2]] == ["0"]
    assert "trained to answer at the first token" in ended.out
    assert len(ended.out.splitlines()) == 4
    assert len(run("answer", "--model", "question", "--top", "1", "--position", "all").out.splitlines()) > 6


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--model", "attention"), 1, "no output head"),
        ((*TEXT, "--position", "3"), 1, "there is no position 3: use 0 to 2"),
        ((*TEXT, "--position", "x"), 2, "is not a position"),
        ((*TEXT, "--temperature", "-1"), 2, "temperature -1 is not a number from 0"),
        ((*TEXT, "--top", "0"), 2, "--top"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, options: tuple[str, ...], code: int, said: str) -> None:
    ended = run("answer", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
