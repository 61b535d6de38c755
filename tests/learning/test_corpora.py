"""The texts that the program makes for itself."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest

from tui_transformer.errors import UsageError
from tui_transformer.learning.corpora import CORPORA, lines_of

MANY = 3000


def pairs(name: str) -> list[list[str]]:
    return [line.split("\t") for line in lines_of(name, MANY)]


@pytest.mark.parametrize("name", CORPORA)
def test_a_seed_gives_the_same_lines_again(name):
    first = list(lines_of(name, 50, seed=3))
    assert first == list(lines_of(name, 50, seed=3))
    assert first != list(lines_of(name, 50, seed=4))
    assert all(line.isprintable() for line in (line.replace("\t", "") for line in first))


def test_dates_are_real_and_the_source_names_the_same_day():
    for source, target in pairs("dates"):
        day = date.fromisoformat(target)
        assert f"{day.day}" in source
        assert f"{day.year % 100:02d}" in source


def test_questions_and_statements_are_about_as_many():
    counts = Counter(label for _, label in pairs("question"))
    assert set(counts) == {"question", "statement"}
    assert 0.45 < counts["question"] / MANY < 0.55


def test_no_single_sign_tells_a_question():
    labelled = pairs("question")
    unmarked = [label for sentence, label in labelled if sentence[-1] not in "?.!"]
    assert {"question", "statement"} == set(unmarked)
    with_question_word = [label for sentence, label in labelled if " where " in f" {sentence} "]
    assert {"question", "statement"} == set(with_question_word)


def test_a_copied_sequence_is_there_twice():
    for line in lines_of("copy", 100):
        tokens = line.split()
        half = len(tokens) // 2
        assert tokens[:half] == tokens[half:]


def test_stories_keep_to_their_hero():
    for story in lines_of("story", 200):
        name = story.split(" called ")[1].split(",")[0]
        assert story.count(name) >= 2
        assert "{" not in story


def test_an_unknown_text_is_refused():
    with pytest.raises(UsageError, match="no text is called"):
        next(lines_of("poems", 1))
