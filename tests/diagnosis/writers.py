"""Arrays of a program in the styles in which people write them, a function a style."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from dumping import GGML, MODULES, merged, renamed
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


def callback(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """The log of llama.cpp's callback, whose large tensors show their corners."""
    lines = []
    for name, array in {"inp_tokens": np.array(ids), **arrays}.items():
        whole = array.transpose(1, 0, 2) if array.ndim == 3 and "cur" in name else array
        whole = whole.reshape((1,) * (4 - whole.ndim) + whole.shape)
        sizes = ", ".join(map(str, whole.shape[::-1]))
        kind = "i32" if name == "inp_tokens" else "f32"
        op = "ROPE" if name.endswith("(rope)") else "MUL_MAT"
        lines.append(
            f"ggml_debug: {name.removesuffix(' (rope)'):>20} = ({kind}) {op}(a{{1, 1}}, b{{1, 1}}) = {{{sizes}}}"
        )
        lines += [f"    [ {row} ]" for row in _corners(whole)]
        lines.append(f"    sum = {whole.sum():.6f}")
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    return folder / "run.log"


def _corners(array: np.ndarray) -> Iterator[str]:
    """Three cells of either end of every axis but the outermost."""
    shown = list(array) if array.ndim == 4 or len(array) <= 6 else [*array[:3], None, *array[-3:]]
    if array.ndim == 1:
        yield ", ".join("..." if x is None else f"{x:12.6f}" for x in shown)
        return
    for part in shown:
        yield from ["..."] if part is None else _corners(part)


# Printed logs


def blocks(arrays: Arrays) -> Iterator[tuple[str, str, int | None, np.ndarray]]:
    """The matrices of a program in their order: the layer, the step, the head, and the numbers."""
    for name, array in arrays.items():
        place, _, step = name.partition(".")
        layer = ""
        if place in ("encoder", "decoder") and step.partition(".")[0].isdigit():
            layer, _, step = step.partition(".")
        for head, matrix in enumerate(array) if array.ndim == 3 else [(None, array)]:
            yield layer, step if layer else name, head, matrix


CPP = {
    "self_attention.query": "Q",
    "self_attention.key": "K",
    "self_attention.value": "V",
    "self_attention.scores": "Attention scores",
    "self_attention.scaled": "Scaled scores",
    "self_attention.masked": "Masked scores",
    "self_attention.weights": "Attention weights",
    "self_attention.context": "Head output",
    "self_attention.concat": "Concatenated heads",
    "self_attention.output": "Multi-head attention output",
    "feed_forward.hidden": "FFN hidden",
    "feed_forward.output": "FFN output",
    "output": "Layer output",
    "embedding.tokens": "Token embeddings",
    "embedding.positions": "Positional encoding",
    "embedding.output": "Input with positional encoding",
    "decoder.norm": "Final norm",
    "output.logits": "Logits",
}
POST = {
    "self_attention.residual": "Residual 1",
    "self_attention.norm": "Add & Norm 1",
    "feed_forward.activation": "After ReLU",
    "feed_forward.residual": "Residual 2",
    "feed_forward.norm": "Add & Norm 2",
}
PRE = {
    "self_attention.norm": "LayerNorm 1",
    "self_attention.residual": "Residual 1",
    "feed_forward.norm": "LayerNorm 2",
    "feed_forward.activation": "After GELU",
    "feed_forward.residual": "Residual 2",
}


def cpp(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Sections of layers and of heads, `cout` with six digits, a rule below every heading."""
    names, lines, at = _names(arrays), [f"Token IDs: {' '.join(map(str, ids))}", ""], ("", None)
    by_head: list[tuple[str, str, int | None, np.ndarray]] = list(_head_by_head(arrays))
    for layer, step, head, matrix in by_head:
        if layer and layer != at[0]:
            lines += [f"=== Layer {layer} ===", ""]
        if head is not None and (layer, head) != at:
            lines += [f"Head {head}", "------"]
        at = (layer, head)
        lines += [f"{names[step]}:", *(" ".join(f"{x:.6g}" for x in row) for row in matrix), ""]
    return _written(folder, lines)


def from_one(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`Layer 1`, `Q head 1:`, a row by its number."""
    names, lines, last = _names(arrays), [f"Tokens: {ids}"], ""
    for layer, step, head, matrix in blocks(arrays):
        if layer != last and layer:
            lines.append(f"----- Layer {int(layer) + 1} of 2 -----")
        last = layer
        lines.append(names[step] + (f" head {head + 1}:" if head is not None else ":"))
        lines += [f"row {i}: " + " ".join(f"{x:.8f}" for x in row) for i, row in enumerate(matrix)]
    return _written(folder, lines)


def numpy_print(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`print(name, array)` of NumPy, whose long rows go on in the next line."""
    lines = [f"Token IDs: {np.array(ids)}"]
    for name, array in single(arrays).items():
        lines += [f"{name} {array.shape}", np.array2string(array, threshold=10**9, max_line_width=70)]
    return _written(folder, lines)


def torch_print(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`name: tensor([[…]], grad_fn=…)` with four decimals."""
    lines = [f"input_ids: tensor([{ids}])"]
    for name, array in arrays.items():
        text = np.array2string(
            array[None], threshold=10**9, separator=", ", max_line_width=80,
            formatter={"float_kind": lambda x: f"{x: .4f}" if np.isfinite(x) else f"   {x}"}, prefix="tensor(",
        )  # fmt: skip
        lines.append(f"{name}: tensor({text}, grad_fn=<AddmmBackward0>)")
    return _written(folder, lines)


def sections(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Sections of parts of a layer, `===== Output =====`, colours and tabs."""
    names = _names(arrays) | {
        "self_attention.output": "Output",
        "feed_forward.hidden": "Hidden",
        "feed_forward.output": "Output",
    }
    lines, at = ["\x1b[1m===== Input =====\x1b[0m", "Tokens: {" + ", ".join(map(str, ids)) + "}"], ("", "")
    for layer, step, head, matrix in blocks(arrays):
        part = step.partition(".")[0] if layer else ""
        if layer and layer != at[0]:
            lines.append(f"\x1b[32m##### ENCODER LAYER {layer} #####\x1b[0m")
        if layer and (layer, part) != at and names[step].split()[0] not in ("Add", "Residual", "LayerNorm", "Layer"):
            lines.append({"self_attention": "  [Self-Attention]", "feed_forward": "  [Feed Forward]"}.get(part, ""))
        if step == "output.logits":
            lines.append("===== Output =====")
        at = (layer, part) if names[step].split()[0] not in ("Residual", "Add", "LayerNorm", "Layer") else (layer, "")
        lines.append(f"\t{names[step]}" + (f" (head {head}):" if head is not None else ":"))
        lines += ["\t\t" + "\t".join(f"{x:.6e}" for x in row) for row in matrix]
    return _written(folder, lines)


def tokens(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`Token 0: […]`, with a time in front of every line."""
    names, lines = _names(arrays), [f"Token IDs: {ids}"]
    for layer, step, head, matrix in blocks(arrays):
        where = f"Layer {layer}, " if layer else ""
        where += f"head {head}, " if head is not None else ""
        lines.append(f"{where}{names[step]} [{len(matrix)} x {len(matrix[0])}]:")
        lines += [f"  Token {i}: [{', '.join(f'{x:.7f}' for x in row)}]" for i, row in enumerate(matrix)]
    return _written(folder, [f"[2024-05-01 12:00:{i % 60:02d}.123] [INFO] {line}" for i, line in enumerate(lines)])


def csv(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """A name and numbers in every line, between commas."""
    lines = ["input_ids," + ",".join(map(str, ids))]
    for layer, step, head, matrix in blocks(arrays):
        name = (f"layer{layer}." if layer else "") + step + (f".head{head}" if head is not None else "")
        lines += [name + "," + ",".join(f"{x:.7g}" for x in row) for row in matrix]
    (folder / "run.csv").write_text("\n".join(lines) + "\n")
    return folder / "run.csv"


def libtorch(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`std::cout << tensor`: wide matrices in parts of their columns, small or large numbers under a factor."""
    lines = [f"Token IDs: {ids}"]
    for name, array in single(arrays).items():
        lines.append(f"{name}:")
        for i, matrix in enumerate(array if array.ndim == 3 else [array]):
            lines += [f"({i + 1},.,.) = "] if array.ndim == 3 else []
            lines += [*_in_parts(matrix, "Columns {} to {}", 9, below=False), ""]
        lines.append(f"[ CPUFloatType{{{','.join(map(str, array.shape))}}} ]")
    return _written(folder, lines)


def octave(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`Q` without a semicolon: `Columns 1 through 8:`, a page for each head."""
    lines = ["token_ids =", "", "   " + "   ".join(map(str, ids)), ""]
    for name, array in arrays.items():
        lines += [f"{name} =", ""]
        for i, matrix in enumerate(array if array.ndim == 3 else [array]):
            lines += [f"ans(:,:,{i + 1}) =", ""] if array.ndim == 3 else []
            lines += [*_in_parts(matrix, " Columns {} through {}:\n", 8, below=True), ""]
    return _written(folder, lines)


def _in_parts(matrix: np.ndarray, title: str, width: int, *, below: bool) -> Iterator[str]:
    """A matrix as parts of its columns, divided by a factor where its numbers are all small or some large."""
    largest = np.abs(matrix[np.isfinite(matrix)]).max(initial=0)
    exponent = int(np.floor(np.log10(largest))) if largest else 0
    scale = 10.0**exponent if exponent < -1 or exponent > 3 else 1.0
    for start in range(0, matrix.shape[1], width):
        part = matrix[:, start : start + width]
        rows = [" ".join(f"{x / scale:8.5f}" for x in row) for row in part]
        said = title.format(start + 1, start + part.shape[1]) if matrix.shape[1] > width else ""
        factor = [] if scale == 1 else [f"{scale:g} *"]
        if below:
            yield from ["", said, *(f"  {each}\n" for each in factor), *rows]
        elif factor:
            yield from [f"{said} {factor[0]}", *rows, ""]
        else:
            yield from [f"{said} {rows[0]}", *rows[1:], ""]


def commas(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Six decimals in a locale that has a comma for the point."""
    names, lines, last = _names(arrays), [f"Token IDs: {' '.join(map(str, ids))}"], ""
    for layer, step, head, matrix in blocks(arrays):
        lines += [f"Layer {layer}"] if layer != last and layer else []
        last = layer
        lines.append(names[step] + (f" head {head}:" if head is not None else ":"))
        lines += ["; ".join(f"{x:.6f}" for x in row).replace(".", ",") for row in matrix]
    return _written(folder, lines)


def within_layers(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """A batch of two sentences, each under its number below every step of every layer."""
    names, last = _names(arrays), ""
    lines = [line for i in (1, 2) for line in (f"Sentence {i}:", f"Token IDs: {' '.join(map(str, ids))}")]
    for layer, step, head, matrix in blocks(arrays):
        lines += [f"=== Layer {layer} ==="] if layer != last and layer else []
        last = layer
        lines.append(f"{names[step]}" + (f" (head {head}):" if head is not None else ":"))
        for i in (1, 2):
            lines += [f"  Sentence {i}", *("    " + " ".join(f"{x:.8g}" for x in row) for row in matrix)]
    return _written(folder, lines)


def julia(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`display(Q)` of Julia, a page for each head."""
    lines = ["token_ids = " + str(ids)]
    for name, array in single(arrays).items():
        kind = "Matrix{Float32}" if array.ndim == 2 else "Array{Float32, 3}"
        lines.append(f"{name} = {'×'.join(map(str, array.shape[-2:] + array.shape[:-2]))} {kind}:")
        for i, matrix in enumerate(array if array.ndim == 3 else [array]):
            lines += [f"[:, :, {i + 1}] ="] if array.ndim == 3 else []
            lines += [*("  " + "  ".join(str(x).replace("inf", "Inf") for x in row) for row in matrix), ""]
    return _written(folder, lines)


def rust(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """`dbg!` of ndarray's arrays."""
    lines = [f"[src/main.rs:1:5] token_ids = {ids}"]
    for name, array in single(arrays).items():
        sizes = [array.shape, array.shape]
        text = np.array2string(array, threshold=10**9, separator=", ", max_line_width=10**9)
        lines.append(
            f"[src/main.rs:7:9] &{name} = {text}, shape={list(sizes[0])}, strides={list(sizes[1])}, layout=Cc (0x5), "
            f"const ndim={array.ndim}"
        )
    return _written(folder, lines)


def lists(folder: Path, arrays: Arrays, ids: list[int]) -> Path:
    """Lines of JSON, a name and lists in each."""
    lines = [json.dumps({"name": "token_ids", "values": ids})]
    lines += [json.dumps({"name": name, "values": array.tolist()}) for name, array in single(arrays).items()]
    (folder / "run.jsonl").write_text("\n".join(lines).replace("Infinity", "inf").replace("NaN", "nan") + "\n")
    return folder / "run.jsonl"


def _names(arrays: Arrays) -> dict[str, str]:
    return CPP | (PRE if "decoder.norm" in arrays else POST)


def _head_by_head(arrays: Arrays) -> Iterator[tuple[str, str, int | None, np.ndarray]]:
    """All steps of a head, before those of the next."""
    waiting: list[tuple[str, str, int | None, np.ndarray]] = []
    for block in blocks(arrays):
        if block[2] is None:
            yield from sorted(waiting, key=lambda each: each[2] or 0)
            waiting = []
            yield block
        else:
            waiting.append(block)
    yield from sorted(waiting, key=lambda each: each[2] or 0)


def _written(folder: Path, lines: list[str]) -> Path:
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    return folder / "run.log"


STYLES: dict[str, Write] = {
    "npz": npz,
    "safetensors": safetensors,
    "folder of npy": npy_folder,
    "raw": raw_folder,
    "text files": text_folder,
    "debugger": debugger,
    "llama.cpp": callback,
    "C++ sections": cpp,
    "heads from 1": from_one,
    "NumPy print": numpy_print,
    "PyTorch print": torch_print,
    "parts and tabs": sections,
    "Token 0": tokens,
    "CSV": csv,
    "libtorch": libtorch,
    "Octave": octave,
    "decimal commas": commas,
    "sentences in layers": within_layers,
    "Julia": julia,
    "ndarray": rust,
    "lines of JSON": lists,
}


def named_for(style: str, arrays: Arrays) -> Arrays:
    """The arrays under the names that a style has."""
    if style == "debugger":
        return renamed(arrays, MODULES)
    return renamed(arrays, GGML) if style == "llama.cpp" else arrays
