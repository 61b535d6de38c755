"""How a new model begins: what its words are, and how their vectors start."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from runs import small

from tui_transformer.errors import UsageError
from tui_transformer.learning.data import lines_of
from tui_transformer.learning.start import new_trainer
from tui_transformer.model.word_vectors import read_vectors

TABLE = "embedding.tokens.weight"


def table(folder: Path, start: str) -> np.ndarray:
    settings = small(folder, "next-word", embedding=start)
    return np.asarray(new_trainer(settings, lines_of(settings)).weights[TABLE])


def test_word_vectors_begin_as_is_chosen(tmp_path: Path) -> None:
    zeros, uniform, normal = (table(tmp_path, start) for start in ("zeros", "uniform", "normal"))
    width = normal.shape[1]
    bound = np.sqrt(2 / width)
    assert not zeros.any()
    assert 0.95 * bound < np.abs(uniform).max() <= bound
    assert np.abs(normal).max() > bound
    assert normal.std() == pytest.approx(1 / np.sqrt(width), rel=0.1)


def test_words_are_split_and_written_as_is_chosen(tmp_path: Path) -> None:
    settings = small(tmp_path, "next-word", split="spaces", case="kept")
    words = new_trainer(settings, lines_of(settings)).model.vocabulary
    assert (words.rule.split, words.rule.case) == ("spaces", "kept")
    assert any(word[0].isupper() and word.isalpha() for word in words.words)
    assert any(word.endswith(".") and len(word) > 1 for word in words.words)


def test_vectors_of_a_file_are_the_first_rows_and_make_the_width(tmp_path: Path) -> None:
    vectors = tmp_path / "glove.txt"
    vectors.write_text("there 1 2 3\nnosuchword 4 5 6\n")
    settings = dataclasses.replace(small(tmp_path, "next-word"), sizes={"layers": 1}, vectors=str(vectors))
    made = new_trainer(settings, lines_of(settings))
    words = made.model.vocabulary
    assert made.model.config.d_model == 3
    assert made.weights[TABLE][words.ids["there"]].tolist() == [1, 2, 3]
    assert made.model.has_vector.sum() == read_vectors(vectors, words).there.sum() == 1


@pytest.mark.parametrize(
    ("task", "more", "says"),
    [
        ("next-character", {"case": "kept"}, "--case says what a word is"),
        ("next-word", {"split": "runs", "vocab": "english"}, "the vocabulary english says"),
        ("next-word", {"embedding": "ones"}, "--embedding 'ones' is not known"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, task: str, more: dict[str, str], says: str) -> None:
    def begin() -> None:
        settings = small(tmp_path, task, **more)
        new_trainer(settings, lines_of(settings))

    with pytest.raises(UsageError, match=says):
        begin()


def test_the_embedding_of_a_checkpoint_is_its_own(tmp_path: Path) -> None:
    settings = dataclasses.replace(small(tmp_path, "next-word"), sizes={}, model="story", embedding="zeros")
    with pytest.raises(UsageError, match="the embedding of story is in its folder"):
        new_trainer(settings, lines_of(settings))
