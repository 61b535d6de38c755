"""Where the arithmetic runs and in what precision: NumPy on the CPU, or CuPy on a GPU.

The only module that imports cupy. Everything else takes a `Backend` and uses its `xp`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tui_transformer.engine.axis import Shape
from tui_transformer.engine.kernels import Kernels
from tui_transformer.engine.pool import Pool
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass, field

Array = Any
"""An array of the backend: numpy.ndarray or cupy.ndarray."""

Host = npt.NDArray[Any]
DTYPES = ("float32", "float64")
POOL = Pool()


@dataclass(frozen=True)
class Backend:
    """An array library, a device and a precision.

    Attributes:
        name: The array library as users know it, "NumPy" or "CuPy".
        device: "cpu" or "gpu".
        xp: The module with NumPy's interface.
        dtype: Precision of every floating-point value, float32 or float64.
        reason: Why this device was taken, one sentence.
        block: Cells of the widest array that are worked on at a time on the CPU (256 KiB in float32).
        pool: Where memory of arrays on the CPU comes from: one for all backends.
        kernels: What is computed in one pass over memory on a GPU.
    """

    name: str
    device: str
    xp: Any
    dtype: np.dtype[Any]
    reason: str
    block: int = 1 << 16
    pool: Pool = field(default=POOL, repr=False, compare=False)
    kernels: Kernels | None = field(default=None, repr=False, compare=False)

    def floats(self, values: Any) -> Array:
        """Values on the device in the backend's precision."""
        return self.xp.asarray(values, dtype=self.dtype)

    def integers(self, values: Any) -> Array:
        """Values on the device as 64-bit integers."""
        return self.xp.asarray(values, dtype=np.int64)

    def booleans(self, values: Any) -> Array:
        """Values on the device as booleans."""
        return self.xp.asarray(values, dtype=np.bool_)

    def empty(self, shape: Shape, dtype: Any = None) -> Array:
        """An array with undefined contents, in the backend's precision unless another is given."""
        dtype = self.dtype if dtype is None else dtype
        return self.pool.empty(shape, dtype) if self.xp is np else self.xp.empty(shape, dtype=dtype)

    def expect(self, size: int) -> None:
        """Keep so many bytes ready once they were used."""
        if self.xp is np:
            self.pool.expect(size)

    def like(self, x: Array) -> Array:
        """An array with undefined contents, as large and as precise as x, contiguous."""
        return self.empty(x.shape, x.dtype)

    @functools.cached_property
    def to_host(self) -> Callable[[Array], Host]:
        """Gives an array as one of NumPy: the same memory on the CPU, a copy from a GPU."""
        return np.asarray if self.device == "cpu" else operator.methodcaller("get")

    def erf(self, x: Array) -> Array:
        """The error function of every element, to the precision of the backend's dtype."""
        if self.device == "gpu":
            return importlib.import_module("cupyx.scipy.special").erf(x)
        return _erf32(self.xp, x) if x.dtype == np.float32 else self.floats(_erf64(x))


ERF_SERIES = (1.5895036e-07, -5.9855544e-06, 8.9711919e-05, -6.2571814e-04, -1.8438504e-04, 0.10276548, 1.1283797)
"""atanh(erf(x)) ÷ x as a polynomial in x², highest power first: least squares, reweighted until even, for |x| < 4.1."""


def _erf32(xp: Any, x: Array) -> Array:
    """Error function as tanh of an odd polynomial, with an error below 1.4e-7 in float32; beyond the fit it is ±1."""
    squares = x * x
    series = squares * ERF_SERIES[0]
    for coefficient in ERF_SERIES[1:-1]:
        series += coefficient
        series *= squares
    series += ERF_SERIES[-1]
    series *= x
    return xp.tanh(series, out=series)


_erf64 = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class Gpu:
    """Result of the search for a GPU: the module if it works, and one sentence either way."""

    cupy: Any | None
    finding: str


@functools.cache
def find_gpu() -> Gpu:
    """Look for CuPy and a working GPU. Done once; importing CuPy takes seconds."""
    if importlib.util.find_spec("cupy") is None:
        return Gpu(None, "CuPy is not installed (pip install 'tui-transformer[cuda13]' or '[cuda12]')")
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:  # noqa: BLE001 - a broken CUDA installation raises whatever it likes
        return Gpu(None, f"CuPy does not start: {_first_line(error)}")
    try:  # a small product tells whether driver, compiler and BLAS are all there
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return Gpu(None, "CuPy sees no GPU")
        probe = cupy.ones((2, 2), dtype=np.float32)
        if float((probe @ probe).sum()) != 8.0:
            return Gpu(None, "the GPU computes wrong numbers in a 2×2 product")
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:  # noqa: BLE001 - any CUDA failure means: no GPU, and why
        return Gpu(None, f"the GPU cannot be used: {_first_line(error)}")
    return Gpu(cupy, f"CuPy {cupy.__version__} on {name}")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype named float32 or float64."""
    if name not in DTYPES:
        raise UsageError(f"dtype {name!r} is not known: use {' or '.join(DTYPES)}")
    return np.dtype(name)


def numpy_backend(dtype: str = "float32", reason: str = "chosen") -> Backend:
    """NumPy on the CPU."""
    return Backend("NumPy", "cpu", np, dtype_of(dtype), reason)


def choose_backend(device: str = "auto", dtype: str = "float32", *, small: bool = False) -> Backend:
    """The backend for a device choice.

    Args:
        device: "auto" takes a GPU where there is one, "cpu" and "gpu" insist.
        dtype: "float32" or "float64".
        small: The model is so small that starting a GPU costs more than it saves; "auto" then stays on the CPU.

    Raises:
        UsageError: An unknown device or dtype.
        InputError: "gpu" was asked for and cannot be had; the message says why.
    """
    if device not in ("auto", "cpu", "gpu"):
        raise UsageError(f"device {device!r} is not known: use auto, cpu or gpu")
    if device == "cpu":
        return numpy_backend(dtype, "the CPU was asked for")
    if device == "auto" and small and importlib.util.find_spec("cupy") is not None:
        return numpy_backend(dtype, "the model is small: the CPU is ready sooner than a GPU (device gpu insists)")
    gpu = find_gpu()
    if gpu.cupy is not None:
        return Backend("CuPy", "gpu", gpu.cupy, dtype_of(dtype), gpu.finding, kernels=Kernels(gpu.cupy))
    if device == "gpu":
        raise InputError(f"no GPU: {gpu.finding}; use device cpu")
    return numpy_backend(dtype, f"no GPU: {gpu.finding}")
