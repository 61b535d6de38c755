"""`score`: log-probability, cross-entropy and perplexity, a token at a time and in all."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from command_line import Run

from tui_transformer.model import Model

TEXT = ("--text", "Once there was a small girl")


def test_every_token_is_scored_from_those_before_it(run: Run) -> None:
    model = Model.load("story")
    trace = model.trace(TEXT[1])
    ids = trace["tokens"].tolist()
    scored = json.loads(run("score", *TEXT, "--format", "json").out)
    assert [token["id"] for token in scored["tokens"]] == ids[1:]
    logits = trace["output.logits"].astype(float)
    logs = [row[target] - np.log(np.exp(row).sum()) for row, target in zip(logits, ids[1:], strict=False)]
    assert [token["log_probability"] for token in scored["tokens"]] == pytest.approx(logs)
    assert scored["log_probability"] == pytest.approx(sum(logs))
    assert scored["cross_entropy"] == pytest.approx(-sum(logs) / len(logs))
    assert scored["perplexity"] == pytest.approx(math.exp(-sum(logs) / len(logs)))


def test_csv_has_a_line_a_token_and_one_for_all(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("score", *TEXT, "--format", "csv", "--temperature", "2").out)))
    *tokens, whole = rows
    assert whole["position"] == "all"
    assert float(whole["log_probability"]) == pytest.approx(sum(float(row["log_probability"]) for row in tokens))
    assert float(whole["perplexity"]) == pytest.approx(math.exp(-float(whole["log_probability"]) / len(tokens)))


def test_the_first_token_is_scored_after_a_beginning(run: Run) -> None:
    scored = json.loads(run("score", *TEXT, "--bracket", "--format", "json").out)
    assert scored["tokens"][0]["of"] == "[BOS]"
    assert scored["tokens"][-1]["word"] == "[EOS]"


def test_padding_is_not_scored(run: Run) -> None:
    plain, padded = (
        json.loads(run("score", *TEXT, *more, "--format", "json").out) for more in ((), ("--pad-to", "40"))
    )
    assert padded["counted"] == plain["counted"]
    assert padded["log_probability"] == pytest.approx(plain["log_probability"], abs=1e-4)


def test_targets_say_what_is_right(run: Run) -> None:
    ended = run("score", "--ids", "4,5,6", "--targets", "7,-1,9", "--model", "story", "--format", "json")
    assert [(token["position"], token["id"]) for token in json.loads(ended.out)["tokens"]] == [(0, 7), (2, 9)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--model", "encoder", "--text", "the waves", "--targets", "1"), "--targets: 1 for 2 positions"),
        (("--ids", "4,5", "--targets", "7,999999"), "there is no token 999999"),
        (("--model", "attention"), "gives words no probability"),
        (("--text", "Once"), "no token is predicted"),
        ((*TEXT, "--temperature", "0"), "temperature 0 is not a number above 0"),
        ((*TEXT, "--label-smoothing", "1"), "label smoothing 1"),
    ],
)
def test_what_cannot_be_scored_is_said(run: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = run("score", *arguments)
    assert ended.code in (1, 2)
    assert says in ended.err
