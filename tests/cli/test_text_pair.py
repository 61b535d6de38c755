from __future__ import annotations

import json

from command_line import REFERENCES, Run

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
