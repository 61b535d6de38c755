"""Checkpoint folders: `config.json`, `model.safetensors`, and a vocabulary. Nothing is unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.engine.axis import Shape, shape_of, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.engine.weights import Reader
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import check_regular, write_whole
from tui_transformer.model.checks import shown
from tui_transformer.model.families import FAMILIES, Family, ModelConfig
from tui_transformer.model.families.base import Stored, as_it_is

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.txt"
LARGEST_CONFIG = 1 << 20
STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
"""Stored types that can be read, as NumPy names them."""


@dataclass(frozen=True, eq=False)
class TensorFile:
    """A safetensors file, mapped into memory: a tensor is read when it is asked for."""

    path: Path
    tensors: Mapping[str, tuple[str, Shape, int, int]]
    data: Host

    @property
    def names(self) -> frozenset[str]:
        """The names of all tensors."""
        return frozenset(self.tensors)

    def read(self, name: str) -> Host:
        """A tensor of the file as it is stored.

        Raises:
            InputError: It is missing, has a type that is not supported, or holds NaN or infinity.
        """
        self.shape(name)
        kind, shape, start, stop = self.tensors[name]
        # A writer need not align its data, and arithmetic on unaligned numbers is slow: those are copied.
        tensor = np.require(self.data[start:stop].view(STORED[kind]).reshape(shape), requirements="A")
        if not np.isfinite(tensor).all():
            raise InputError(
                f"{self.path}: tensor {name} holds NaN or infinity: the file is damaged or was saved badly"
            )
        return tensor

    def shape(self, name: str) -> Shape:
        """The shape of a tensor; InputError where it is missing or of a type that cannot be read."""
        if name not in self.tensors:
            raise InputError(f"{self.path}: tensor {name} is missing: the file does not fit its config.json")
        kind, shape, _, _ = self.tensors[name]
        if kind not in STORED:
            raise InputError(f"{self.path}: tensor {name} is stored as {kind}: only {', '.join(STORED)} can be read")
        return shape


def reader(tensors: TensorFile, family: Family, config: ModelConfig, program: Program) -> Reader:
    """Gives the weights of a program from a file.

    Raises:
        InputError: The file lacks a weight, or has one in another shape or type; at once, before anything is read.
    """
    names = tensors.names
    places = {name: _place(family, config, name, names) for name in program.weights}
    for name, axes in program.weights.items():
        _check_shape(tensors, places[name], shape_of(axes))
    return lambda name, _: places[name].take(tensors.read(places[name].name))


def _place(family: Family, config: ModelConfig, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is: under its own name, as this program saves it, or where the family has it."""
    return Stored(name) if name in names else family.stored(config, name, names)


def _check_shape(tensors: TensorFile, place: Stored, shape: Shape) -> None:
    """Raise InputError unless a tensor gives a weight of this shape."""
    stored = tensors.shape(place.name)
    try:
        found = place.take(np.broadcast_to(np.float32(0.0), stored)).shape
    except (ValueError, IndexError):
        found = ()
    if found != shape:
        made = "" if place.take is as_it_is else f", which gives {shape_text(found)}" if found else ""
        wrong = f"tensor {place.name} is {shape_text(stored)}{made}"
        raise InputError(f"{tensors.path}: {wrong}, but config.json says {shape_text(shape)}")


def open_tensors(path: Path) -> TensorFile:
    """Map a safetensors file; its header is checked, its tensors are not read.

    Raises:
        InputError: The file is missing, cut, or not what it says.
    """
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        with safe_open(path, framework="np"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: not a whole safetensors file ({_reason(error)}): copy it again") from error
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + length].tobytes())
    header.pop("__metadata__", None)
    start = 8 + length
    tensors = {
        name: (entry["dtype"], tuple(entry["shape"]), *(start + offset for offset in entry["data_offsets"]))
        for name, entry in header.items()
    }
    return TensorFile(path, tensors, data)


def read_config(folder: Path) -> tuple[Family, ModelConfig]:
    """The family and configuration of a checkpoint folder.

    Raises:
        InputError: No folder, no config, not JSON, or a configuration that cannot be.
    """
    path = folder / CONFIG
    raw = _json(path)
    kind = raw.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise InputError(f"{path}: model_type {shown(kind)} is not supported: {', '.join(FAMILIES)} are")
    try:
        return FAMILIES[kind], FAMILIES[kind].read(raw)
    except UsageError as error:
        raise InputError(f"{path}: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    check_regular(path)
    if path.stat().st_size > LARGEST_CONFIG:
        raise InputError(f"{path}: larger than a configuration can be: is it the right file?")
    try:
        raw = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {_reason(error)}") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: not a JSON object: a configuration is {{…}}")
    return raw


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def save(folder: Path, config: ModelConfig, weights: Mapping[str, Host], words: tuple[str, ...] = ()) -> None:
    """Write a checkpoint folder; each file appears whole or not at all.

    Raises:
        InputError: The folder cannot be written.
    """
    from safetensors.numpy import save as encode

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    write_whole(folder / WEIGHTS, encode({name: np.ascontiguousarray(array) for name, array in weights.items()}))
    if words:
        write_whole(folder / VOCABULARY, ("\n".join(words) + "\n").encode())
    write_whole(folder / CONFIG, (json.dumps(config.to_json(), indent=2) + "\n").encode())
