"""Arrays of a program in the styles in which people write them, a function a style."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dumping import GGML, MODULES, in_columns, merged, renamed
from safetensors.numpy import save_file
from small import Arrays

Write = Callable[[Path, Arrays, list[int]], Path]


def single(arrays: Arrays) -> Arrays:
    return {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}


# Files of arrays


def npz(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    np.savez(folder / "run.npz", input_ids=np.array(ids), **single(arrays))
    return folder / "run.npz"


def safetensors(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Own names, counted from 1, with a batch axis."""
    tensors = {f"layer{int(at[1]) + 1}_{at[2]}_{at[3]}" if (at := name.split("."))[1].isdigit() and len(at) == 4
               else name: array[None] for name, array in single(arrays).items()}  # fmt: skip
    save_file(tensors | {"input_ids": np.array([ids])}, folder / "run.safetensors")
    return folder / "run.safetensors"


def npy_folder(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    for name, array in single(arrays).items():
        np.save(folder / f"{name}.npy", merged(array) if name.endswith((".query", ".key", ".value")) else array)
    np.save(folder / "tokens.npy", np.array(ids))
    return folder


def raw_folder(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Bare float32, rows of all heads side by side, and no shapes."""
    for name, array in single(arrays).items():
        (merged(array) if name.endswith((".query", ".key", ".value")) else array).tofile(folder / f"{name}.f32")
    np.array(ids, np.int32).tofile(folder / "input_ids.i32")
    return folder


def text_folder(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    for name, array in arrays.items():
        with (folder / f"{name}.txt").open("w") as file:
            for i, matrix in enumerate(array if array.ndim == 3 else [array]):
                file.write("\n" if i else "")
                np.savetxt(file, matrix, fmt="%.7g")
    (folder / "input_ids.txt").write_text(" ".join(map(str, ids)))
    return folder


def debugger(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    def node(name: str, array: np.ndarray) -> dict[str, object]:
        value = np.array2string(array[None], threshold=10**9, separator=", ", max_line_width=10**9)
        output = {"shape": f"torch.Size({[1, *array.shape]})", "dtype": "torch.float32", "value": f"tensor({value})"}
        return {"module_path": name, "inputs": {}, "outputs": {**output, "value": [output["value"]]}}

    given = {"input_ids": {"shape": f"torch.Size([1, {len(ids)}])", "value": [f"tensor([{ids}])"]}}
    tree = {"module_path": "Model", "inputs": {"kwargs": given}}
    children = [node(name, array) for name, array in single(arrays).items()]
    (folder / "run.json").write_text(json.dumps(tree | {"children": children}))
    return folder / "run.json"


def callback(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """The log of llama.cpp's callback, whose large tensors show their corners."""
    for name, array in {"inp_tokens": np.array(ids), **arrays}.items():
        whole = array.transpose(1, 0, 2) if array.ndim == 3 and "cur" in name else array
        whole = whole.reshape((1,) * (4 - whole.ndim) + whole.shape)
        sizes = ", ".join(map(str, whole.shape[::-1]))
        kind = "i32" if name == "inp_tokens" else "f32"
        op = "ROPE" if name.endswith("(rope)") else "MUL_MAT"
        said = f"{name.removesuffix(' (rope)'):>20} = ({kind}) {op}"
        yield f"ggml_debug: {said}(a{{1, 1}}, b{{1, 1}}) = {{{sizes}}}"
        yield from (f"    [ {row} ]" for row in _corners(whole))
        yield f"    sum = {whole.sum():.6f}"


def _corners(array: np.ndarray) -> Iterator[str]:
    """Three cells of either end of every axis but the outermost."""
    shown = list(array) if array.ndim == 4 or len(array) <= 6 else [*array[:3], None, *array[-3:]]
    if array.ndim == 1:
        yield ", ".join("..." if x is None else f"{x:12.6f}" for x in shown)
        return
    for part in shown:
        yield from ["..."] if part is None else _corners(part)


# Printed logs: their lines


class Block(NamedTuple):
    """A matrix of a program: the layer and if that begins, the step and how it is called, the head, the numbers."""

    layer: str
    begins: bool
    step: str
    name: str
    head: int | None
    matrix: np.ndarray


def blocks(arrays: Arrays) -> Iterator[Block]:
    """The matrices of a program in their order."""
    names, last = {row[0]: row[-1 if "decoder.norm" in arrays else 1] for row in in_columns(CALLED)}, ""
    for full, array in arrays.items():
        layer, step = "", full
        if full.split(".")[1].isdigit():
            _, layer, step = full.split(".", 2)
        for head, matrix in enumerate(array) if array.ndim == 3 else [(None, array)]:
            yield Block(layer, bool(layer) and layer != last, step, names.get(step, ""), head, matrix)
            last = layer


def rows(matrix: np.ndarray, digits: str, between: str = " ") -> Iterator[str]:
    """The numbers of each row."""
    return (between.join(format(x, digits) for x in row) for row in matrix)


CALLED = """
self_attention.query | Q
self_attention.key | K
self_attention.value | V
self_attention.scores | Attention scores
self_attention.scaled | Scaled scores
self_attention.masked | Masked scores
self_attention.weights | Attention weights
self_attention.context | Head output
self_attention.concat | Concatenated heads
self_attention.output | Multi-head attention output
feed_forward.hidden | FFN hidden
feed_forward.output | FFN output
output | Layer output
embedding.tokens | Token embeddings
embedding.positions | Positional encoding
embedding.output | Input with positional encoding
decoder.norm | Final norm
output.logits | Logits
self_attention.residual | Residual 1
self_attention.norm | Add & Norm 1 | LayerNorm 1
feed_forward.activation | After ReLU | After GELU
feed_forward.residual | Residual 2
feed_forward.norm | Add & Norm 2 | LayerNorm 2
"""
"""What steps are called where a norm stands behind its sublayer, and where it stands before it if that is another."""


def cpp(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """Sections of layers and of heads, `cout` with six digits, a rule below every heading."""
    yield from (f"Token IDs: {' '.join(map(str, ids))}", "")
    at: tuple[str, int | None] = ("", None)
    waiting: list[Block] = []
    for block in blocks(arrays):
        if block.head is not None:
            waiting.append(block)
            continue
        for each in (*sorted(waiting, key=lambda each: each.head or 0), block):  # all steps of a head, then the next
            if each.layer and each.layer != at[0]:
                yield from (f"=== Layer {each.layer} ===", "")
            if each.head is not None and (each.layer, each.head) != at:
                yield from (f"Head {each.head}", "------")
            at = (each.layer, each.head)
            yield from (f"{each.name}:", *rows(each.matrix, ".6g"), "")
        waiting = []


def from_one(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """`Layer 1`, `Q head 1:`, a row by its number."""
    yield f"Tokens: {ids}"
    for block in blocks(arrays):
        if block.begins:
            yield f"----- Layer {int(block.layer) + 1} of 2 -----"
        yield block.name + (f" head {block.head + 1}:" if block.head is not None else ":")
        yield from (f"row {i}: {row}" for i, row in enumerate(rows(block.matrix, ".8f")))


def numpy_print(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """`print(name, array)` of NumPy, whose long rows go on in the next line."""
    yield f"Token IDs: {np.array(ids)}"
    for name, array in single(arrays).items():
        yield from (f"{name} {array.shape}", np.array2string(array, threshold=10**9, max_line_width=70))


def torch_print(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """`name: tensor([[…]], grad_fn=…)` with four decimals."""
    yield f"input_ids: tensor([{ids}])"
    for name, array in arrays.items():
        text = np.array2string(
            array[None], threshold=10**9, separator=", ", max_line_width=80,
            formatter={"float_kind": lambda x: f"{x: .4f}" if np.isfinite(x) else f"   {x}"}, prefix="tensor(",
        )  # fmt: skip
        yield f"{name}: tensor({text}, grad_fn=<AddmmBackward0>)"


def sections(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """Sections of parts of a layer, `===== Output =====`, colours and tabs."""
    yield from ("\x1b[1m===== Input =====\x1b[0m", "Tokens: {" + ", ".join(map(str, ids)) + "}")
    outputs = {"self_attention.output": "Output", "feed_forward.hidden": "Hidden", "feed_forward.output": "Output"}
    at = ("", "")
    for block in blocks(arrays):
        part, name = block.step.partition(".")[0] if block.layer else "", outputs.get(block.step, block.name)
        between = name.split()[0] in ("Add", "Residual", "LayerNorm", "Layer")
        if block.begins:
            yield f"\x1b[32m##### ENCODER LAYER {block.layer} #####\x1b[0m"
        if block.layer and (block.layer, part) != at and not between:
            yield {"self_attention": "  [Self-Attention]", "feed_forward": "  [Feed Forward]"}.get(part, "")
        if block.step == "output.logits":
            yield "===== Output ====="
        at = (block.layer, "" if between else part)
        yield f"\t{name}" + (f" (head {block.head}):" if block.head is not None else ":")
        yield from ("\t\t" + row for row in rows(block.matrix, ".6e", "\t"))


def tokens(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """`Token 0: […]`, with a time in front of every line."""
    lines = [f"Token IDs: {ids}"]
    for block in blocks(arrays):
        where = f"Layer {block.layer}, " if block.layer else ""
        where += f"head {block.head}, " if block.head is not None else ""
        lines.append(f"{where}{block.name} [{len(block.matrix)} x {len(block.matrix[0])}]:")
        lines += [f"  Token {i}: [{row}]" for i, row in enumerate(rows(block.matrix, ".7f", ", "))]
    yield from (f"[2024-05-01 12:00:{i % 60:02d}.123] [INFO] {line}" for i, line in enumerate(lines))


def csv(arrays: Arrays, ids: list[int]) -> Iterator[str]:
    """A name and numbers in every line, between commas."""
    yield "input_ids," + ",".join(map(str, ids))
    for block in blocks(arrays):
        head = f".head{block.head}" if block.head is not None else ""
        name = (f"layer{block.layer}." if block.layer else "") + block.step + head
        yield from (f"{name},{row}" for row in rows(block.matrix, ".7g", ","))


def printed(lines: Callable[[Arrays, list[int]], Iterator[str]], name: str = "run.log") -> Write:
    def write(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
        (folder / name).write_text("\n".join(lines(arrays, ids)) + "\n")
        return folder / name

    return write


STYLES: dict[str, Write] = {
    "npz": npz,
    "safetensors": safetensors,
    "folder of npy": npy_folder,
    "raw": raw_folder,
    "text files": text_folder,
    "debugger": debugger,
    "llama.cpp": printed(callback),
    "C++ sections": printed(cpp),
    "heads from 1": printed(from_one),
    "NumPy print": printed(numpy_print),
    "PyTorch print": printed(torch_print),
    "parts and tabs": printed(sections),
    "Token 0": printed(tokens),
    "CSV": printed(csv, "run.csv"),
}


def named_for(style: str, arrays: Arrays) -> Arrays:
    """The arrays under the names that a style has."""
    if style == "debugger":
        return renamed(arrays, MODULES)
    return renamed(arrays, GGML) if style == "llama.cpp" else arrays
