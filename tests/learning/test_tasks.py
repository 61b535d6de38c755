"""Tasks: how lines become examples, and how these are put together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusing import refuses
from runs import small, text_file

from tui_transformer.errors import InputError
from tui_transformer.learning.data import Data, lines_of, read_data, split, together, vocabulary_for
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.tasks import TASKS, Row, draw_masked, task_of
from tui_transformer.text.dispatch import tokenizer_for
from tui_transformer.text.files import read_lines
from tui_transformer.text.vocabulary import Vocabulary


# Examples that each task makes of a text
def read(folder: Path, task: str, text: str, **more: object) -> Data:
    path = folder / "text.txt"
    path.write_text(text, encoding="utf-8")
    settings = Settings(task, str(path), validation=0, **{"length": 4} | more)
    lines = lines_of(settings)
    return read_data(settings, lines, tokenizer_for(vocabulary_for(settings, lines)))


def words(data: Data, ids: np.ndarray) -> str:
    return " ".join("_" if i < 0 else data.vocabulary.word(int(i)) for i in ids)


EXAMPLES = {
    "next-word": ("The sea, the\nshore.\n", [("[BOS] the sea ,", "the sea , the"), ("the shore .", "shore . [EOS]")]),
    "next-character": ("ab\na", [("[BOS] a b \n", "a b \n a"), ("a", "[EOS]")]),
    "classify": (
        "who is there\tquestion\nit is me\tstatement\n",
        [("who is there", "question _ _"), ("it is me", "statement _ _")],
    ),
    "pairs": (  # what is longer is cut
        "the dog\tder Hund\na b c d e f\tg h i j k\n\n",
        [("the dog", "[BOS] der hund", "der hund [EOS]"), ("a b c d", "[BOS] g h i", "g h i [EOS]")],
    ),
}


@pytest.mark.parametrize("task", EXAMPLES)
def test_a_task_makes_its_examples_of_a_text(tmp_path, task):
    text, wanted = EXAMPLES[task]
    data = read(tmp_path, task, text)
    parts = ("ids", "decoder_ids", "targets") if task == "pairs" else ("ids", "targets")
    assert [tuple(words(data, getattr(row, part)) for part in parts) for row in data.rows] == wanted


def test_fifteen_in_a_hundred_words_are_predicted_most_of_them_hidden(tmp_path):
    vocabulary = Vocabulary("v", ("[UNK]", "[PAD]", "[MASK]", *(f"w{i}" for i in range(1000))), 0, "words", None)
    ids = np.arange(20_000) % 1000 + 3
    row = draw_masked(Row(ids, ids), np.random.default_rng(1), vocabulary)
    chosen = row.targets != -1
    assert np.array_equal(row.targets[chosen], ids[chosen])
    assert np.array_equal(row.ids[~chosen], ids[~chosen])
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert (row.ids[chosen] == 2).mean() == pytest.approx(0.8, abs=0.03)
    assert (row.ids[chosen] == ids[chosen]).mean() == pytest.approx(0.1, abs=0.02)
    assert not set(row.ids) & {0, 1}
    # one word at least is predicted, and no special one
    vocabulary = Vocabulary("v", ("[UNK]", "[PAD]", "[MASK]", "a", "b"), 0, "words", None)
    for seed in range(50):
        row = draw_masked(Row(np.array([0, 3, 0]), np.array([0, 3, 0])), np.random.default_rng(seed), vocabulary)
        assert row.targets.tolist() == [-1, 3, -1]


def test_training_and_validation_never_draw_the_same(tmp_path, monkeypatch):
    asked = []
    settings = small(tmp_path, "masked-word", validation=0.5)
    lines = lines_of(settings)
    data = read_data(settings, lines, tokenizer_for(vocabulary_for(settings, lines)))
    _ = data.parts, [data.batch(number) for number in range(8)]
    made = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: (asked.append(seed), made(seed))[1])
    for number in range(8):
        data.batch(number)
    training = set(asked)
    asked.clear()
    assert len(list(data.validation())) > 1
    assert training
    assert training.isdisjoint(asked)


@pytest.mark.parametrize("task", TASKS)
def test_batches_are_the_same_again_and_validation_is_apart(tmp_path, task):
    settings = small(tmp_path, task)
    lines = lines_of(settings)
    data, again = (read_data(settings, lines, tokenizer_for(vocabulary_for(settings, lines))) for _ in range(2))
    for number in (0, 1, 40):
        first, second = data.batch(number), again.batch(number)
        assert np.array_equal(first.ids, second.ids)
        assert np.array_equal(first.targets, second.targets)
    assert not set(data.parts[0]) & set(data.parts[1])
    assert [b.ids.tolist() for b in data.validation()] == [b.ids.tolist() for b in data.validation()]


@pytest.mark.parametrize(
    ("task", "text", "says"),
    [
        ("next-word", "", "is empty"),
        ("next-word", " \n\n", "is empty"),
        ("next-character", "a", "fewer than two tokens"),
        ("pairs", "a\tb\nno tab here\n", "line 2 has no tab"),
        ("pairs", "a\t\n", "line 1 has no tab"),
        ("pairs", "a\tb\n" + "a " * 600_000 + "\tb\n", r"line 2 has 1,200,003 characters, the limit is 1,000,000"),
        ("classify", "a\tone label\nb\ttwo\n", "has spaces"),
        ("classify", "a\tx\nb\tx\n", "nothing to tell apart"),
    ],
)
def test_a_text_that_does_not_fit_is_named(tmp_path, task, text, says):
    assert "text.txt" in refuses(says, lambda: read(tmp_path, task, text))


@pytest.mark.parametrize(("task", "examples"), [("next-word", 3), ("pairs", 2)])
def test_a_line_that_is_read_in_parts_is_learned_from(tmp_path, task, examples):
    path = tmp_path / "text.txt"
    path.write_text("one two three four five\tsix\na\tb\n", encoding="utf-8")
    settings = Settings(task, str(path), validation=0, length=4)
    lines = list(read_lines([path], longest=8))
    data = read_data(settings, lines, tokenizer_for(vocabulary_for(settings, lines)))
    assert len(data.rows) == examples


def test_what_cannot_be_validated_on_or_lacks_a_word_of_the_task_is_refused(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("a\tb\n")
    settings = Settings("pairs", str(path))
    lines = lines_of(settings)
    with pytest.raises(InputError, match="too few to validate on"):
        read_data(settings, lines, tokenizer_for(vocabulary_for(settings, lines)))
    settings = Settings("masked-word", str(text_file(tmp_path, "masked-word")))
    plain = Vocabulary("plain", ("[UNK]", "[PAD]", "the"), 0, "words", None)
    refuses(r"plain has no \[MASK\]", lambda: read_data(settings, lines_of(settings), tokenizer_for(plain)))
    assert [task_of(name).name for name in TASKS] == list(TASKS)


# Which examples are together, in which order, and how they are padded
def row(*ids: int) -> Row:
    return Row(np.array(ids), np.array(ids) + 1)


def test_rows_are_padded_to_the_longest_and_two_sequences_apart():
    batch = together([row(5, 6, 7), row(8)], pad_id=0)
    assert batch.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch.targets.tolist() == [[6, 7, 8], [9, -1, -1]]
    assert (batch.tokens, batch.counted) == (4, 4)
    rows = [Row(np.array([5, 6]), np.array([7]), np.array([2])), Row(np.array([5]), np.array([7, 8]), np.array([2, 7]))]
    batch = together(rows, pad_id=1)
    assert batch.ids.tolist() == [[5, 6], [5, 1]]
    assert batch.decoder_ids.tolist() == [[2, 1], [2, 7]]
    assert batch.targets.tolist() == [[7, -1], [7, 8]]


def test_every_epoch_has_every_example_once_in_an_order_of_its_own_by_the_seed_alone():
    words = Vocabulary("v", ("[UNK]",), 0, "words", None)

    def drawn(number: int, *, seed: int = 1, count: int = 10, batch: int = 4) -> list[int]:
        settings = Settings("next-word", "", validation=0, batch=batch, seed=seed)
        data = Data(task_of("next-word"), settings, words, [row(i) for i in range(count)])
        return data.batch(number).ids[:, 0].tolist()

    epochs = [[*drawn(first), *drawn(first + 1), *drawn(first + 2)] for first in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert drawn(7) == drawn(7)
    assert drawn(0, count=1000, batch=400) != drawn(0, seed=2, count=1000, batch=400)


def test_some_examples_are_held_out_of_a_whole_text_its_end():
    for whole in (True, False):
        for count, share, held_out in ((20, 0.1, 2), (3, 0.01, 1), (2, 0.9, 1), (9, 0.0, 0)):
            learned, validated = split(count, share, 1, whole=whole)
            assert len(validated) == held_out
            assert sorted([*learned, *validated]) == list(range(count))
    assert split(10, 0.2, 1, whole=True)[1].tolist() == [8, 9]
