"""`similar`: the nearest words, of a model and of vectors from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


def test_the_nearest_words_are_listed_with_their_cosines(run: Run) -> None:
    rows = json.loads(run("similar", "sailor", "--model", "question", "--top", "3", "--format", "json").out)
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert rows == sorted(rows, key=lambda row: -row["cosine"])
    assert "sailor" not in [row["word"] for row in rows]


def test_vectors_of_a_file_are_shown_and_what_it_lacks_is_said(run: Run, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 0\nwaves 1 1\nshore 1 0.9\n")
    ended = run("similar", "waves", "--vectors", str(vectors), "--top", "1", "--format", "json")
    assert json.loads(ended.out)[0]["word"] == "shore"
    assert ended.err.startswith("vectors.txt: vectors of 2 numbers for 3 of 8 words; none for [UNK], crashed")


def test_a_word_that_is_none_is_refused(run: Run) -> None:
    ended = run("similar", "xyzzy")
    assert (ended.code, ended.out) == (1, "")
    assert "'xyzzy' is not one token of the vocabulary" in ended.err
