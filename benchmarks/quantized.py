"""Weights in blocks of few bits: a pass beside its products with float32 weights in memory, and the first screen."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from benchmarks.start import LAST_WORD, PROGRAM
from benchmarks.terminal import Terminal
from tui_transformer.model import Model

BOUND = 2.5
FRAME = 1.5
MIB = 1 << 20
MOST_MEMORY = 100
TOKENS = 10
KINDS = {"Q4_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,), "Q8_0": (0,)}
"""Types, and where in a block its numbers of 16 bits are."""


@dataclass(frozen=True)
class Llama:
    """Sizes of a Llama."""

    width: int
    inner: int
    words: int
    layers: int
    heads: int = 32
    key_heads: int = 8

    def matrices(self) -> Iterator[tuple[str, int, int]]:
        """Every matrix by its name in the file: rows and columns as they are stored, out × in."""
        narrow = self.width // self.heads * self.key_heads
        for layer in range(self.layers):
            for name, out, inner in (
                ("attn_q", self.width, self.width),
                ("attn_k", narrow, self.width),
                ("attn_v", narrow, self.width),
                ("attn_output", self.width, self.width),
                ("ffn_gate", self.inner, self.width),
                ("ffn_up", self.inner, self.width),
                ("ffn_down", self.width, self.inner),
            ):
                yield f"blk.{layer}.{name}.weight", out, inner
        yield "output.weight", self.words, self.width


SMALL = Llama(2048, 8192, 32_000, layers=4)
"""Llama 3.2 1B with four of its 16 layers, which all cost the same, and fewer words."""
LARGE = Llama(4096, 14336, 128_256, layers=32)
"""Llama 3.1 8B."""


def main() -> None:
    if importlib.util.find_spec("gguf") is None:
        print("  not measured: the package gguf, which writes the files, is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        large = write(Path(folder) / "large.gguf", "Q4_0", LARGE, filled=False)
        frames = {"8b": partial(_frame, str(large)), "small": partial(_frame, "question")}
        spent = interleaved(frames, repetitions(9))
        name = "first screen of an 8B file ÷ of the embedded model"
        report(Promise(name, spent["8b"] / spent["small"], bound=FRAME, note=milliseconds(**spent)))
        paths = {kind: write(Path(folder) / f"{kind}.gguf", kind, SMALL) for kind in KINDS}
        bare, cells = products(), sum(out * inner for _, out, inner in SMALL.matrices())
        for kind, path in paths.items():
            passes = partial(timed, partial(a_pass, Model.load(path, device="cpu")))
            spent = interleaved({"pass": passes, "products": partial(timed, bare)}, repetitions(9))
            name = f"{TOKENS} tokens over {kind} weights ÷ their products in float32"
            size = f"the file {path.stat().st_size / MIB:.0f} MiB, in float32 {4 * cells / MIB:.0f} MiB"
            report(
                Promise(name, spent["pass"] / spent["products"], bound=BOUND, note=milliseconds(**spent)),
                Promise("the same, peak memory of the process", peak(path) / MIB, "MiB", MOST_MEMORY, size),
            )


def a_pass(model: Model) -> object:
    """All steps, nothing kept, as when the model was just opened."""
    model.weights.let_go()
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


def products() -> Callable[[], object]:
    """What is multiplied in a pass, with weights as those of a float32 file are held: out × in, turned."""
    random = np.random.default_rng(0)
    pairs = [
        (random.standard_normal((TOKENS, inner), np.float32), random.standard_normal((out, inner), np.float32).T)
        for _, out, inner in SMALL.matrices()
    ]
    return lambda: [left @ right for left, right in pairs]


def write(path: Path, kind: str, sizes: Llama, *, filled: bool = True) -> Path:
    """A file of random codes with scales of one size, or one that takes no room on the disk."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

    writer, random, typed = GGUFWriter(path, "llama"), np.random.default_rng(0), GGMLQuantizationType[kind]
    writer.add_embedding_length(sizes.width)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_block_count(sizes.layers)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.key_heads)
    writer.add_context_length(4096)
    writer.add_layer_norm_rms_eps(1e-5)
    numbers, size = GGML_QUANT_SIZES[typed]
    shapes = [
        (out, inner // numbers, size) for _, out, inner in (("token_embd", sizes.words, sizes.width), *sizes.matrices())
    ]
    names = ["token_embd.weight", *(name for name, _, _ in sizes.matrices())]
    for name, shape in zip(names, shapes, strict=True):
        writer.add_tensor_info(name, (shape[0], shape[1] * size), np.dtype(np.uint8), math.prod(shape), typed)
    norms = ("attn_norm", "ffn_norm")
    for name in ("output_norm", *(f"blk.{layer}.{norm}" for layer in range(sizes.layers) for norm in norms)):
        writer.add_tensor_info(f"{name}.weight", (sizes.width,), np.dtype(np.float32), 4 * sizes.width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        place = _aligned(file.seek(0, os.SEEK_END))
        for shape in shapes:
            if filled:
                blocks = random.integers(0, 256, shape, np.uint8)
                for at in KINDS[kind]:
                    blocks[..., at : at + 2] = np.array([2.0**-13], np.float16).view(np.uint8)
                file.seek(place)
                file.write(blocks.tobytes())
            place = _aligned(place + math.prod(shape))
        file.truncate(place + 4 * sizes.width * (1 + len(norms) * sizes.layers))
    return path


def _aligned(place: int) -> int:
    return -(-place // 32) * 32


def _frame(model: str) -> float:
    with Terminal((*PROGRAM, "--model", model, "--ids", "1,2,3"), 120, 40) as terminal:
        return terminal.until(LAST_WORD)


if __name__ == "__main__":
    main()
