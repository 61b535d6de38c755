"""Words alike by the cosine of their rows, and sums of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis import similar as module
from tui_transformer.analysis.similar import Term, similar, terms_of
from tui_transformer.errors import InputError
from tui_transformer.model import Model

WORDS = {"king": (1, 1, 0, 0), "man": (1, 0, 0, 0), "woman": (0, 0, 1, 0), "queen": (0, 1, 1, 0), "sea": (0, 0, 0, 1)}


@pytest.fixture
def royal(tmp_path: Path) -> Model:
    words, vectors = tmp_path / "words.txt", tmp_path / "vectors.txt"
    words.write_text("\n".join(WORDS))
    vectors.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in WORDS.items()))
    return Model.load("encoder", vocabulary=words, vectors=vectors)


def test_king_minus_man_plus_woman_is_queen(royal: Model) -> None:
    nearest = similar(royal.trace("king"), terms_of(royal, "king - man + woman"), 2)
    assert royal.word(nearest[0][0]) == "queen"
    unit = np.array(WORDS["king"]) / np.sqrt(2) - WORDS["man"] + np.array(WORDS["woman"])
    expected = unit @ WORDS["queen"] / (np.linalg.norm(unit) * np.sqrt(2))
    assert nearest[0][1] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["question", "story", "encoder"])
def test_the_nearest_words_are_those_of_the_whole_table(name: str) -> None:
    model = Model.load(name)
    trace = model.trace(ids=[1, 2])
    table = trace["embedding.tokens.weight"].astype(float)
    cosines = table @ table[5] / (np.linalg.norm(table, axis=1) * np.linalg.norm(table[5]))
    cosines[5] = -2
    nearest = similar(trace, [Term(5, 1)], 3)
    assert [token for token, _ in nearest] == np.argsort(-cosines)[:3].tolist()
    assert [cosine for _, cosine in nearest] == pytest.approx(np.sort(cosines)[::-1][:3])


def test_a_word_of_byte_pairs_is_found_behind_its_space() -> None:
    model = Model.load("story")
    assert model.word(terms_of(model, "Mira")[0].token) == "ĠMira"


def test_signs_stand_alone_or_are_left_out(royal: Model) -> None:
    assert [term.sign for term in terms_of(royal, "king + man − woman sea")] == [1, 1, -1, 1]


@pytest.mark.parametrize(
    ("text", "says"), [("", "there is no word"), ("nobody", "not one token"), ("9999", "no token")]
)
def test_what_is_no_word_is_refused(royal: Model, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        terms_of(royal, text)


def test_a_sum_that_points_nowhere_is_refused(royal: Model) -> None:
    with pytest.raises(InputError, match="points nowhere"):
        similar(royal.trace("king"), terms_of(royal, "king - king"), 2)


def test_a_model_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="no embedding of words"):
        module.table_name(Model.load("attention").trace())


def test_words_that_a_file_of_vectors_lacks_are_no_neighbours(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("king 1 1 0\nman 1 0 0\nwoman 0 1 0\n")
    words = tmp_path / "words.txt"
    words.write_text("king man woman queen sea")
    model = Model.load("encoder", vocabulary=words, vectors=vectors)
    nearest = similar(model.trace("king"), terms_of(model, "king"), 10, among=model.has_vector)
    assert [model.word(token) for token, _ in nearest] == ["man", "woman"]


def test_no_word_of_the_sum_is_found(royal: Model) -> None:
    terms = terms_of(royal, "king + man + woman")
    nearest = {token for token, _ in similar(royal.trace("king"), terms, 100)}
    assert nearest
    assert nearest.isdisjoint(term.token for term in terms)
