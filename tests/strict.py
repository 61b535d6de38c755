"""A stand-in for a GPU's arrays: NumPy inside, but, as CuPy, it never takes a host array for a device array.

Only `Module.asarray` brings values in and only `get` brings them out; anything else that mixes the two raises
TypeError. IDs outside a table wrap silently in `take`, as they do in CuPy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tui_transformer.engine.backend import Backend, numpy_backend

SCALARS = (bool, int, float)
INDICES = (int, slice, type(None), type(Ellipsis))
METHODS = ("reshape", "swapaxes", "copy", "max", "min", "sum", "mean", "any", "all", "astype", "argmax")
BINARY = ("add", "sub", "mul", "truediv", "pow", "matmul", "and", "or")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
FUNCTIONS = (
    *("abs", "argmax", "argpartition", "argsort", "ascontiguousarray", "ceil", "clip", "copysign", "cos", "divide"),
    *("empty_like", "exp", "log", "matmul", "maximum", "minimum", "multiply", "negative", "sign", "sin", "sqrt"),
    *("subtract", "take_along_axis", "tanh", "where", "zeros_like"),
)


class Array:
    """An array on the pretended device."""

    __array_ufunc__ = None  # a NumPy array on the left leaves the operation to this class, which refuses it
    __iter__ = None
    __hash__ = None

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array: use get()")

    def get(self) -> np.ndarray[Any, Any]:
        return self._values.copy()

    def __getitem__(self, place: Any) -> Array:
        return Array(self._values[index(place)])

    def __setitem__(self, place: Any, value: Any) -> None:
        self._values[index(place)] = plain(value)

    def __len__(self) -> int:
        return len(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __neg__(self) -> Array:
        return Array(-self._values)

    def __invert__(self) -> Array:
        return Array(~self._values)

    @property
    def T(self) -> Array:
        return Array(self._values.T)


def plain(value: Any) -> Any:
    """The values that NumPy computes with; a host array or a NumPy scalar is refused."""
    if isinstance(value, Array):
        return value._values
    if type(value) in SCALARS:
        return value
    raise TypeError(f"unsupported type {type(value).__name__}: bring it to the device first")


def index(place: Any) -> Any:
    """An index of whole numbers, slices and device arrays."""
    if isinstance(place, tuple):
        return tuple(index(part) for part in place)
    return place if isinstance(place, INDICES) else plain(place)


def _method(name: str) -> Callable[..., Array]:
    return lambda self, *args, **options: Array(getattr(self._values, name)(*args, **options))


def _operators(name: str) -> dict[str, Callable[[Array, Any], Array]]:
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    return {
        f"__{name}__": lambda self, other: Array(function(self._values, plain(other))),
        f"__r{name}__": lambda self, other: Array(function(plain(other), self._values)),
        f"__i{name}__": lambda self, other: _in_place(function, self, plain(other)),
    }


def _in_place(function: Callable[[Any, Any], Any], array: Array, other: Any) -> Array:
    array._values[...] = function(array._values, other)
    return array


def _comparison(name: str) -> Callable[[Array, Any], Array]:
    return lambda self, other: Array(getattr(operator, name)(self._values, plain(other)))


for _name in METHODS:
    setattr(Array, _name, _method(_name))
for _name in BINARY:
    for _special, _function in _operators(_name).items():
        setattr(Array, _special, _function)
for _name in COMPARISONS:
    setattr(Array, f"__{_name}__", _comparison(_name))
for _name in ("shape", "dtype", "size", "ndim", "nbytes", "flags"):
    setattr(Array, _name, property(operator.attrgetter(f"_values.{_name}")))


def device_function(function: Callable[..., Any]) -> Callable[..., Array]:
    """A NumPy function that takes device arrays and Python numbers only."""

    def call(*args: Any, out: Array | None = None, **options: Any) -> Array:
        values = [plain(arg) for arg in args]
        if out is None:
            return Array(function(*values, **options))
        function(*values, out=plain(out), **options)
        return out

    return call


class Sum:
    """`add` and `add.at`."""

    def __call__(self, *args: Any, out: Array | None = None) -> Array:
        return device_function(np.add)(*args, out=out)

    def at(self, array: Array, place: Any, values: Array) -> None:
        np.add.at(plain(array), index(place), plain(values))


class Module:
    """The functions of NumPy's interface that the engine uses; any other is missing here."""

    float32, float64, int64, inf = np.float32, np.float64, np.int64, np.inf

    add = Sum()

    @staticmethod
    def asarray(values: Any, dtype: Any = None) -> Array:
        return Array(np.array(values._values if isinstance(values, Array) else values, dtype=dtype))

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: Any) -> Array:
        return Array(np.full(shape, 77, dtype))

    @staticmethod
    def nonzero(array: Array) -> tuple[Array, ...]:
        return tuple(map(Array, np.nonzero(plain(array))))

    @staticmethod
    def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
        return Array(np.zeros(shape, dtype))

    @staticmethod
    def concatenate(arrays: tuple[Array, ...], axis: int) -> Array:
        return Array(np.concatenate([plain(array) for array in arrays], axis=axis))

    @staticmethod
    def broadcast_to(array: Array, shape: tuple[int, ...]) -> Array:
        return Array(np.broadcast_to(plain(array), shape))

    @staticmethod
    def arange(*bounds: int, dtype: Any = None) -> Array:
        return Array(np.arange(*bounds, dtype=dtype))

    @staticmethod
    def take(table: Array, ids: Array, axis: int, out: Array | None = None) -> Array:
        return device_function(np.take)(table, ids, axis=axis, out=out, mode="wrap")

    @staticmethod
    def einsum(expression: str, *arrays: Array) -> Array:
        return Array(np.einsum(expression, *map(plain, arrays)))

    @staticmethod
    def copyto(array: Array, value: Any, where: Array) -> None:
        np.copyto(plain(array), plain(value), where=plain(where))


for _name in FUNCTIONS:
    setattr(Module, _name, staticmethod(device_function(getattr(np, _name))))


@dataclass(frozen=True)
class StrictBackend(Backend):
    """A backend on the stand-in."""

    def erf(self, x: Any) -> Any:
        return Array(numpy_backend(str(self.dtype)).erf(plain(x)))


def strict_backend(dtype: str = "float64") -> StrictBackend:
    """The stand-in as a GPU."""
    return StrictBackend("Strict", "gpu", Module, np.dtype(dtype), "a test asks for it")
