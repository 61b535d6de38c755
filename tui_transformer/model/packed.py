"""Checkpoints whose weights are quantized: FP8, MXFP4, NVFP4, GPTQ, AWQ and whole numbers of compressed-tensors.

`quantization_config` says how; the tensors that belong together make a weight again when it is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model.checks import shown
from tui_transformer.model.packed_formats import (
    ALL,
    INT8,
    MXFP4,
    MXFP4_OF_GPT_OSS,
    NVFP4,
    NVFP4_OF_MODELOPT,
    Format,
    MisfitError,
    awq,
    fp8,
    gptq,
    packed_integers,
    small_floats,
)
from tui_transformer.model.tensors import STORED, Kind, Tensor, Tensors, part_of
from tui_transformer.records import dataclass, replace

Settings = Mapping[str, Any]
READ: Mapping[str, Kind] = {
    **STORED,
    "U8": Kind(np.dtype("u1")),
    "I8": Kind(np.dtype("i1")),
    "I16": Kind(np.dtype("<i2")),
    "I32": Kind(np.dtype("<i4")),
    "I64": Kind(np.dtype("<i8")),
    "F8_E4M3": Kind(np.dtype("u1"), lambda codes: small_floats("float8_e4m3fn")[codes]),
    "F8_E5M2": Kind(np.dtype("u1"), lambda codes: small_floats("float8_e5m2")[codes]),
    "F8_E8M0": Kind(np.dtype("u1"), lambda codes: small_floats("float8_e8m0fnu")[codes]),
}
"""Stored types that the tensors of a weight may have: whole numbers stay as they are."""

LEFT_ALONE = (".weight_g_idx", ".pre_quant_scale")
"""Ends of tensors that change what is computed, and are not read."""


# What the configuration says


def _one_of(said: Settings, key: str, usual: Any, known: Sequence[Any]) -> Any:
    """A setting of the quantization; UsageError for one that is not read."""
    value = said.get(key, usual)
    if value not in known or isinstance(value, bool | float):
        raise UsageError(f"quantization_config: {key} {shown(value)} is not read: {', '.join(map(str, known))} are")
    return value


def _fp8(said: Settings) -> tuple[Format, ...]:
    block = said.get("weight_block_size")
    sizes = isinstance(block, list) and len(block) == 2 and all(type(size) is int and size > 0 for size in block)
    if block is not None and not sizes:
        raise UsageError(f"quantization_config: weight_block_size {shown(block)} is not two sizes")
    given = None if block is None else (block[0], block[1])
    return fp8(".weight_scale_inv", given), fp8(".weight_scale", given)


def _gptq(said: Settings) -> tuple[Format, ...]:
    bits, group = _one_of(said, "bits", None, (2, 4, 8)), _group(said, "group_size", 128)
    kind = _one_of(said, "checkpoint_format", "gptq", ("gptq", "gptq_v2"))
    return (gptq(bits, group, less_one=kind == "gptq"),)


def _group(said: Settings, key: str, usual: int | None) -> int | None:
    """The inputs that share a scale: −1 for all, None where nothing is said."""
    group = said.get(key, usual)
    if key in said and (type(group) is not int or (group < 1 and group != ALL)):
        raise UsageError(f"quantization_config: {key} {shown(group)} is no size: 1 or more is, or {ALL} for one group")
    return None if group is None else int(group)


def _awq(said: Settings) -> tuple[Format, ...]:
    _one_of(said, "bits" if "bits" in said else "w_bit", 4, (4,))
    _one_of({"version": str(said.get("version") or said.get("format") or "gemm").lower()}, "version", "gemm", ("gemm",))
    return (awq(_group(said, "group_size" if "group_size" in said else "q_group_size", None)),)


def _modelopt(said: Settings) -> tuple[Format, ...]:
    inner = said.get("quantization")
    kind = _one_of(inner if isinstance(inner, Mapping) else said, "quant_algo", None, ("FP8", "NVFP4"))
    return (fp8(".weight_scale"),) if kind == "FP8" else (NVFP4_OF_MODELOPT, fp8(".weight_scale"))


def _compressed(said: Settings) -> tuple[Format, ...]:
    for key in ("transform_config", "sparsity_config"):
        inner = said.get(key) or {}
        if not isinstance(inner, Mapping) or inner.get("format", "dense") != "dense" or inner.get("config_groups"):
            raise UsageError(f"quantization_config: {key} is not read")
    groups = said.get("config_groups")
    tables = [group for group in groups.values() if isinstance(group, Mapping)] if isinstance(groups, Mapping) else []
    kinds = [said.get("format"), *(group.get("format") for group in tables)]
    named = {str(kind) for kind in kinds if kind not in (None, "mixed-precision")}
    for kind in sorted(named):
        _one_of({"format": kind}, "format", None, tuple(_COMPRESSED))
    weights = [each for group in tables if isinstance(each := group.get("weights"), Mapping)]
    bits = {str(each.get("num_bits")) for each in weights}  # which may be anything in a broken file
    sizes = {_group(each, "group_size", None) for each in weights if each.get("strategy") == "group"}
    size = next(iter(sizes)) if len(sizes) == 1 == len(weights) else None
    if "pack-quantized" in named and (len(bits) != 1 or not bits <= {"4", "8"}):
        raise UsageError(f"quantization_config: num_bits {shown(sorted(bits))} is not read: 4 or 8 is")
    width = int(next(iter(bits))) if "pack-quantized" in named else 8
    made = [each for kind in sorted(named) for each in _COMPRESSED[kind](width, size)]
    return tuple(dict.fromkeys(made))


_COMPRESSED: Mapping[str, Callable[[int, int | None], tuple[Format, ...]]] = {
    "float-quantized": lambda *_: (fp8(".weight_scale"),),
    "naive-quantized": lambda *_: (fp8(".weight_scale"), INT8),
    "int-quantized": lambda *_: (INT8,),
    "pack-quantized": lambda bits, group: (packed_integers(bits, group),),
    "nvfp4-pack-quantized": lambda *_: (NVFP4,),
    "mxfp4-pack-quantized": lambda *_: (MXFP4,),
}
METHODS: Mapping[str, Callable[[Settings], tuple[Format, ...]]] = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda _: (fp8(".weight_scale"),),
    "mxfp4": lambda _: (MXFP4_OF_GPT_OSS,),
    "gptq": _gptq,
    "awq": _awq,
    "modelopt": _modelopt,
    "compressed-tensors": _compressed,
}
"""By `quant_method`: the formats that weights may have."""


def formats_of(raw: Settings) -> tuple[Format, ...]:
    """The formats that a `config.json` says; none where it says nothing of quantization.

    Raises:
        UsageError: They are not read.
    """
    said = raw.get("quantization_config")
    if not said:
        return ()
    if not isinstance(said, Mapping):
        raise UsageError(f"quantization_config {shown(said)} is no table of settings")
    method = str(said.get("quant_method"))
    if method not in METHODS:
        raise UsageError(
            f"quantization_config: weights quantized by {shown(method)} are not read: {', '.join(METHODS)} are; use "
            "those of the whole model"
        )
    return METHODS[method](said)


# The tensors


@dataclass(frozen=True, eq=False)
class PackedTensor(Tensor):
    """A weight that several tensors make.

    Attributes:
        format: How.
        parts: The tensors, by the ends of their names.
    """

    format: Format
    parts: Mapping[str, Tensor]

    def read(self, what: str, take: Callable[[Host], Host], rows: Host | None = None) -> Host:
        """The part that is taken of it; only its rows become numbers, where the format allows it."""
        if self.format.apart:
            taken = part_of(self.shape, 1, take, lambda first, stop: self._numbers(what, slice(first, stop)))
        else:
            taken = take(self._numbers(what, slice(None)))
        return taken if rows is None else taken[rows]

    def _numbers(self, what: str, which: slice) -> Host:
        stored = {}
        for ending, part in self.parts.items():
            kind = READ[part.kind]
            layout = part.file.layout(part.start, part.stop, kind.dtype, part.shape)
            cells = layout[which] if part.shape else layout
            stored[ending] = part.file.numbers(cells, kind.floats, f"{what} ({ending})")
        with _fitting(self, what.removeprefix("tensor ")), np.errstate(all="ignore"):
            return np.ascontiguousarray(self.format.numbers(stored), np.float32)


@contextlib.contextmanager
def _fitting(tensor: PackedTensor, name: str) -> Iterator[None]:
    """InputError for tensors that do not fit each other."""
    try:
        yield
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
        what = f"{tensor.path}: {tensor.format.name} weight {name[:80]}"
        why = str(error) if isinstance(error, MisfitError) else "its tensors do not fit each other"
        raise InputError(f"{what}: {why}: copy the file again, with its config.json") from error


def with_weights(tensors: Tensors, formats: Sequence[Format]) -> Tensors:
    """The tensors, those that belong together as the weights that they make.

    Raises:
        InputError: They do not fit each other, or some change what is computed and are not read.
    """
    if not formats:
        return tensors
    by_name, promised = dict(tensors.by_name), dict(tensors.promised)
    left = next((name for name in by_name if name.endswith(LEFT_ALONE)), None)
    if left is not None:
        raise InputError(f"{tensors.path}: tensor {left[:80]} of a quantized weight is not read")
    for each in formats:
        for name in [name for name in by_name if name.endswith(each.endings[0])]:
            weight = _weight(by_name, each, name)
            if weight is not None:
                base = name.removesuffix(each.endings[0])
                for ending in weight.parts:
                    by_name.pop(base + ending)
                by_name[base + each.weight] = weight
                promised[base + each.weight] = weight.path.name
    return replace(tensors, by_name=by_name, promised=promised if tensors.promised else {})


def _weight(by_name: Mapping[str, Tensor], form: Format, name: str) -> PackedTensor | None:
    """The weight that a tensor of codes makes with those beside it; None where they are not there."""
    base, codes = name.removesuffix(form.endings[0]), by_name[name]
    parts = {end: by_name[base + end] for end in (*form.endings, *form.optional) if base + end in by_name}
    if codes.kind not in form.kinds or not set(form.endings) <= set(parts):
        return None
    unread = next((part.kind for part in parts.values() if part.kind not in READ), None)
    whole = PackedTensor(codes.file, form.name, codes.shape, codes.start, codes.stop, form, parts)
    with _fitting(whole, name):
        if unread is not None:
            raise ValueError(unread)
        shape = form.shape({end: part.shape for end, part in parts.items()})
    if any(size < 0 for size in shape):
        raise InputError(f"{whole.path}: {form.name} weight {name[:80]} is {shape_text(shape)}")
    return replace(whole, shape=shape)
