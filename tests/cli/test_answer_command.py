"""`answer`: the most likely tokens of every position, with words, logits and probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from command_line import REFERENCES, Run
from reference import with_settings
from safetensors.numpy import load_file, save_file

from tui_transformer.model import Model

USUAL = ("--model", "encoder")

TEXT = ("--text", "the waves crashed")


def test_every_position_has_its_most_likely_tokens(run: Run) -> None:
    model = Model.load("decoder")
    trace = model.trace("the waves crashed")
    ended = run("answer", "--model", "decoder", *TEXT, "--top", "2", "--temperature", "0.7", "--format", "json")
    rows = ended.json
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


def test_the_formats_say_the_same_also_where_the_first_token_answers(run: Run) -> None:
    table = run("answer", *TEXT, "--format", "csv").table
    rows = run("answer", *TEXT, "--format", "json").json
    assert [{key: str(value) for key, value in row.items()} for row in rows] == table
    assert len(rows) == 3 * 5
    # JSON has no ∞: in its place there is null
    infinite = run("answer", *TEXT, "--edit", "output.logits[1,3] = inf", "--position", "1", "--format", "json")
    assert [row["id"] for row in infinite.json if row["logit"] is None] == [3]
    text = run("answer", *TEXT).out
    assert text.split()[:7] == ["position", "of", "rank", "id", "word", "logit", "probability"]
    assert text.endswith("\nprobability = softmax(output.logits ÷ 1)\n")
    # a model that tells lines apart answers at the first token
    ended = run("answer", "--model", "question", "--top", "1")
    assert [line.split()[0] for line in ended.out.splitlines()[1:2]] == ["0"]
    assert "trained to answer at the first token" in ended.out
    assert len(ended.out.splitlines()) == 4
    assert len(run("answer", "--model", "question", "--top", "1", "--position", "all").out.splitlines()) > 6


# Labels


def test_labels_of_every_token_are_listed_likeliest_first(run, tmp_path):
    named = {"architectures": ["BertForTokenClassification"], "id2label": {"0": "name", "1": "place"}}
    folder, rng = with_settings(tmp_path, "bert", **named), np.random.default_rng(0)
    head = {"classifier.weight": rng.normal(size=(2, 32)), "classifier.bias": rng.normal(size=2)}
    save_file(load_file(folder / "model.safetensors") | head, folder / "model.safetensors")
    shares = Model.load(folder, device="cpu").trace(ids=[2, 7])["output.probabilities"]
    rows = run("answer", "--model", str(folder), "--ids", "2,7", "--format", "json").json
    assert [row["label"] for row in rows] == [["name", "place"][i] for line in shares for i in np.argsort(-line)]
    assert rows[0]["probability"] == float(shares[0].max())


def test_labels_are_of_the_tokens_that_are_asked_for_and_not_of_padding(run: Run) -> None:
    def of(name: str, *more: str) -> tuple[str, ...]:
        return ("answer", "--model", str(REFERENCES.parent / "classifiers" / name), "--ids", "5,6,7;5,6", *more)

    rows = run(*of("t5-tokens", "--item", "1", "--top", "1", "--format", "json")).json
    assert [row["position"] for row in rows] == [0, 1]
    rows = run(*of("t5-tokens", "--position", "last", "--top", "1", "--format", "json")).json
    assert [row["position"] for row in rows] == [2]
    run(*of("t5-tokens", "--position", "3")).refuses("there is no position 3: use 0 to 2", 1)
    run(*of("t5", "--position", "0")).refuses("leave --position out", 2)
    run(*of("t5-tokens", "--temperature", "2")).refuses("--temperature is of words", 2)


def test_at_temperature_0_nothing_is_divided_by_0(run: Run) -> None:
    out = run("answer", "--model", "story", "--ids", "5,6", "--temperature", "0").out
    assert out.endswith("probability at temperature 0: all of it is the largest logit's\n")
    assert "÷ 0" not in out


# `score`


STORY_TEXT = ("--text", "Once there was a small girl")


def test_every_token_is_scored_from_those_before_it(run: Run) -> None:
    model = Model.load("story")
    trace = model.trace(STORY_TEXT[1])
    ids = trace["tokens"].tolist()
    scored = run("score", *STORY_TEXT, "--format", "json").json
    assert [token["id"] for token in scored["tokens"]] == ids[1:]
    logits = trace["output.logits"].astype(float)
    logs = [row[target] - np.log(np.exp(row).sum()) for row, target in zip(logits, ids[1:], strict=False)]
    assert [token["log_probability"] for token in scored["tokens"]] == pytest.approx(logs)
    assert scored["log_probability"] == pytest.approx(sum(logs))
    assert scored["cross_entropy"] == pytest.approx(-sum(logs) / len(logs))
    assert scored["perplexity"] == pytest.approx(math.exp(-sum(logs) / len(logs)))
    # in CSV there is a line for all
    rows = run("score", *STORY_TEXT, "--format", "csv", "--temperature", "2").table
    *tokens, whole = rows
    assert whole["position"] == "all"
    assert float(whole["log_probability"]) == pytest.approx(sum(float(row["log_probability"]) for row in tokens))
    assert float(whole["perplexity"]) == pytest.approx(math.exp(-float(whole["log_probability"]) / len(tokens)))
    # the first token is scored after a beginning
    scored = run("score", *STORY_TEXT, "--bracket", "--format", "json").json
    assert scored["tokens"][0]["of"] == "[BOS]"
    assert scored["tokens"][-1]["word"] == "[EOS]"
    # padding is not scored
    plain, padded = (run("score", *STORY_TEXT, *more, "--format", "json").json for more in ((), ("--pad-to", "40")))
    assert padded["counted"] == plain["counted"]
    assert padded["log_probability"] == pytest.approx(plain["log_probability"], abs=1e-4)
    # targets say what is right
    ended = run("score", "--ids", "4,5,6", "--targets", "7,-1,9", "--model", "story", "--format", "json")
    assert [(token["position"], token["id"]) for token in ended.json["tokens"]] == [(0, 7), (2, 9)]
    run("score", "--ids", "4,5", "--targets=-1,-1", "--model", "story").refuses("every target is -1", 1)
