"""A survey from Python."""

from __future__ import annotations

import pytest

from tui_transformer import InputError, Model, measure_texts
from tui_transformer.analysis.survey.batch import Asked, Item, survey
from tui_transformer.analysis.survey.sums import Source
from tui_transformer.analysis.survey.table import Origin, rows

TEXTS = [f"The fox found {number} shells ." for number in range(20)]


def test_texts_of_any_iterator_give_rows_and_examples():
    model = Model.load("story", device="cpu")
    measured = measure_texts(model, iter(TEXTS), ["previous", "first"], layers=[1], top=1)
    items = [Item(number, Source("", number + 1, text)) for number, text in enumerate(TEXTS)]
    sums = survey(model, items, Asked(("previous", "first"), frozenset({1}), top=1))
    assert list(measured.rows) == list(rows(sums, Origin("story")))
    assert {example.text for example in measured.examples} <= set(TEXTS)
    assert {row.layer for row in measured.rows} == {1}


def test_what_cannot_be_is_said():
    with pytest.raises(InputError, match="no measure is called"):
        measure_texts(Model.load("story", device="cpu"), TEXTS, ["surprise"])
