"""Vectors compared: words, sentences, positions."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES, in_float64
from refusing import refuses

from tui_transformer.analysis import similar as module
from tui_transformer.analysis.positions import by_distance, columns_of, encoding, facts
from tui_transformer.analysis.similar import BIAS, SentenceVector, Term, sentence_vector, similar, terms_of, together
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

# Words alike by the cosine of their rows, and sums of words
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


def test_what_is_no_word_is_refused_and_a_sum_that_points_nowhere(royal: Model) -> None:
    for text, says in (("", "there is no word"), ("nobody", "not one token"), ("9999", "no token")):
        refuses(says, lambda text=text: terms_of(royal, text))
    for text in ("king + man − woman sea", "king +man −woman sea"):
        assert [term.sign for term in terms_of(royal, text)] == [1, 1, -1, 1]
    model = Model.load("story")
    assert model.word(terms_of(model, "Mira")[0].token) == "ĠMira"
    refuses("points nowhere", lambda: similar(royal.trace("king"), terms_of(royal, "king - king"), 2))
    refuses("no embedding of words", lambda: module.table_name(Model.load("attention").trace()))


def test_a_sum_that_rounding_alone_keeps_from_0_points_nowhere() -> None:
    trace = Model.load("story", device="cpu").trace("Once")
    refuses("points nowhere", lambda: similar(trace, [Term(321, 1), Term(288, -1), Term(288, 1), Term(321, -1)], 1))


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


# Sentences compared: what the tokens give to the cosine adds up to it
FOLDER = Path(__file__).parent.parent / "sentences" / "bert"
FIRST, SECOND = [2, 17, 40, 8, 9], [2, 33, 8]
MODES = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


@pytest.fixture
def model() -> Model:
    return in_float64(FOLDER)


def pooling(folder: Path, mode: str) -> Model:
    """The same layers with one way to pool alone."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
    modules = json.loads((FOLDER / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    return in_float64(folder)


def test_parts_of_tokens_and_of_the_bias_add_up_to_the_vector_and_their_shares_to_the_cosine(model):
    vector = sentence_vector(model.trace(ids=FIRST))
    assert vector.parts.shape == (len(FIRST) + 1, 16)
    np.testing.assert_allclose(vector.parts.sum(axis=0), vector.whole, atol=1e-12)
    assert vector.parts[BIAS].any()
    assert vector.length == pytest.approx(1.0)
    pair = together(*(sentence_vector(model.trace(ids=ids)) for ids in (FIRST, SECOND)))
    assert pair.shares.sum() == pytest.approx(pair.cosine, abs=1e-12)
    # a batch
    batch = model.trace(ids=[FIRST, [*SECOND, 0, 0]])
    alone, vector = sentence_vector(model.trace(ids=SECOND)), sentence_vector(batch, 1)
    np.testing.assert_allclose(vector.whole, alone.whole, atol=1e-12)
    assert not vector.parts[3:5].any()
    # no modules
    trace = Model.load(REFERENCES / "bert", device="cpu").trace(ids=FIRST)
    refuses("makes no vector of a sentence", lambda: sentence_vector(trace))


@pytest.mark.parametrize("mode", MODES)
def test_shares_of_pairs_of_tokens_add_up_to_the_cosine(tmp_path, mode):
    model = pooling(tmp_path, mode)
    first, second = (sentence_vector(model.trace(ids=ids)) for ids in (FIRST, SECOND))
    pair = together(first, second)
    cosine = first.whole @ second.whole / np.linalg.norm(first.whole) / np.linalg.norm(second.whole)
    assert pair.cosine == pytest.approx(cosine, abs=1e-12)
    assert pair.shares.sum() == pytest.approx(cosine, abs=1e-12)
    assert pair.shares.shape == (len(FIRST) + 1, len(SECOND) + 1)
    assert not pair.shares[BIAS].any()


def test_the_largest_shares_are_named_whatever_their_sign_and_a_vector_of_nothing_has_none():
    first = SentenceVector(np.array([1.0, 0.0]), np.array([[3.0, 0.0], [-2.0, 0.0], [0.0, 0.0]]))
    second = SentenceVector(np.array([1.0, 1.0]), np.array([[0.5, 1.0], [0.5, 0.0]]))
    largest = together(first, second).largest(3)
    scale = np.sqrt(2.0)
    assert [pair[:2] for pair in largest] == [(0, 0), (0, BIAS), (1, 0)]
    assert [pair[2] for pair in largest] == pytest.approx([1.5 / scale, 1.5 / scale, -1.0 / scale])
    nothing = SentenceVector(np.zeros(2), np.zeros((2, 2)))
    pair = together(nothing, nothing)
    assert pair.cosine == 0.0
    assert not pair.shares.any()


# The positional encoding by itself: its values, its parts, and what it promises
def test_every_cell_is_the_sine_or_cosine_of_the_paper_and_likeness_depends_on_the_distance_alone() -> None:
    table = encoding(6, 9)
    for position in range(9):
        for column in range(6):
            angle = position / 10000 ** (2 * (column // 2) / 6)
            assert table[position, column] == pytest.approx(math.cos(angle) if column % 2 else math.sin(angle))
    trace = in_float64("encoder").trace(ids=[1, 2, 3])
    np.testing.assert_array_equal(trace["embedding.positions"], encoding(8, 3))
    table = encoding(16, 40)
    for distance, dot, cosine in by_distance(16, 12):
        for position in (0, 3, 27):
            assert table[position] @ table[position + distance] == pytest.approx(dot)
            assert cosine == pytest.approx(dot / 8)
    refuses("d_model 7 is odd", lambda: by_distance(7, 4), UsageError)
    assert columns_of(6, "sin") == (0, 2, 4)
    assert columns_of(6, "cos") == (1, 3, 5)
    assert columns_of(6, "all", (4, 1)) == (4, 1)
    assert columns_of(6, "cos", (4, 1)) == (1,)
    for part, chosen, says in (("sin", (1,), "none of the dimensions is a sin"), ("all", (6,), "no dimension 6")):
        refuses(says, lambda chosen=chosen, part=part: columns_of(6, part, chosen), UsageError)
    for width, count in ((0, 3), (4, 0), (4, 1 << 21)):
        with pytest.raises(UsageError):
            encoding(width, count)


def test_facts_are_measured_and_one_position_has_no_other_beside_it() -> None:
    facts_of_table, table = facts(16, 30), encoding(16, 30)
    assert (facts_of_table.lowest, facts_of_table.highest) == (table.min(), table.max())
    assert -1 <= facts_of_table.lowest < facts_of_table.highest <= 1
    distance, first, second = facts_of_table.nearest
    assert distance == pytest.approx(np.linalg.norm(table[first] - table[second]))
    others = [np.linalg.norm(table[a] - table[b]) for a in range(30) for b in range(a)]
    assert distance == pytest.approx(min(others))
    apart, (a, b), (c, d) = facts_of_table.sums
    assert apart == pytest.approx(np.linalg.norm(table[a] + table[b] - table[c] - table[d]))
    assert apart > 0.01
    assert facts_of_table.longer == 0.0
    assert facts(4, 1).nearest[0] == math.inf


def test_a_word_of_a_model_without_words_is_no_token_id() -> None:
    with pytest.raises(InputError, match="'the' is not a token ID, and the model has no words"):
        terms_of(Model.load(REFERENCES / "vanilla-decoder", device="cpu"), "the")
