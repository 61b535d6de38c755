"""How good a model is on lines of its text that are no part of what it learned from."""

from __future__ import annotations

from tui_transformer.errors import InputError
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.loop import Measured
from tui_transformer.learning.recipes import recipe
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.start import trainer
from tui_transformer.model.model import Model
from tui_transformer.records import replace

NEW_LINES, NEW_SEED = 2_000, 1
"""Lines that are measured; the recipes' texts have seed 0."""

MOSTLY = 0.95
"""Share of those that is measured: a run wants some to learn from."""


def measure(name: str, model: Model, count: int = NEW_LINES, seed: int = NEW_SEED) -> Measured:
    """Loss and accuracy on new lines of a recipe's text, without dropout.

    Raises:
        InputError: There are too few lines, or the model is not one of this recipe.
    """
    of_name = recipe(name)
    settings = replace(Settings(**of_name.settings, file=of_name.file), validation=MOSTLY, dropout=0.0)
    measured = trainer(settings, model, [f"{line}\n" for line in lines_of(name, count, seed)]).validate()
    if measured is None:
        raise InputError(f"{name}: there is nothing to measure on")
    return measured
