"""Which device and precision are taken, and what the core loads."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from tui_transformer.engine import backend as backend_module
from tui_transformer.engine.backend import Gpu, choose_backend, numpy_backend
from tui_transformer.errors import InputError, UsageError


def test_without_a_gpu_auto_falls_back_to_the_cpu_and_says_why(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(None, "CuPy sees no GPU"))
    backend = choose_backend("auto")
    assert (backend.device, backend.reason) == ("cpu", "no GPU: CuPy sees no GPU")
    with pytest.raises(InputError, match="no GPU: CuPy sees no GPU; use --device cpu"):
        choose_backend("gpu")


def test_a_gpu_is_taken_by_auto_unless_the_model_is_small_or_another_device_is_asked_for(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(object(), "CuPy 14 on a test"))
    backend = choose_backend("auto", "float64")
    assert (backend.name, backend.device, backend.dtype) == ("CuPy", "gpu", np.float64)
    assert backend.reason == "CuPy 14 on a test"
    assert choose_backend("cpu").device == "cpu"
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


# What the core loads


CORE = ("engine", "model", "text", "views", "analysis", "guide", "report")
FORBIDDEN = ("textual", "rich", "plotext", "typer", "cupy")
LOAD_ALL = """
import importlib, pkgutil, sys
for folder in sys.argv[1:]:
    package = importlib.import_module("tui_transformer." + folder)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_core_loads_no_terminal_library():
    run = subprocess.run([sys.executable, "-c", LOAD_ALL, *CORE], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "tui_transformer" in loaded
    assert not set(loaded) & set(FORBIDDEN)
