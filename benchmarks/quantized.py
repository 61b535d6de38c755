"""A pass over weights in blocks of few bits, and the products that it makes with float32 weights in memory."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")  # before NumPy is loaded: as the program sets it
import numpy as np

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from tui_transformer.model import Model

WIDTH, INNER, HEADS, KEY_HEADS, WORDS = 2048, 8192, 32, 8, 32_000
LAYERS = 4
"""Of the 16 that Llama 3.2 1B has, whose widths these are: every layer costs the same."""
TOKENS = 10
BOUND = 2.5
MIB = 1 << 20
MOST_MEMORY = 100


def main() -> None:
    if importlib.util.find_spec("gguf") is None:
        print("  not measured: the package gguf, which writes the files, is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: write(Path(folder) / f"{kind}.gguf", kind) for kind in ("Q4_0", "Q4_K", "Q6_K", "Q8_0")}
        bare = products()
        for kind, path in paths.items():
            passes = partial(timed, partial(a_pass, Model.load(path, device="cpu")))
            spent = interleaved({"pass": passes, "products": partial(timed, bare)}, repetitions(9))
            name = f"{TOKENS} tokens over {kind} weights ÷ their products in float32"
            size = f"the file {path.stat().st_size / MIB:.0f} MiB, in float32 {4 * CELLS / MIB:.0f} MiB"
            report(
                Promise(name, spent["pass"] / spent["products"], bound=BOUND, note=milliseconds(**spent)),
                Promise("the same, peak memory of the process", peak(path) / MIB, "MiB", MOST_MEMORY, size),
            )


def a_pass(model: Model) -> object:
    """All steps, nothing kept."""
    trace = model.trace(ids=range(1, TOKENS + 1), budget=0)
    trace.compute()
    return trace


def peak(path: Path) -> int:
    """Bytes that a process of its own takes at most for a pass."""
    code = "from benchmarks import quantized as q; q.a_pass(q.Model.load({!r}, device='cpu')); print(q.own_peak())"
    return int(subprocess.check_output((sys.executable, "-c", code.format(str(path)))))


def own_peak() -> int:
    """The same of this process; what the system says at its end counts the process that started it, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def shapes() -> Iterator[tuple[str, int, int]]:
    """Every matrix by its name in the file: rows and columns as they are stored, out × in."""
    narrow = WIDTH // HEADS * KEY_HEADS
    for layer in range(LAYERS):
        for name, out, inner in (
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", narrow, WIDTH),
            ("attn_v", narrow, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ):
            yield f"blk.{layer}.{name}.weight", out, inner
    yield "output.weight", WORDS, WIDTH


CELLS = sum(out * inner for _, out, inner in shapes())


def products() -> Callable[[], object]:
    """What is multiplied in a pass, with weights as those of a float32 file are held: out × in, turned."""
    random = np.random.default_rng(0)
    pairs = [
        (random.standard_normal((TOKENS, inner), np.float32), random.standard_normal((out, inner), np.float32).T)
        for _, out, inner in shapes()
    ]
    return lambda: [left @ right for left, right in pairs]


def write(path: Path, kind: str) -> Path:
    """A file of random codes with scales of one size."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

    typed = GGMLQuantizationType[kind]
    numbers, size = GGML_QUANT_SIZES[typed]
    random, writer = np.random.default_rng(0), GGUFWriter(path, "llama")
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_context_length(4096)
    writer.add_layer_norm_rms_eps(1e-5)

    def blocks(out: int, inner: int) -> Any:
        data = random.integers(0, 256, (out, inner // numbers, size), np.uint8)
        scale = np.array([2.0**-13], np.float16).view(np.uint8)
        for place in {"Q4_0": (0,), "Q8_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,)}[kind]:
            data[..., place : place + 2] = scale
        return data.reshape(out, -1)

    writer.add_tensor("token_embd.weight", blocks(WORDS, WIDTH), raw_dtype=typed)
    for name, out, inner in shapes():
        writer.add_tensor(name, blocks(out, inner), raw_dtype=typed)
    for name in ("output_norm", *(f"blk.{n}.{norm}" for n in range(LAYERS) for norm in ("attn_norm", "ffn_norm"))):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


if __name__ == "__main__":
    main()
