"""Folders whose weights are in other files than safetensors: other forms are refused with the way out, plain ones read.

Plain files are NPZ, raw numbers with shapes, or CSV, as a program of one's own writes them; `WEIGHTS.md` says what such
a folder holds. As of safetensors, a tensor is read when it is asked for.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.parts import check_memory
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import is_file, read_json
from tui_transformer.model.checks import shown
from tui_transformer.model.tensors import STORED, Tensor, Tensors
from tui_transformer.model.weights_file import WeightsFile
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

WEIGHTS = "model.safetensors"
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
ADAPTER = "adapter_config.json"
ADAPTERS = (ADAPTER, "adapter_model.safetensors", "adapter_model.bin")
LARGEST = 1 << 20

_SAVE = "save them with a transformers before 5: AutoModel.from_pretrained('.', {}=True).save_pretrained('new')"
_GRAPH = "which is not read: name the folder of the model that it was exported from"
_TENSORFLOW = f"weights of TensorFlow, which are not read: {_SAVE.format('from_tf')}"
FORMS: Mapping[str, str] = {
    "*.onnx": f"a model as an ONNX graph, {_GRAPH}",
    "onnx/*.onnx": f"a model as an ONNX graph, {_GRAPH}",
    "*.h5": _TENSORFLOW,
    "*.ckpt.index": _TENSORFLOW,
    "saved_model.pb": f"a TensorFlow graph, {_GRAPH}",
    "*.tflite": f"a TensorFlow Lite graph, {_GRAPH}",
    "openvino_model.xml": f"an OpenVINO graph, {_GRAPH}",
    "*.msgpack": f"weights of Flax, which are not read: {_SAVE.format('from_flax')}",
}
"""Names of files → what such a file is."""

OTHER_HEADS = ("Classification", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "RewardModel")
"""Ends of the names of architectures whose output is no word."""


def refuse_folder(folder: Path) -> None:
    """Raise InputError, with the way out, for a folder whose weights are in a form that is not read.

    To be called where the folder lacks what a checkpoint has.
    """
    if any((folder / name).is_file() for name in ADAPTERS):
        raise InputError(_adapter(folder / ADAPTER))
    try:
        files = sorted(folder.iterdir(), key=lambda path: (not path.name.startswith("pytorch_model"), path.name))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}: choose another folder") from error
    found = (path for pattern in FORMS for path in sorted(folder.glob(pattern)))
    for path in (*(path for path in files if path.suffix in PICKLED), *found):
        refuse_file(path)


def refuse_file(path: Path) -> None:
    """Raise InputError, with the way out, for a file of a model in a form that is not read."""
    if path.name in ADAPTERS:
        raise InputError(_adapter(path.with_name(ADAPTER)))
    for pattern, what in FORMS.items():
        if path.match(pattern):
            raise InputError(f"{path}: {what}")
    if path.suffix not in PICKLED:
        return
    one = f"torch.load({path.name!r}, map_location='cpu', weights_only=True)"
    items, first = f"for k, v in {one}.items()", ""
    if "-of-" in path.stem:  # of one of many, for all of them
        one = one.replace(repr(path.name), "p")
        pattern = f"{path.stem.partition('-')[0]}-*-of-*{path.suffix}"
        items, first = f"for p in sorted(glob.glob({pattern!r})) for k, v in {one}.items()", "glob, "
    convert = f"save_file({{k: v.clone().contiguous() {items}}}, {WEIGHTS!r})"
    raise InputError(
        f"{path}: pickled weights can run code when they are read, so they are not; where you trust them, convert them "
        f"in Python in their folder: import {first}torch; from safetensors.torch import save_file; {convert}"
    )


def _adapter(path: Path) -> str:
    base = read_json(path, LARGEST).get("base_model_name_or_path") if path.is_file() else None
    of = f" for {shown(base)}" if isinstance(base, str) else ""
    merge = "AutoPeftModel.from_pretrained('.').merge_and_unload().save_pretrained('merged')"
    return (
        f"{path.parent}: an adapter (LoRA){of}, which is no model by itself: merge it in Python with the library peft, "
        f"{merge}, and name that folder"
    )


def check_architecture(raw: Mapping[str, Any]) -> None:
    """Raise UsageError where a configuration is that of a model whose output is no word."""
    named = raw.get("architectures")
    for name in named if isinstance(named, list) else ():
        if isinstance(name, str) and name.endswith(OTHER_HEADS):
            raise UsageError(
                f"{name[:80]} has a head that gives classes, which is not read: save the model below it in Python with "
                "transformers, AutoModel.from_pretrained('.').save_pretrained('new'), and name that folder"
            )


SHAPES = "shapes.json"
"""Names of raw and CSV files without their ending → the sizes of their axes; the last axis runs fastest."""

RAW: Mapping[str, str] = {".f32": "F32", ".f64": "F64", ".f16": "F16", ".bf16": "BF16"}
"""Endings of files of bare numbers, little-endian, and what those are."""

NAMED_RAW: Mapping[str, str] = {".bin": "F32", ".raw": "F32"}
"""Further ones, which count where `shapes.json` has their name: other programs call other files so."""

OF_NUMPY: Mapping[str, str] = {"<f4": "F32", "<f8": "F64", "<f2": "F16"}
"""Types of NumPy → stored types."""

LARGEST_SHAPES, LONGEST_HEADER = 1 << 24, 1 << 16
LOCAL, SIGNATURE = struct.Struct("<4s22xHH"), b"PK\x03\x04"
"""Of a member of a ZIP file: its beginning, and how long its name and what is between that and the data are."""

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def open_plain(folder: Path) -> Tensors | None:
    """The weights of a folder: of its NPZ file, else of its raw files, else of its CSV files; None without any.

    Raises:
        InputError: There are several NPZ files, or one of the files is not what it says.
    """
    packed = sorted(folder.glob("*.npz"))
    if len(packed) > 1:
        raise InputError(f"{folder}: {len(packed)} NPZ files, such as {packed[0].name}: leave the one with the weights")
    if packed:
        return open_npz(packed[0])
    shapes = _shapes(folder / SHAPES)
    files = sorted(path for path in folder.iterdir() if is_file(path))
    raw = [path for path in files if path.suffix in RAW or (path.suffix in NAMED_RAW and path.stem in shapes)]
    if raw:
        return Tensors(folder, {path.stem: _raw(path, shapes) for path in raw})
    tables = [path for path in files if path.suffix == ".csv"]
    if not tables:
        return None
    refuse_folder(folder)  # a table beside weights that are not read is no weight
    return Tensors(folder, {path.stem: _table(path, shapes) for path in tables})


def _shapes(path: Path) -> dict[str, Shape]:
    """The shapes that the file says; none where there is no file."""
    raw = read_json(path, LARGEST_SHAPES) if is_file(path) else {}
    for name, sizes in raw.items():
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise InputError(f"{path}: {shown(name)} has to be a list of sizes such as [8, 64], not {shown(sizes)}")
    return {name: tuple(sizes) for name, sizes in raw.items()}


# Raw files


def _raw(path: Path, shapes: Mapping[str, Shape]) -> Tensor:
    file, kind = WeightsFile(path), {**RAW, **NAMED_RAW}[path.suffix]
    bytes_each = STORED[kind].dtype.itemsize
    cells, rest = divmod(file.size, bytes_each)
    shape = shapes.get(path.stem, (cells,))
    if rest or math.prod(shape) != cells:
        raise InputError(f"{path}: {file.size:,} bytes are not {shape_text(shape)} numbers of {bytes_each} bytes")
    return Tensor(file, kind, shape, 0, file.size)


# NPZ


def open_npz(path: Path) -> Tensors:
    """The arrays of an NPZ file.

    Raises:
        InputError: It is none, damaged, or compressed.
    """
    file = WeightsFile(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if each.filename.endswith(".npy")]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise InputError(f"{path}: no NPZ file, or a damaged one: write it again with np.savez") from error
    return Tensors(path, {each.filename.removesuffix(".npy"): _member(file, each) for each in members})


def _member(file: WeightsFile, member: zipfile.ZipInfo) -> Tensor:
    """Where the numbers of an array lie in the file."""
    what = f"{file.path}: {visible(member.filename[:80])}"
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise InputError(f"{what} is compressed: write it with np.savez instead of np.savez_compressed")
    damaged = InputError(f"{what} is damaged, or no array: write the file again with np.savez")
    begin = file.bytes(member.header_offset, LOCAL.size) if member.header_offset >= 0 else b""
    if len(begin) < LOCAL.size or not begin.startswith(SIGNATURE):
        raise damaged
    start = member.header_offset + LOCAL.size + sum(LOCAL.unpack(begin)[1:])
    header = io.BytesIO(file.bytes(start, min(LONGEST_HEADER, member.file_size)))
    try:
        shape, turned, dtype = _HEADERS[np.lib.format.read_magic(header)](header)
    except (ValueError, KeyError, TypeError, SyntaxError, TokenError, MemoryError, RecursionError) as error:
        raise damaged from error
    data = start + header.tell()
    stop = data + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or stop > min(start + member.file_size, file.size):
        raise damaged
    return Tensor(file, OF_NUMPY.get(dtype.str, str(dtype)), shape, data, stop, turned=turned)


# CSV


@dataclass(frozen=True, eq=False)
class Table(Tensor):
    """A tensor as text: a line a row, numbers between commas, semicolons or spaces."""

    def read(self, what: str, take: Callable[[Host], Host], rows: Host | None = None) -> Host:
        """The part that is taken; the whole text is read for it."""
        del what
        taken = take(_numbers(self.file).reshape(self.shape))
        return taken if rows is None else taken[rows]


def _table(path: Path, shapes: Mapping[str, Shape]) -> Table:
    """A file of numbers; a single line or column is a vector unless `shapes.json` says otherwise."""
    file = WeightsFile(path)
    given = _numbers(file).shape
    shape = shapes.get(path.stem, given if min(given) > 1 else (math.prod(given),))
    if math.prod(shape) != math.prod(given):
        raise InputError(f"{path}: {given[0]} × {given[1]} numbers, where {SHAPES} says {shape_text(shape)}")
    return Table(file, "F64", shape, 0, file.size)


def _numbers(file: WeightsFile) -> Host:
    """The numbers of a file of text, rows × columns."""
    check_memory(32 * file.size, f"{file.path} takes", "write the weights as raw files or NPZ")
    try:
        text = file.bytes(0, file.size).decode()
        lines = [line.rstrip(" \t,;") for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            raise InputError(f"{file.path}: no numbers in it")
        between = next((sign for sign in ",;" if sign in lines[0]), None)
        return np.loadtxt(lines, dtype=np.float64, delimiter=between, ndmin=2, comments=None)
    except ValueError as error:
        raise InputError(f"{file.path}: not a table of numbers: {visible(str(error)[:200])}") from error
