"""Which examples are together, in which order, and how they are padded."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.learning.data import Order, split, together
from tui_transformer.learning.tasks import Row


def row(*ids: int) -> Row:
    return Row(np.array(ids), np.array(ids) + 1)


def test_rows_are_padded_to_the_longest():
    batch = together([row(5, 6, 7), row(8)], pad_id=0)
    assert batch.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch.targets.tolist() == [[6, 7, 8], [9, -1, -1]]
    assert (batch.tokens, batch.counted) == (4, 4)


def test_two_sequences_are_padded_apart():
    rows = [Row(np.array([5, 6]), np.array([7]), np.array([2])), Row(np.array([5]), np.array([7, 8]), np.array([2, 7]))]
    batch = together(rows, pad_id=1)
    assert batch.ids.tolist() == [[5, 6], [5, 1]]
    assert batch.decoder_ids.tolist() == [[2, 1], [2, 7]]
    assert batch.targets.tolist() == [[7, -1], [7, 8]]


def test_every_epoch_has_every_example_once_in_an_order_of_its_own():
    order = Order(10, 4, seed=1)
    epochs = [np.concatenate([order.examples(3 * epoch + i) for i in range(3)]) for epoch in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_the_order_depends_on_the_seed_alone():
    assert np.array_equal(Order(10, 4, 1).examples(7), Order(10, 4, 1).examples(7))
    assert not np.array_equal(Order(1000, 400, 1).examples(0), Order(1000, 400, 2).examples(0))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("count", "share", "held_out"), [(20, 0.1, 2), (3, 0.01, 1), (2, 0.9, 1), (9, 0.0, 0)])
def test_some_examples_are_held_out(count, share, held_out, whole):
    learned, validated = split(count, share, 1, whole=whole)
    assert len(validated) == held_out
    assert sorted([*learned, *validated]) == list(range(count))


def test_the_end_of_a_text_is_held_out():
    assert split(10, 0.2, 1, whole=True)[1].tolist() == [8, 9]
