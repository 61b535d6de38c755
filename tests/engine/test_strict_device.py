"""On a device whose arrays never mix with the host's, everything is as on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from comparing import assert_same
from op_cases import CASES
from reference import in_float64
from strict import Module, strict_backend

from tui_transformer.diagnosis.naming.conventions import modules, table_of
from tui_transformer.engine.backend import numpy_backend
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.engine.weights import Weights
from tui_transformer.learning.data import lines_of
from tui_transformer.learning.loop import new_trainer, trainer
from tui_transformer.learning.settings import Settings
from tui_transformer.model import Model

MODERN = {"norm": "pre", "activation": "gelu", "positions": "learned", "bias": True, "tie_output": True}
MODELS = {
    "encoder": ("encoder", {"layers": 2}),
    "decoder": ("decoder", {"scale_embedding": True, **MODERN}),
    "attention": ("attention", {}),
    "encoder-decoder": ("encoder-decoder", {"pad_id": 1, "decoder_layers": 2, "bias": True}),
}
IDS = [[2, 5, 3, 6, 4], [7, 3, 3, 1, 1]]
DECODER_IDS = [[0, 4, 2, 5, 5], [1, 6, 3, 7, 1]]


@pytest.fixture(params=MODELS)
def model(request) -> Model:
    name, sizes = MODELS[request.param]
    return in_float64(name, **sizes)


def traces(model: Model, budget: int = 1 << 30) -> tuple[Trace, Trace]:
    """The same input on the CPU and on the stand-in."""
    strict = replace(model, weights=Weights(strict_backend(), model.weights.read))
    given = {"ids": IDS if model.config.vocab_size else None, "decoder_ids": DECODER_IDS if model.has_decoder else None}
    return model.trace(**given, budget=budget), strict.trace(**given, budget=budget)


def test_the_stand_in_refuses_host_arrays():
    array = Module.asarray([1.0, 2.0])
    for mistake in (lambda: array + np.ones(2), lambda: np.ones(2) + array, lambda: np.exp(array)):
        with pytest.raises(TypeError):
            mistake()
    with pytest.raises(TypeError):
        Module.exp(np.ones(2))
    with pytest.raises(TypeError):
        array[0] = np.float64(3)
    with pytest.raises(TypeError):
        np.asarray(array)


def test_every_step_its_windows_and_explanations_are_as_on_the_cpu_and_on_the_host(model):
    cpu, device = traces(model)
    for name in cpu:
        region = tuple(range(size // 2, size) for size in cpu.program.shape(name))
        np.testing.assert_allclose(device.window(name, region, 0), cpu.window(name, region, 0), rtol=1e-12, atol=1e-14)
        index = tuple(size - 1 for size in cpu.program.shape(name))
        wanted, there = cpu.explain_cell(name, index, 0), device.explain_cell(name, index, 0)
        assert there.recomputed == pytest.approx(wanted.recomputed, rel=1e-12), name
        assert there.stored == pytest.approx(wanted.stored, rel=1e-12, abs=1e-14), name
    cpu, device = traces(model)
    assert_same(device, cpu)
    assert all(isinstance(device[name], np.ndarray) and not device[name].flags.writeable for name in device)
    assert_same(cpu, replace(traces(model, budget=0)[1], block=40))  # rows of a head of 5 × 5 weights


@pytest.mark.parametrize("model", ["encoder", "decoder", "encoder-decoder"], indirect=True)
def test_gradients_are_as_on_the_cpu(model):
    targets = [[5, 3, -1, 4, 0], [1, 2, 3, -1, -1]]
    cpu, device = (gradients(trace, targets) for trace in traces(model))
    assert device.loss == pytest.approx(cpu.loss, rel=1e-12)
    assert_same(device.values, cpu.values, rtol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_every_operation_is_as_on_the_cpu(name):
    case = CASES[name](np.random.default_rng(3))
    for array, wanted in zip(case.results(strict_backend()), case.results(numpy_backend("float64")), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-12, atol=1e-14)


def test_rows_that_are_looked_up_in_a_file_are_put_on_the_device(tmp_path):
    in_float64("decoder").save(tmp_path)
    model = in_float64(tmp_path)
    model = replace(model, weights=replace(model.weights, large=1))
    strict = replace(model, weights=replace(model.weights, backend=strict_backend(), held={}))
    cpu, device = (each.trace(ids=IDS) for each in (model, strict))
    assert np.array_equal(device["embedding.tokens"], cpu["embedding.tokens"])
    assert device.explain("embedding.tokens", row=1, column=2, item=1).difference == 0
    assert "embedding.tokens.weight" not in strict.weights.held
    assert_same(device, cpu)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_training_is_as_on_the_cpu(tmp_path, optimizer):
    path = tmp_path / "pairs.txt"
    path.write_text("the sea\tdas Meer\nthe dog and the sea\tder Hund und das Meer\na dog\tein Hund\n")
    sizes = {"d_model": 8, "heads": 2, "layers": 1}
    options = {"dtype": "float64", "device": "cpu", "label_smoothing": 0.1, "warm_up": 0, "batch": 2, "accumulate": 2}
    settings = Settings("pairs", str(path), sizes=sizes, optimizer=optimizer, weight_decay=0.1, **options)
    cpu = new_trainer(settings, lines_of(settings))
    model = replace(cpu.model, weights=Weights(strict_backend(), cpu.model.weights.read))
    device = trainer(settings, model, lines_of(settings))
    for _ in range(3):
        assert device.advance().loss == pytest.approx(cpu.advance().loss, rel=1e-10)
    assert device.validate().loss == pytest.approx(cpu.validate().loss, rel=1e-10)


def test_what_a_dump_may_call_the_modules_is_as_on_the_cpu():
    cpu = in_float64("phi")  # its output has a bias
    device = replace(cpu, weights=Weights(strict_backend(), cpu.weights.read))
    offsets = [table_of(modules(model, model.program(3)))["embed.out"][0].offset for model in (cpu, device)]
    assert np.any(offsets[0])
    np.testing.assert_array_equal(*offsets)
