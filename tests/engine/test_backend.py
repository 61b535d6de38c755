"""Which device and precision are taken, and why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.engine import backend as backend_module
from tui_transformer.engine.backend import Gpu, choose_backend, numpy_backend
from tui_transformer.errors import InputError, UsageError


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(None, "CuPy sees no GPU"))


@pytest.fixture
def some_gpu(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(object(), "CuPy 14 on a test"))


@pytest.mark.usefixtures("no_gpu")
def test_auto_falls_back_to_the_cpu_and_says_why():
    backend = choose_backend("auto")
    assert (backend.device, backend.reason) == ("cpu", "no GPU: CuPy sees no GPU")


@pytest.mark.usefixtures("no_gpu")
def test_a_gpu_that_is_insisted_on_and_missing_is_an_error():
    with pytest.raises(InputError, match="no GPU: CuPy sees no GPU; use --device cpu"):
        choose_backend("gpu")


@pytest.mark.usefixtures("some_gpu")
def test_auto_takes_a_gpu_and_says_which():
    backend = choose_backend("auto", "float64")
    assert (backend.name, backend.device, backend.dtype) == ("CuPy", "gpu", np.float64)
    assert backend.reason == "CuPy 14 on a test"


@pytest.mark.usefixtures("some_gpu")
def test_cpu_is_taken_when_asked_for():
    assert choose_backend("cpu").device == "cpu"


@pytest.mark.usefixtures("some_gpu")
def test_a_small_model_starts_no_gpu(monkeypatch):
    monkeypatch.setattr(backend_module.importlib.util, "find_spec", lambda _: object())
    assert choose_backend("auto", small=True).device == "cpu"
    assert choose_backend("gpu", small=True).device == "gpu"


@pytest.mark.parametrize("name", ["cuda", "GPU", "", "0", "float16", "f4", "int64"])
def test_an_unknown_device_or_precision_is_refused(name):
    with pytest.raises(UsageError, match="use auto, cpu or gpu"):
        choose_backend(name)
    with pytest.raises(UsageError, match="use float32 or float64"):
        choose_backend("cpu", name)


def test_broken_cupy_is_reported_and_not_raised(monkeypatch):
    def broken(name: str) -> object:
        raise ImportError("libcublas.so.12: cannot open shared object file\nmore")

    monkeypatch.setattr(backend_module.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(backend_module.importlib, "import_module", broken)
    gpu = backend_module.find_gpu.__wrapped__()
    assert gpu == Gpu(None, "CuPy does not start: libcublas.so.12: cannot open shared object file")


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1.5e-7), ("float64", 1e-15)])
def test_the_error_function_is_accurate(dtype, error):
    x = np.linspace(-8, 8, 4001, dtype=dtype)
    values = numpy_backend(dtype).erf(x)
    assert values.dtype == dtype
    assert np.abs(values - [math.erf(value) for value in x.tolist()]).max() <= error
