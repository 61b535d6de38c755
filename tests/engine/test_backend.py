"""Which device and precision are taken, what the core loads, and work in blocks of rows, which the cores share."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from refusing import refuses

from tui_transformer import machine
from tui_transformer.engine import backend as backend_module
from tui_transformer.engine import ops
from tui_transformer.engine.backend import Gpu, choose_backend, numpy_backend
from tui_transformer.engine.ops import base
from tui_transformer.engine.ops.base import by_rows, writable
from tui_transformer.errors import UsageError


def test_without_a_gpu_auto_falls_back_to_the_cpu_and_says_why(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(None, "CuPy sees no GPU"))
    backend = choose_backend("auto")
    assert (backend.device, backend.reason) == ("cpu", "no GPU: CuPy sees no GPU")
    refuses("no GPU: CuPy sees no GPU; use device cpu", lambda: choose_backend("gpu"))


def test_a_gpu_is_taken_by_auto_unless_the_model_is_small_and_an_unknown_device_refused(monkeypatch):
    monkeypatch.setattr(backend_module, "find_gpu", lambda: Gpu(object(), "CuPy 14 on a test"))
    backend = choose_backend("auto", "float64")
    assert (backend.name, backend.device, backend.dtype) == ("CuPy", "gpu", np.float64)
    assert backend.reason == "CuPy 14 on a test"
    assert choose_backend("cpu").device == "cpu"
    monkeypatch.setattr(backend_module.importlib.util, "find_spec", lambda _: object())
    assert choose_backend("auto", small=True).device == "cpu"
    assert choose_backend("gpu", small=True).device == "gpu"
    for name in ("cuda", "GPU", "", "0", "float16", "f4", "int64"):
        refuses("use auto, cpu or gpu", lambda name=name: choose_backend(name), UsageError)
        refuses("use float32 or float64", lambda name=name: choose_backend("cpu", name), UsageError)


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


# Work in blocks of rows

F64, F32 = numpy_backend("float64"), numpy_backend("float32")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        (ops.Softmax(), (some(2, 3, 50, 41),)),
        (ops.Gelu(), (some(2, 70, 33),)),
        (ops.LayerNorm(), (some(2, 70, 33), some(33), some(33))),
    ],
)
def test_blocks_give_the_same_bits_as_the_whole(op, inputs):
    whole = op.forward(F32, *inputs)
    np.testing.assert_array_equal(op.forward(replace(F32, block=123), *inputs), whole)


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("rows", [3, 700, 1301])
def test_cores_share_the_rows(rng, monkeypatch, cores, rows):
    for module in (base, machine):
        monkeypatch.setattr(module, "cores", lambda: cores)
    x = rng.standard_normal((rows, 1000), np.float32)
    result, seen = np.full_like(x, np.nan), set[int]()

    def double(values, target):
        seen.add(threading.get_ident())
        np.multiply(values, 2.0, out=target)

    by_rows(F32, double, x, result)
    np.testing.assert_array_equal(result, x * np.float32(2.0))
    assert 1 <= len(seen) <= cores


def test_what_goes_wrong_on_another_core_is_raised_here(monkeypatch):
    for module in (base, machine):
        monkeypatch.setattr(module, "cores", lambda: 2)
    here, begun = threading.get_ident(), threading.Event()

    def fail_elsewhere(rows):
        if threading.get_ident() != here:
            begun.set()
            raise ValueError("of a row")
        assert begun.wait(30.0)

    refuses("of a row", lambda: by_rows(F32, fail_elsewhere, np.empty((700, 1000), np.float32)), ValueError)


def test_without_a_thread_the_work_is_done_alone(rng, monkeypatch):
    for module in (base, machine):
        monkeypatch.setattr(module, "cores", lambda: 3)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    machine._threads.cache_clear()
    x = rng.standard_normal((700, 1000), np.float32)
    result = np.full_like(x, np.nan)
    by_rows(F32, lambda values, target: np.multiply(values, 2.0, out=target), x, result)
    np.testing.assert_array_equal(result, x * np.float32(2.0))
    machine._threads.cache_clear()


def test_a_mask_that_hides_nothing_is_where_the_scores_are_and_cannot_be_written_over(rng):
    scores = rng.standard_normal((1, 2, 3, 3), np.float32)
    places, visible = np.arange(3)[None], np.ones((1, 3), np.bool_)
    masked = ops.Mask().forward(F32, scores, places, places, visible)
    assert np.shares_memory(masked, scores)
    assert not writable(masked)
    assert writable(scores)
    assert writable(ops.Mask().forward(F32, scores, places, places, visible, out=scores))
    assert not np.shares_memory(ops.Mask(causal=True).forward(F32, scores, places, places, visible), scores)


def test_no_rows_are_no_work():
    by_rows(F32, lambda rows: None, np.empty((0, 4), np.float32))
    assert ops.Gelu().forward(F32, np.empty((1, 0, 4), np.float32)).shape == (1, 0, 4)
