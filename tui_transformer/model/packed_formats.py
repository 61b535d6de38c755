"""Numbers of a few bits as checkpoints of safetensors hold them, made floats again.

Each format is some tensors beside each other: codes, scales, and what else there is. The formulas are those of the
programs that write them, as `transformers` reads them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np

from tui_transformer.engine.axis import Shape, shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.records import dataclass

INSTALL = "install tui-transformer[quantized]"
WORD = 32
"""Bits of the whole numbers that codes are packed into."""

AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)
"""Where in such a number the codes of columns 0, 1, 2 … are (Lin et al. 2023, as AutoAWQ packs them)."""

FP4_OF_MX, FP4_OF_NV = 32, 16
"""Numbers that share a scale."""

ALL = -1
"""A size of groups of inputs that share a scale: all of them. None is for as many as there are scales for."""

Parts = Mapping[str, Host]
Shapes = Mapping[str, Shape]


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        name: What it is called in messages.
        endings: Of the names of its tensors; of the first, what the weight's name is made from.
        optional: Endings of tensors that may be there, too.
        shape: Of the weight, from those of the tensors.
        numbers: Those of the weight, from the stored ones.
        kinds: Stored types of the first tensor.
        apart: The first axis of all tensors is that of the weight: a part of it can be read alone.
    """

    name: str
    endings: tuple[str, ...]
    shape: Callable[[Shapes], Shape]
    numbers: Callable[[Parts], Host]
    kinds: frozenset[str]
    optional: tuple[str, ...] = ()
    weight: str = ".weight"
    apart: bool = False


class MisfitError(ValueError):
    """Tensors that do not fit what is said of them: how, in words."""


@functools.cache
def small_floats(name: str) -> Host:
    """The floats of all codes, by the name that the library `ml_dtypes` has for their type."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise InputError(f"numbers of type {name} need the library ml_dtypes: {INSTALL}") from error
    kind = np.dtype(getattr(ml_dtypes, name))
    count = 16 if name.startswith("float4") else 256
    with np.errstate(all="ignore"):
        floats: Host = np.arange(count, dtype=np.uint8).view(kind).astype(np.float32)
    return floats


# Numbers of eight bits with scales beside them


def scaled(name: str, kinds: frozenset[str], scale: str, block: tuple[int, int] | None = None) -> Format:
    """Numbers times a scale: one of all, one a row, or one a block of rows and columns."""

    def numbers(parts: Parts) -> Host:
        weights = parts[".weight"].astype(np.float32)
        weights *= _spread(parts[scale].astype(np.float32), weights.shape, block)
        return weights

    return Format(name, (".weight", scale), lambda shapes: shapes[".weight"], numbers, kinds)


def _spread(scale: Host, shape: Shape, block: tuple[int, int] | None) -> Host:
    """Scales as wide as what they are for."""
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim < len(shape):
        scale = scale.reshape(*scale.shape, *(1,) * (len(shape) - scale.ndim))
    for axis, size in ((-2, shape[-2]), (-1, shape[-1])):
        given = scale.shape[axis]
        every = block[axis] if block is not None and given > 1 else -(-size // given)
        if every < 1 or -(-size // every) != given:
            raise ValueError(f"{given} scales do not fit {size} numbers")
        scale = np.repeat(scale, every, axis) if given > 1 else scale
        scale = scale[(..., slice(size), slice(None)) if axis == -2 else (..., slice(size))]
    return scale


def fp8(scale: str, block: tuple[int, int] | None = None) -> Format:
    """Floats of eight bits (`fp8`, `fbgemm_fp8`, `float-quantized` of compressed-tensors)."""
    return scaled("FP8", frozenset({"F8_E4M3", "F8_E5M2"}), scale, block)


INT8 = scaled("INT8", frozenset({"I8"}), ".weight_scale")
"""Whole numbers of eight bits (`int-quantized` of compressed-tensors)."""


# FP4: two numbers a byte, and a scale for every group of them


def fp4(name: str, endings: tuple[str, ...], group: int, scales: Callable[[Parts], Host]) -> Format:
    """A format of the tensors with these endings, the first that of the codes; `scales` makes the scales of groups."""
    codes = endings[0]

    def shape(shapes: Shapes) -> Shape:
        return *shapes[codes][:-1], 2 * shapes[codes][-1]

    def numbers(parts: Parts) -> Host:
        return _of_groups(parts[codes], scales(parts), group)

    return Format(name, endings, shape, numbers, frozenset({"U8"}))


def _of_groups(codes: Host, scales: Host, group: int) -> Host:
    pairs = np.stack([codes & 15, codes >> 4], axis=-1)
    weights: Host = small_floats("float4_e2m1fn")[pairs.reshape(*codes.shape[:-1], -1)]
    grouped = weights.reshape(*weights.shape[:-1], -1, group)
    grouped *= scales.astype(np.float32)[..., None]
    return weights


def _powers(scales: Host) -> Host:
    powers: Host = np.ldexp(np.float32(1.0), scales.astype(np.int32) - 127) if scales.dtype == np.uint8 else scales
    return powers


def _floats(parts: Parts, ending: str) -> Host:
    return parts[ending].astype(np.float32)


_PACKED = (".weight_packed", ".weight_scale")
MXFP4 = fp4("MXFP4", _PACKED, FP4_OF_MX, lambda parts: _powers(parts[".weight_scale"]))
NVFP4 = fp4(
    "NVFP4",
    (*_PACKED, ".weight_global_scale"),
    FP4_OF_NV,
    lambda parts: _floats(parts, ".weight_scale") / _floats(parts, ".weight_global_scale").reshape(()),
)
NVFP4_OF_MODELOPT = fp4(
    "NVFP4",
    (".weight", ".weight_scale", ".weight_scale_2"),
    FP4_OF_NV,
    lambda parts: _floats(parts, ".weight_scale") * _floats(parts, ".weight_scale_2").reshape(()),
)


def _gpt_oss_shape(shapes: Shapes) -> Shape:
    experts, rows, groups, size = shapes["_blocks"]
    if shapes["_scales"] != (experts, rows, groups) or 2 * size != FP4_OF_MX:
        raise ValueError("scales of other blocks")
    return experts, 2 * size * groups, rows


def _gpt_oss(parts: Parts) -> Host:
    blocks = parts["_blocks"]
    weights = _of_groups(blocks.reshape(*blocks.shape[:2], -1), _powers(parts["_scales"]), FP4_OF_MX)
    return weights.swapaxes(-1, -2)


MXFP4_OF_GPT_OSS = Format(
    "MXFP4", ("_blocks", "_scales"), _gpt_oss_shape, _gpt_oss, frozenset({"U8"}), weight="", apart=True
)


# Whole numbers


def unpacked(words: Host, bits: int, axis: int) -> Host:
    """The codes that numbers of 32 bits hold along an axis, the lowest bits first."""
    shifts = np.arange(0, WORD, bits, dtype=np.uint32)
    codes = (words.view(np.uint32)[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    codes = np.moveaxis(codes, -1, axis % words.ndim + 1)
    shape = list(words.shape)
    shape[axis] *= len(shifts)
    return codes.reshape(shape).astype(np.int32)


def _check_groups(shapes: Shapes, bits: int, inputs: int, outputs: int, group: int | None) -> None:
    """Raise MisfitError unless every group of inputs has its scales and zeros, of the right outputs."""
    scales = shapes[".scales"]
    given = scales[0] if len(scales) == 2 else 0
    every = inputs if group == ALL else group or -(-inputs // max(given, 1))
    groups = -(-inputs // every)
    if scales != (groups, outputs):
        said = f"group_size {group} makes {groups:,} × {outputs:,}" if group else f"{inputs:,} × {outputs:,} weights"
        raise MisfitError(f"its scales are {shape_text(scales)}, and {said}")
    if shapes[".qzeros"] != (groups, outputs * bits // WORD):
        raise MisfitError(f"its zeros are {shape_text(shapes['.qzeros'])}, and its scales {shape_text(scales)}")


def gptq(bits: int, group: int | None, *, less_one: bool) -> Format:
    """GPTQ (Frantar et al. 2023): codes of 2, 4 or 8 bits packed along the inputs, scales and zeros of groups of them.

    Where a tensor says which input is in which group, the number of groups alone counts. `less_one`: zeros are stored
    less 1, as all programs but the newest do.
    """

    def shape(shapes: Shapes) -> Shape:
        words, outputs = shapes[".qweight"]
        inputs = words * WORD // bits
        _check_groups(shapes, bits, inputs, outputs, group)
        if shapes.get(".g_idx", (inputs,)) != (inputs,):
            raise MisfitError(f"its g_idx is {shape_text(shapes['.g_idx'])} for {inputs:,} inputs")
        return outputs, inputs

    def numbers(parts: Parts) -> Host:
        codes, scales = unpacked(parts[".qweight"], bits, 0), parts[".scales"].astype(np.float32)
        zeros = (unpacked(parts[".qzeros"], bits, 1) + less_one) & ((1 << bits) - 1)
        every = -(-len(codes) // len(scales)) if group is None else len(codes) if group == ALL else group
        groups = parts.get(".g_idx", np.arange(len(codes)) // every).astype(np.int64)
        if groups.min() < 0 or groups.max() >= len(scales):
            raise MisfitError(f"its g_idx names groups {groups.min():,} to {groups.max():,} of {len(scales):,}")
        weights: Host = (codes - zeros[groups]) * scales[groups]
        return weights.T

    names = (".qweight", ".qzeros", ".scales")
    return Format("GPTQ", names, shape, numbers, frozenset({"I32"}), optional=(".g_idx",))


def awq(group: int | None) -> Format:
    """AWQ of four bits: codes packed along the outputs, in an order of their own."""
    bits = 4

    def ordered(words: Host) -> Host:
        codes = unpacked(words, bits, 1)
        return codes.reshape(len(codes), -1, len(AWQ_PLACES))[:, :, AWQ_PLACES].reshape(codes.shape)

    def shape(shapes: Shapes) -> Shape:
        inputs, words = shapes[".qweight"]
        outputs = words * WORD // bits
        _check_groups(shapes, bits, inputs, outputs, group)
        if inputs % (shapes[".scales"][0] if group in (None, ALL) else group):
            raise MisfitError(f"its {inputs:,} inputs are no whole groups, and group_size is {group}")
        return outputs, inputs

    def numbers(parts: Parts) -> Host:
        codes, zeros, scales = ordered(parts[".qweight"]), ordered(parts[".qzeros"]), parts[".scales"]
        every = len(codes) // len(scales)
        codes -= np.repeat(zeros, every, 0)
        weights: Host = codes * np.repeat(scales.astype(np.float32), every, 0)
        return weights.T

    return Format("AWQ", (".qweight", ".qzeros", ".scales"), shape, numbers, frozenset({"I32"}))


def packed_integers(bits: int, group: int | None) -> Format:
    """Whole numbers of compressed-tensors, of 4 or 8 bits, packed along the inputs; the middle code is 0 by default."""

    def shape(shapes: Shapes) -> Shape:
        (outputs, words), scales = shapes[".weight_packed"], shapes[".weight_scale"]
        inputs = words * WORD // bits
        if group is not None and scales[-1] != -(-inputs // (inputs if group == ALL else group)):
            raise MisfitError(f"its scales are {shape_text(scales)}, and group_size is {group} of {inputs:,} inputs")
        return outputs, inputs

    def numbers(parts: Parts) -> Host:
        weights = (unpacked(parts[".weight_packed"], bits, 1) - (1 << (bits - 1))).astype(np.float32)
        if ".weight_zero_point" in parts:
            zeros = unpacked(parts[".weight_zero_point"], bits, 0)[: len(weights)] - (1 << (bits - 1))
            weights -= _spread(zeros.astype(np.float32), weights.shape, None)
        weights *= _spread(parts[".weight_scale"].astype(np.float32), weights.shape, None)
        return weights

    return Format("packed integers", _PACKED, shape, numbers, frozenset({"I32"}), optional=(".weight_zero_point",))
