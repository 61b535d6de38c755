"""A training step on a device whose arrays never mix with the host's is as on the CPU."""

from __future__ import annotations

import dataclasses

import pytest
from strict import strict_backend

from tui_transformer.engine.weights import Weights
from tui_transformer.learning.data import lines_of
from tui_transformer.learning.settings import Settings
from tui_transformer.learning.start import new_trainer, trainer


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_training_is_as_on_the_cpu(tmp_path, optimizer):
    path = tmp_path / "pairs.txt"
    path.write_text("the sea\tdas Meer\nthe dog and the sea\tder Hund und das Meer\na dog\tein Hund\n")
    sizes = {"d_model": 8, "heads": 2, "layers": 1}
    options = {"dtype": "float64", "device": "cpu", "label_smoothing": 0.1, "warm_up": 0, "batch": 2, "accumulate": 2}
    settings = Settings("pairs", str(path), sizes=sizes, optimizer=optimizer, weight_decay=0.1, **options)
    cpu = new_trainer(settings, lines_of(settings))
    model = dataclasses.replace(cpu.model, weights=Weights(strict_backend(), cpu.model.weights.read))
    device = trainer(settings, model, lines_of(settings))
    for _ in range(3):
        assert device.advance().loss == pytest.approx(cpu.advance().loss, rel=1e-10)
    assert device.validate().loss == pytest.approx(cpu.validate().loss, rel=1e-10)
