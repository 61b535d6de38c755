"""Word vectors of GloVe and word2vec as the embedding of a new model, and other ways for it to begin."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.word_vectors import read_vectors
from tui_transformer.text.dispatch import load_vocabulary

ROWS = {
    "the": (0.1, 0.2, 0.3, 0.4),
    "waves": (1.0, 0.0, 0.0, 0.5),
    "Shore": (0.9, 0.1, 0.0, 0.5),
    "zebra": (3.0, 3.0, 3.0, 3.0),
    "The": (9.0, 9.0, 9.0, 9.0),
}
TABLE = "embedding.tokens.weight"


def text(rows: dict[str, tuple[float, ...]]) -> bytes:
    return "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in rows.items()).encode()


def binary(end: bytes) -> bytes:
    return b"5 4\n" + b"".join(
        word.encode() + b" " + struct.pack("<4f", *values) + end for word, values in ROWS.items()
    )


FILES = {
    "glove": text(ROWS),
    "glove with a word of two": text({**ROWS, ". .": (1.0, 2.0, 3.0, 4.0)}),
    "word2vec": b"5 4\n" + text(ROWS),
    "word2vec binary": binary(b""),
    "word2vec binary with line breaks": binary(b"\n"),
}


@pytest.fixture
def waves():
    return load_vocabulary("waves")


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_the_words_of_the_vocabulary_get_their_rows(content: bytes, tmp_path: Path, waves) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    vectors = read_vectors(path, waves)
    assert vectors.rows.shape == (waves.size, 4)
    assert [waves.word(int(i)) for i in np.flatnonzero(vectors.there)] == ["the", "waves", "shore"]
    np.testing.assert_allclose(vectors.rows[waves.ids["the"]], ROWS["the"])
    np.testing.assert_allclose(vectors.rows[waves.ids["shore"]], ROWS["Shore"])
    said = vectors.said(waves)
    assert said == "vectors: vectors of 4 numbers for 3 of 8 words; none for [UNK], crashed, forcefully, against, !"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "has -1 numbers"),
        (b"the\n", "has 0 numbers"),
        (b"the 1 2\nwaves 1\n", "line 2 has not a word and 2 numbers"),
        (b"5 2\nthe 1 2\nwaves 1\n", "line 3 has not a word and 2 numbers"),
        (b"the 1 2\nwaves 1 x\n", "line 2 has a value that is no number"),
        (b"the 1 nan\n", "the vector of 'the' is not finite"),
        (b"zebra 1 2\n", "none of the words of waves"),
        (binary(b"")[:40], "ends after 1 of 5 vectors"),
        (b"5 99999\nthe 1\n", "of 1 to 65,536"),
        (b"\0\1\2\3", "no word vectors"),
    ],
)
def test_a_broken_file_is_refused_in_a_line(content: bytes, says: str, tmp_path: Path, waves) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_vectors(path, waves)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_model_has_the_width_of_its_vectors_and_random_rows_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(FILES["glove"])
    model, plain = Model.load("encoder", vectors=path), Model.load("encoder", d_model=4, heads=4)
    table, random = (each.trace("the waves")[TABLE] for each in (model, plain))
    assert (model.config.d_model, model.config.heads) == (4, 4)
    np.testing.assert_allclose(table[2], ROWS["waves"])
    np.testing.assert_array_equal(table[3], random[3])
    deeper = model.changed(layers=2)
    np.testing.assert_array_equal(deeper.trace("the waves")[TABLE], table)


def test_a_width_that_the_vectors_have_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(FILES["glove"])
    with pytest.raises(UsageError, match=r"d_model 8: the vectors of .* have 4 numbers"):
        Model.load("encoder", vectors=path, d_model=8)


def test_an_embedding_begins_as_it_is_asked_to() -> None:
    zeros, uniform, normal = (
        Model.load("encoder", embedding=start, d_model=64).trace("the")[TABLE] for start in ("zeros", "uniform", None)
    )
    assert not zeros.any()
    assert 0.9 * math.sqrt(2 / 64) < abs(uniform).max() <= math.sqrt(2 / 64)
    np.testing.assert_array_equal(normal, Model.load("encoder", embedding="normal", d_model=64).trace("the")[TABLE])
    with pytest.raises(UsageError, match="embedding 'ones'"):
        Model.load("encoder", embedding="ones")


@pytest.mark.parametrize("given", [{"embedding": "zeros"}, {"vectors": "x"}])
def test_a_checkpoint_has_its_own_embedding(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(given))):
        Model.load("story", **given)
