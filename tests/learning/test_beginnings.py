"""How training begins: the texts, recipes, words and weights, and published models."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES
from refusing import refuses
from runs import small, text_file

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.gradient import cross_entropy
from tui_transformer.errors import UsageError
from tui_transformer.learning.corpora import CORPORA, lines_of
from tui_transformer.learning.data import lines_of as lines_of_file
from tui_transformer.learning.loop import new_trainer
from tui_transformer.learning.recipes import RECIPES, answers_first, recipe
from tui_transformer.learning.run import Run
from tui_transformer.learning.settings import Settings
from tui_transformer.model import Model
from tui_transformer.model.word_vectors import read_vectors
from tui_transformer.trained import HERE

# How a new model begins: what its words are, and how their vectors start
TABLE = "embedding.tokens.weight"


def test_words_are_split_and_their_vectors_begin_as_is_chosen(tmp_path: Path) -> None:
    settings = small(tmp_path, "next-word", split="spaces", case="kept")
    words = new_trainer(settings, lines_of_file(settings)).model.vocabulary
    assert (words.rule.split, words.rule.case) == ("spaces", "kept")
    assert any(word[0].isupper() and word.isalpha() for word in words.words)
    assert any(word.endswith(".") and len(word) > 1 for word in words.words)
    # their vectors
    begun = (small(tmp_path, "next-word", embedding=start) for start in ("zeros", "uniform", "normal"))
    zeros, uniform, normal = (np.asarray(new_trainer(each, lines_of_file(each)).weights[TABLE]) for each in begun)
    assert not zeros.any()
    assert np.abs(uniform).max() <= np.sqrt(2 / normal.shape[1]) < np.abs(normal).max()
    assert normal.std() == pytest.approx(1 / np.sqrt(normal.shape[1]), rel=0.1)


def test_vectors_of_a_file_are_the_first_rows_and_make_the_width(tmp_path: Path) -> None:
    vectors = tmp_path / "glove.txt"
    vectors.write_text("there 1 2 3\nnosuchword 4 5 6\n")
    settings = dataclasses.replace(small(tmp_path, "next-word"), sizes={"layers": 1}, vectors=str(vectors))
    made = new_trainer(settings, lines_of_file(settings))
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
        ("next-word", {"model": "story", "embedding": "zeros"}, "the embedding of story is in its folder"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, task, more, says) -> None:
    def begin() -> None:
        settings = small(tmp_path, task, **more)
        settings = dataclasses.replace(settings, sizes={}) if "model" in more else settings
        new_trainer(settings, lines_of_file(settings))

    refuses(says, lambda: begin(), UsageError)


# The texts that the program makes for itself
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


def test_questions_and_statements_are_about_as_many_and_no_single_sign_tells_them_apart():
    labelled, both = pairs("question"), {"question", "statement"}
    counts = Counter(label for _, label in labelled)
    assert set(counts) == both
    assert 0.45 < counts["question"] / MANY < 0.55
    assert {label for sentence, label in labelled if sentence[-1] not in "?.!"} == both
    assert {label for sentence, label in labelled if " where " in f" {sentence} "} == both


def test_a_copied_sequence_is_there_twice_and_stories_keep_to_their_hero():
    for line in lines_of("copy", 100):
        tokens = line.split()
        half = len(tokens) // 2
        assert tokens[:half] == tokens[half:]
    for story in lines_of("story", 200):
        name = story.split(" called ")[1].split(",")[0]
        assert story.count(name) >= 2
        assert "{" not in story


def test_an_unknown_text_or_recipe_is_refused():
    refuses("no text is called", lambda: next(lines_of("poems", 1)), UsageError)
    refuses("no recipe", lambda: recipe("soup"), UsageError)


# The recipes of the models that come with the program
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_begins_a_run(name, tmp_path):
    small = recipe(name)  # the whole text and batch only take longer
    small = dataclasses.replace(small, lines=300, settings={**small.settings, "batch": 4})
    text = small.write_text(tmp_path)
    assert text.read_text().count("\n") == small.lines
    run = Run.start(tmp_path, Settings(**small.settings, file=str(text)))
    first = run.trainer.advance()
    run.close()
    assert np.isfinite(first.loss)


def test_a_sequence_is_right_as_a_whole_or_not():
    targets = np.array([[0, 1, -1], [1, 1, 0], [-1, -1, -1], [2, -1, 2]])
    logits = np.eye(3)[[[0, 1, 2], [1, 0, 0], [0, 1, 2], [2, 0, 2]]]
    loss, _ = cross_entropy(numpy_backend("float64"), logits, targets)
    assert (loss.right, loss.counted, loss.whole) == (6, 7, 2)


# Checkpoints of published families are trained further, saved and resumed


FURTHER = {"next-word": ("gpt2", "qwen3"), "masked-word": ("bert",), "pairs": ("bart", "marian", "t5")}


@pytest.mark.parametrize(("task", "family"), [(task, family) for task in FURTHER for family in FURTHER[task]])
def test_a_published_model_is_trained_further(tmp_path, family, task):
    file = str(text_file(tmp_path, task, 20))
    options = {"steps": 3, "batch": 2, "length": 12, "device": "cpu", "save_every": 100, "accumulate": 1}
    settings = Settings(task, file, model=str(REFERENCES / family), **options)
    run = Run.start(tmp_path / "run", settings)
    before = run.trainer.validate()
    losses = [run.trainer.advance().loss for _ in range(2)]
    run.save()
    losses.append(run.trainer.advance().loss)
    run.close()
    again = Run.resume(tmp_path / "run", {})
    assert again.trainer.advance().loss == losses[2]
    assert again.trainer.validate() != before
    again.close()
    opened = Model.load(tmp_path / "run", device="cpu")
    assert opened.family.model_type == Model.load(REFERENCES / family, device="cpu").family.model_type


def test_a_model_answers_where_its_folder_says(tmp_path):
    answering = {name: answers_first(HERE / name) for name in ("question", "story", "dates")}
    assert answering == {"question": True, "story": False, "dates": False}
    # a run and its checkpoints
    checkpoint = tmp_path / "checkpoints" / "000200"
    checkpoint.mkdir(parents=True)
    for task, first in (("classify", True), ("next-word", False)):
        (tmp_path / "run.json").write_text(json.dumps({"settings": {"task": task}}))
        assert answers_first(tmp_path) is answers_first(checkpoint) is first
    # a folder that does not say it answers everywhere
    for text in ("", "[]", '{"settings": 3}', "{", '{"settings": {"task": ["classify"]}}'):
        (tmp_path / "run.json").write_text(text)
        assert not answers_first(tmp_path), text
    assert not answers_first(None)
    assert not answers_first(tmp_path / "none")
