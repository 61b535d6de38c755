"""Kernels for a GPU: what takes several passes over memory with an array library's functions takes one here.

Each computes what the operation that calls it says in NumPy's terms, and its tests hold it to that.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from tui_transformer.records import dataclass

Array = Any

WARP, MOST = 32, 256
"""Threads that run in step, and at most in a block."""

ACROSS = """
__device__ real larger(real a, real b) { return b > a ? b : a; }

// Sum, or the largest, over the threads of a block; every thread gets it.
__device__ real across(real value, bool sum) {
    __shared__ real parts[32];
    for (int step = 16; step; step /= 2) {
        real other = __shfl_xor_sync(0xffffffff, value, step);
        value = sum ? value + other : larger(value, other);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp)
        value = sum ? value + parts[warp] : larger(value, parts[warp]);
    return value;
}
"""

SOFTMAX = """
// A block a row. It may be written over; a value that is not a number makes all of its row so.
extern "C" __global__ void softmax_rows(const real* scores, real* shares, int columns, real lowest, real least) {
    const real* row = scores + (long long)blockIdx.x * columns;
    real* share = shares + (long long)blockIdx.x * columns;
    real top = lowest, total = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) top = larger(top, row[i]);
    top = across(top, false);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) total += exp(row[i] - top);
    total = across(total, true);
    if (total < least) total = least;  // the powers are made again: that is sooner done than kept
    for (int i = threadIdx.x; i < columns; i += blockDim.x) share[i] = exp(row[i] - top) / total;
}
"""

NORM = """
// A block a row, centred or not, with β or without.
extern "C" __global__ void norm_rows(const real* x, const real* gamma, const real* beta, real* y, int columns,
                                     real epsilon, bool centred, bool shifted) {
    const real* row = x + (long long)blockIdx.x * columns;
    real* result = y + (long long)blockIdx.x * columns;
    real mean = 0, square = 0;
    if (centred) {
        for (int i = threadIdx.x; i < columns; i += blockDim.x) mean += row[i];
        mean = across(mean, true) / columns;
    }
    for (int i = threadIdx.x; i < columns; i += blockDim.x) square += (row[i] - mean) * (row[i] - mean);
    real size = sqrt(across(square, true) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        result[i] = (row[i] - mean) / size * gamma[i] + (shifted ? beta[i] : 0);
}
"""

MASK = """
// A block a row: of head × query of a sentence. A window below 0 is none.
extern "C" __global__ void mask_rows(const real* scores, const long long* queries, const long long* keys,
                                const bool* visible, real* y, int columns, int rows, int count, int query_step,
                                int key_step, int visible_step, bool causal, long long window, real away) {
    long long start = (long long)blockIdx.x * columns;
    int sentence = blockIdx.x / rows;
    long long query = queries[(long long)sentence * query_step + blockIdx.x % count];
    keys += (long long)sentence * key_step;
    visible += (long long)sentence * visible_step;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        real score = scores[start + i];
        bool hidden = !visible[i] || (causal && keys[i] > query);
        if (window >= 0) hidden |= keys[i] <= query - window || (!causal && keys[i] >= query + window);
        y[start + i] = hidden && score == score ? away : score;
    }
}
"""


@dataclass(frozen=True)
class Kernels:
    """Kernels for rows along the last axis, in the precision of the result; each is compiled when it is first called.

    A result is contiguous, and may be written over the first input.
    """

    cupy: Any

    def softmax(self, scores: Array, out: Array) -> Array:
        """The largest of a row is taken off first; a row of −∞ alone gives zeros."""
        limits = np.finfo(out.dtype)
        return self._of_rows(SOFTMAX, (scores,), out, limits.min, limits.tiny)

    def norm(self, x: Array, weights: Sequence[Array], epsilon: float, out: Array, *, centred: bool) -> Array:
        """Layer norm, or RMS norm where it is not `centred`; the weights are γ and, where there is one, β."""
        beta = weights[-1]
        return self._of_rows(NORM, (x, weights[0], beta), out, out.dtype.type(epsilon), centred, beta is not weights[0])

    def mask(self, inputs: Sequence[Array], window: int | None, out: Array, *, causal: bool) -> Array:
        """Scores (B × h × n × m), places of queries and keys, and visible keys, as `Mask` has them."""
        _, heads, count, _ = inputs[0].shape
        steps = [np.int32(array.shape[1] if len(array) > 1 else 0) for array in inputs[1:]]
        last = np.int64(-1 if window is None else window)
        sizes = np.int32(heads * count), np.int32(count), *steps
        return self._of_rows(MASK, inputs, out, *sizes, causal, last, out.dtype.type(-np.inf))

    def function(self, expression: str, x: Array, out: Array) -> Array:
        """A function of the value x, of type T, in C."""
        return _elementwise(self.cupy, expression)(x, out)

    def _of_rows(self, code: str, inputs: Sequence[Array], out: Array, *options: Any) -> Array:
        """Run a kernel that has a block for every row."""
        columns = out.shape[-1]
        if out.size:
            threads = min(MOST, max(WARP, 1 << (columns - 1).bit_length()))
            kinds = {"f": out.dtype, "i": np.int64, "b": np.bool_}  # a kernel reads memory as it is
            arrays = [self.cupy.ascontiguousarray(array, kinds[array.dtype.kind]) for array in inputs]
            kernel = _kernel(self.cupy, code, out.dtype.itemsize)
            kernel((out.size // columns,), (threads,), (*arrays, out, np.int32(columns), *options))
        return out


@cache
def _kernel(cupy: Any, code: str, size: int) -> Callable[..., None]:
    kind = {4: "float", 8: "double"}[size]
    name = code.partition("void ")[2].partition("(")[0]
    return cast("Callable[..., None]", cupy.RawKernel(f"typedef {kind} real;\n{ACROSS}{code}", name))


@cache
def _elementwise(cupy: Any, expression: str) -> Callable[..., Array]:
    name = f"function_{zlib.crc32(expression.encode()):x}"
    return cast("Callable[..., Array]", cupy.ElementwiseKernel("T x", "T y", f"y = {expression}", name))
