"""The recipes of the models that come with the program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.gradient import cross_entropy
from tui_transformer.errors import UsageError
from tui_transformer.learning.recipes import RECIPES, recipe
from tui_transformer.learning.run import Run
from tui_transformer.learning.settings import Settings

FEW = {"lines": 300, "batch": 4}
"""Enough to begin with: the whole text and batch only take longer."""


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_begins_a_run(name, tmp_path):
    small = recipe(name)
    small = replace(small, lines=FEW["lines"], settings={**small.settings, "batch": FEW["batch"]})
    text = small.write_text(tmp_path)
    assert text.read_text().count("\n") == small.lines
    run = Run.start(tmp_path, Settings(**small.settings, file=str(text)))
    first = run.trainer.advance()
    run.close()
    assert np.isfinite(first.loss)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(UsageError, match="no recipe"):
        recipe("soup")


def test_a_sequence_is_right_as_a_whole_or_not():
    targets = np.array([[0, 1, -1], [1, 1, 0], [-1, -1, -1], [2, -1, 2]])
    logits = np.eye(3)[[[0, 1, 2], [1, 0, 0], [0, 1, 2], [2, 0, 2]]]
    loss, _ = cross_entropy(numpy_backend("float64"), logits, targets)
    assert (loss.right, loss.counted, loss.whole) == (6, 7, 2)
