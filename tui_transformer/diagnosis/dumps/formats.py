"""Formats of dumps, of NumPy, safetensors, folders and tools; InputError is raised for a file that is damaged."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from tui_transformer.diagnosis.dumps import npz_reader
from tui_transformer.diagnosis.dumps.dump import WHOLE, Digits, Dump, Tensor, Values, held, precision_of, stored_values
from tui_transformer.diagnosis.dumps.log import MOST, log_of, matrix_of, text_lines
from tui_transformer.diagnosis.dumps.numbers import ELIDED, NUMBER, Matrix, Printed, with_precision
from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, is_file, is_folder, read_json
from tui_transformer.model import tensors as weight_files
from tui_transformer.text.display import visible
from tui_transformer.text.files import shown_path

BEGIN = 2_000
"""Lines of a text in which the log of a callback is looked for."""

PICKLED = frozenset({".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib"})


def open_dump(path: Path) -> Dump:
    """The arrays of a file or folder, whatever its format.

    Raises:
        InputError: There is no such file, or its format is not known, or it is damaged.
    """
    if is_folder(path):
        return read_folder(path)
    check_regular(path)
    if path.suffix in PICKLED and not (path.suffix in RAW and not _is_pickled(path)):
        raise InputError(
            f"{shown_path(path)}: reading it can run code, so it is not read: where you trust it, convert it with two "
            "lines of Python: `import torch; from safetensors.torch import save_file` and "
            f"`save_file({{k: v.clone().contiguous() for k, v in torch.load({path.name!r}, map_location='cpu', "
            f"weights_only=True).items()}}, {f'{path.stem}.safetensors'!r})`"
        )
    if reader := READERS.get(path.suffix.lower()):
        return reader(path)
    if any(_header(line.text) for line in islice(text_lines(path), BEGIN)):
        return callback_log(path, (line.text for line in text_lines(path)))
    return log_of(path, text_lines(path))  # matrices under headings


def _is_pickled(path: Path) -> bool:
    """True if a file begins as pickle or PyTorch write it, and not with a number."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError:
        return False
    return begin[:2] == b"PK" or (begin[:1] == b"\x80" and begin[1:2] <= b"\x05" and begin[2:3] in b"}](ctX\x8a\x95")


def read_npz(path: Path) -> Dump:
    """The arrays of an NPZ file; where some begin with `value/`, gradients are left out."""
    file = npz_reader.open_trace(path)
    tensors, refused = dict[str, Tensor](), dict[str, str]()

    def read(name: str) -> Values:
        return stored_values(file.read(name))

    for name in filter(None, (each.removeprefix(npz_reader.VALUE) for each in file.entries)):
        tensor = partial(Tensor, name, read=partial(read, name))
        try:
            tensors[name] = tensor(shape=file.shape(name))
        except InputError as error:
            reason = str(error).rpartition(f"{visible(name)}: ")[2]
            if npz_reader.TEXT in reason:
                tensors[name] = tensor(shape=(), numbers=False)  # which is left alone
            else:
                refused[name] = reason
    if refused and not tensors:
        name, reason = next(iter(refused.items()))
        raise InputError(f"{shown_path(path)}: {visible(name)}: {reason}")
    return Dump(path, tensors, refused=refused)


def npy_tensor(path: Path) -> Tensor:
    """An NPY file as a tensor of its name."""

    @contextmanager
    def opened() -> Iterator[tuple[IO[bytes], npz_reader.Header]]:
        check_regular(path)
        with npz_reader.readable_as("NPY", shown_path(path)), path.open("rb") as file:
            yield file, npz_reader.header_of(file, path.stat().st_size, shown_path(path))

    with opened() as (_, first):
        shape = first.shape

    def read() -> Values:
        with opened() as (file, header):
            if header.shape != shape:
                raise InputError(f"{shown_path(path)}: was written to while it was read: write it again")
            return stored_values(npz_reader.numbers(file, header, shown_path(path)))

    return Tensor(path.stem, shape, read)


KINDS = {
    **{f"F{bits}": f"<f{bits // 8}" for bits in (64, 32, 16)},
    "BF16": "V2",
    **{f"I{bits}": f"<i{bits // 8}" for bits in (64, 32, 16, 8)},
    "U8": "u1",
    "BOOL": "?",
}
"""Stored types that can be read, and under which NumPy reads them."""

RAW = {f".{kind.lower()}": KINDS[kind] for kind in ("F64", "F32", "F16", "BF16", "I64", "I32")}
RAW |= {".bin": KINDS["F32"], ".raw": KINDS["F32"]}
"""Endings of files of bare numbers, little-endian, and what those are."""


def read_safetensors(path: Path) -> Dump:
    """The tensors of a file, in the order in which they lie there."""
    stored = sorted(weight_files.open_file(path).by_name.items(), key=lambda each: each[1].start)
    return Dump(path, {name: Tensor(name, each.shape, partial(_read_stored, name, each)) for name, each in stored})


def _read_stored(name: str, tensor: weight_files.Tensor) -> Values:
    if tensor.kind not in KINDS:
        raise InputError(f"{tensor.path}: {visible(name)} is stored as {tensor.kind}: only {', '.join(KINDS)} are read")
    try:
        with tensor.path.open("rb") as file:
            file.seek(tensor.start)
            data = file.read(tensor.stop - tensor.start)
    except OSError as error:
        raise InputError(f"{tensor.path}: cannot be read: {error.strerror}") from error
    if len(data) != tensor.stop - tensor.start:
        raise InputError(f"{tensor.path}: has become shorter while it was read: write it again")
    return stored_values(np.frombuffer(data, KINDS[tensor.kind]).reshape(tensor.shape))


TEXT = frozenset({".txt", ".csv", ".tsv", ".dat", ".out", ".mat", ".log", ""})
LARGEST_SHAPES = 1 << 24


def read_folder(path: Path) -> Dump:
    """A tensor for every file of a folder whose ending is known; InputError where there is none."""

    def in_order(file: Path) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.name)]

    files = sorted((file for file in path.iterdir() if file.is_file()), key=in_order)
    tensors = {file.stem: npy_tensor(file) for file in files if file.suffix == ".npy"}
    tensors |= _raw_tensors([file for file in files if file.suffix in RAW], files)
    texts = {file.stem: matrix_of(file) for file in files if file.suffix in TEXT and not file.name.startswith(".")}
    tensors |= with_precision({name: each for name, each in texts.items() if isinstance(each, Printed)})
    refused = {name: each for name, each in texts.items() if isinstance(each, str)}
    if not tensors:
        raise InputError(
            f"{shown_path(path)}: no array is in this folder: name.npy, name.f32 or name.txt, a file a step"
        )
    return Dump(path, tensors, refused=refused)


def read_raw(path: Path) -> Dump:
    """One file of bare numbers, with its shape where a JSON file beside it says it."""
    beside = [file for file in (path.with_name("shapes.json"), path.with_suffix(".json")) if is_file(file)]
    return Dump(path, _raw_tensors([path], beside))


def is_dump_folder(path: Path) -> bool:
    """True if a folder holds arrays and not a checkpoint."""
    try:
        names = [file.name for file in path.iterdir()]
    except OSError:
        return False
    checkpoint = "config.json" in names or any(name.endswith((".safetensors", ".gguf")) for name in names)
    return not checkpoint and any(Path(name).suffix in (".npy", *RAW, ".txt", ".csv") for name in names)


def _raw_tensors(files: list[Path], beside: list[Path]) -> dict[str, Tensor]:
    """Files of bare numbers; their shapes are in JSON files, which may be of ggml (`ne`): the fastest axis first."""
    shapes, fastest_first = dict[str, Shape](), False
    for file in beside:
        if file.suffix == ".json":
            raw = read_json(file, LARGEST_SHAPES)
            alone = raw.get("shape", raw.get("ne"))
            entries = {file.stem: raw} if isinstance(alone, list) else raw.get("shapes", raw)
            for name, entry in entries.items() if isinstance(entries, dict) else ():
                sizes = entry.get("shape", entry.get("ne")) if isinstance(entry, dict) else entry
                fastest_first |= isinstance(entry, dict) and "ne" in entry
                if isinstance(sizes, list) and all(isinstance(size, int) and size >= 0 for size in sizes):
                    bare = name.rpartition(".")[0] if name.endswith(tuple(RAW)) else name
                    shapes[bare] = tuple(sizes)
    return {file.stem: _raw(file, shapes.get(file.stem), fastest_first=fastest_first) for file in files}


def _raw(file: Path, stated: Shape | None, *, fastest_first: bool) -> Tensor:
    dtype = np.dtype(RAW[file.suffix])
    cells, rest = divmod(file.stat().st_size, dtype.itemsize)
    shape = (cells,) if stated is None else stated
    if rest or math.prod(shape) != cells:
        said = f"{file.stat().st_size:,} bytes are not {shape_text(shape)} numbers of {dtype.itemsize} bytes"
        raise InputError(f"{shown_path(file)}: {said}")

    def read() -> Values:
        try:
            return stored_values(np.fromfile(file, dtype=dtype).reshape(shape))
        except (OSError, ValueError) as error:
            raise InputError(f"{shown_path(file)}: was cut or written to while it was read: write it again") from error

    known = stated is not None
    return Tensor(file.stem, shape, read, fastest_first=fastest_first and known, shapeless=not known)


# What tools write

LARGEST_TREE = 1 << 26
LONGEST_SHAPE = 200
"""Letters of a shape that are looked at."""

TREE = "module_path"
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "decoder_input_ids", "labels", "position_ids")


def read_debugger(path: Path) -> Dump:
    """The outputs of the modules whose values are there whole, under the paths of the modules."""
    tree = read_json(path, LARGEST_TREE)
    if TREE not in tree:
        raise InputError(f"{shown_path(path)}: not a dump that is known: its JSON has no {TREE}")
    tensors, cut = dict[str, Tensor](), dict[str, str]()
    for name, node in _nodes(tree):
        tensor = _whole_tensor(path, name, node)
        if tensor is None:
            cut[name] = ELIDED
        else:
            tensors.setdefault(name, tensor)
    if not tensors:
        raise InputError(
            f"{shown_path(path)}: shows only the corners of its arrays: write them whole, with "
            "model_addition_debugger_context(model, debug_path=…, do_prune_layers=False, use_repr=False)"
        )
    return Dump(path, tensors, refused=cut)


def _nodes(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every array with its name: what the whole model was given, and what left each module."""
    inputs, outputs = tree.get("inputs"), tree.get("outputs")
    given = inputs.get("kwargs") if isinstance(inputs, dict) else None
    for name in INPUTS:
        if isinstance(given, dict) and _is_array(given.get(name)):
            yield name, given[name]
    for key, value in outputs.items() if isinstance(outputs, dict) and not _is_array(outputs) else ():
        yield from _arrays(str(key), value)
    waiting: list[Any] = [{**tree, "outputs": None}]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from _arrays(str(node.get(TREE, "")), node.get("outputs"))
            children = node.get("children")
            waiting += children[::-1] if isinstance(children, list) else []


def _arrays(name: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An array, or those of a tuple: the first under the name itself."""
    if _is_array(value):
        yield name, value
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _arrays(name if i == 0 and len(value) == 1 else f"{name}.{i}", part)


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and "shape" in value and "value" in value


def _whole_tensor(path: Path, name: str, node: Mapping[str, Any]) -> Tensor | None:
    """An array, which may lie in a file of the dump's folder; None where it is not whole."""
    value, shape = node["value"], tuple(int(size) for size in re.findall(r"\d+", str(node["shape"])[:LONGEST_SHAPE]))
    if isinstance(value, str):
        try:
            file = (path.parent / value).resolve()
            inside = path.parent.resolve() in file.parents
        except (OSError, ValueError):
            return None
        data = read_safetensors(file).tensors.get("data") if inside and is_file(file) else None
        return None if data is None else Tensor(name, data.shape, data.read)
    text = " ".join(map(str, value)) if isinstance(value, list) else ""
    text = re.sub(r"tensor\(|,\s*(?:dtype|device|grad_fn)=.*", " ", text)
    words = NUMBER.findall(re.sub(r"[\[\](),]", " ", text))
    if "..." in text or len(words) != math.prod(shape):
        return None
    return held(name, np.array([float(word) for word in words]).reshape(shape), precision_of(Digits().add(words)))


HEADER = re.compile(
    r"(?P<name>[^\s:=](?:[^=\n]*?\S)?)\s+=\s+\((?P<type>\w+)\)\s+(?P<op>[A-Z_0-9]+)\b.*=\s+"
    r"\{\s*(?P<ne>\d+(?:,\s*\d+){0,3})\s*\}\s*$"
)
"""`ggml_debug:   Qcur-0 = (f32)  MUL_MAT(…) = {64, 5, 1, 1}`: sizes, the axis that runs fastest first."""

MOVED = re.compile(r"\((?:view|reshaped|permuted|cont|copy of.*|transposed)\)")
LONGEST = 1 << 10
"""Characters of a header; a row of numbers may have many more, and is not searched for one."""

MOST_CELLS = 1 << 26
"""Numbers of a tensor that shows its corners."""

PUNCTUATION = str.maketrans("[],", "   ")
SHOWN = 3
"""So many cells of either end of an axis are printed where there are more than twice as many."""


def _header(line: str) -> re.Match[str] | None:
    return HEADER.search(line) if len(line) <= LONGEST and " = (" in line and line.rstrip().endswith("}") else None


def callback_log(path: Path, lines: Iterable[str]) -> Dump:
    """The tensors of a log; of those that were made in several steps, the last."""
    tensors, refused = dict[str, Tensor](), dict[str, str]()
    for header, body in _parts(lines):
        if len(tensors) + len(refused) >= MOST:
            raise InputError(f"{shown_path(path)}: more than {MOST:,} tensors: print fewer")
        name = re.sub(r"^\S*(?:debug|eval)\S*:\s*", "", header["name"]).strip()
        if MOVED.search(name) or not body:
            continue  # a view of another, or without numbers
        turned = f"{name} (rope)" if header["op"] == "ROPE" else name
        tensor = _tensor(turned, header, body)
        if isinstance(tensor, str):
            refused[name] = tensor
        else:
            tensors[turned] = tensor
    if not tensors:
        said = "; ".join(f"{visible(name)}: {reason}" for name, reason in islice(refused.items(), 1))
        raise InputError(f"{shown_path(path)}: {said or 'no tensor of this log has numbers: was it cut?'}")
    return Dump(path, tensors, refused={name: reason for name, reason in refused.items() if name not in tensors})


def _parts(lines: Iterable[str]) -> Iterator[tuple[re.Match[str], Matrix]]:
    header, body = None, Matrix()
    for line in lines:
        match = _header(line)
        if match is None:
            if header is not None and "sum" not in line:
                body.hold(NUMBER.findall(line.translate(PUNCTUATION).replace("...", " ")))
            continue
        if header is not None:
            yield header, body
        header, body = match, Matrix(body.looked)
    if header is not None:
        yield header, body


def _tensor(name: str, header: re.Match[str], body: Matrix) -> Tensor | str:
    """A tensor, of which the corners may be shown alone; why it cannot be read, where it cannot."""
    shape = tuple(int(size) for size in reversed(header["ne"].split(",")))
    ends = ([*range(SHOWN), *range(size - SHOWN, size)] for size in shape)  # of the outermost axis all are printed
    shown = [
        list(range(size)) if i == 0 or size <= 2 * SHOWN else end
        for i, (size, end) in enumerate(zip(shape, ends, strict=True))
    ]
    if len(body.values) != math.prod(map(len, shown)):
        return f"has {len(body.values)} numbers, where its sizes say {math.prod(map(len, shown))}"
    if math.prod(shape) > MOST_CELLS:
        return f"is of {math.prod(shape):,} numbers, of which its corners are shown: more than are compared"
    precision = WHOLE if header["type"].startswith("i") else precision_of(body.digits)

    def read() -> Values:
        array, known = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
        at = np.ix_(*shown)
        array[at], known[at] = np.reshape(body.values, [len(places) for places in shown]), True
        return Values(array, precision, None if known.all() else known)

    return Tensor(name, shape, read)


READERS: Mapping[str, Callable[[Path], Dump]] = {
    ".npz": read_npz,
    ".npy": lambda path: Dump(path, {path.stem: npy_tensor(path)}),
    ".safetensors": read_safetensors,
    ".json": read_debugger,
    **dict.fromkeys(RAW, read_raw),
}
"""By the ending of the file; anything else is a text."""
