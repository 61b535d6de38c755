"""Numbers in blocks of few bits: number = scale · code + minimum, with a scale for every group of a block.

The layouts are those of ggml (`ggml-common.h`, `ggml-quants.c`): blocks of 32 with one group, and "k-quants", blocks
of 256 in groups of 16 or 32 whose scales and minima are themselves whole numbers times one of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tui_transformer.engine.backend import Host

BLOCK = 256
ZERO = np.zeros((1, 1), np.float32)


class Codes(NamedTuple):
    """Blocks, taken apart.

    Attributes:
        codes: Whole numbers, n × groups × numbers of a group.
        scales: n × groups.
        minima: n × groups, or zeros that are as wide as may be.
    """

    codes: Host
    scales: Host
    minima: Host = ZERO

    def numbers(self) -> Host:
        """The numbers, n × numbers of a block, in float32."""
        numbers = self.codes.astype(np.float32)
        numbers *= self.scales[:, :, None]
        if self.minima is not ZERO:
            numbers += self.minima[:, :, None]
        return numbers.reshape(len(numbers), -1)


class Format(NamedTuple):
    """A kind of blocks.

    Attributes:
        take_apart: Codes of blocks, n × bytes of a block.
        first: The smallest code.
        last: The largest.
        steps: All that a code may be, in order, where they are not the whole numbers from first to last.
    """

    take_apart: Callable[[Host], Codes]
    first: int
    last: int
    steps: tuple[int, ...] = ()


def _half(data: Host, at: int) -> Host:
    return np.ascontiguousarray(data[:, at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(data: Host) -> Host:
    return np.concatenate([data & 15, data >> 4], axis=1)


def _fifth(data: Host) -> Host:
    return np.unpackbits(data, axis=1, bitorder="little")


def _signed(codes: Host, middle: int) -> Host:
    return codes.astype(np.int8) - np.int8(middle)


def _q4_0(data: Host) -> Codes:
    return Codes(_signed(_nibbles(data[:, 2:]), 8)[:, None], _half(data, 0))


def _q4_1(data: Host) -> Codes:
    return Codes(_nibbles(data[:, 4:])[:, None], _half(data, 0), _half(data, 2))


def _q5_0(data: Host) -> Codes:
    codes = _nibbles(data[:, 6:]) | _fifth(data[:, 2:6]) << 4
    return Codes(_signed(codes, 16)[:, None], _half(data, 0))


def _q5_1(data: Host) -> Codes:
    codes = _nibbles(data[:, 8:]) | _fifth(data[:, 4:8]) << 4
    return Codes(codes[:, None], _half(data, 0), _half(data, 2))


def _q8_0(data: Host) -> Codes:
    return Codes(np.ascontiguousarray(data[:, 2:]).view(np.int8)[:, None], _half(data, 0))


def _spread(data: Host, parts: int, bits: int, groups: int) -> Host:
    """Codes of a few bits, of which every byte of a part holds several: n × groups × numbers of a group."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(1, 1, -1, 1)
    codes = (data.reshape(len(data), parts, 1, -1) >> shifts) & np.uint8((1 << bits) - 1)
    return codes.reshape(len(data), groups, -1)


def _q2_k(data: Host) -> Codes:
    scales, d, least = data[:, :16], _half(data, 80), _half(data, 82)
    return Codes(_spread(data[:, 16:80], 2, 2, 16), d * (scales & 15), -(least * (scales >> 4)))


def _q3_k(data: Host) -> Codes:
    low, high = data[:, 96:104], data[:, 104:108]
    fours = np.concatenate([low & 15, low >> 4], axis=1)
    twos = np.concatenate([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=1)
    scales = _signed(fours | twos << 4, 32)
    codes = _spread(data[:, 32:96], 2, 2, 16).astype(np.int8)
    codes -= 4 * (1 - _spread(data[:, :32], 1, 1, 16).astype(np.int8))
    return Codes(codes, _half(data, 108) * scales)


def _scales_and_minima(data: Host) -> tuple[Host, Host]:
    first, second, third = data[:, :4], data[:, 4:8], data[:, 8:12]
    scales = np.concatenate([first & 63, (third & 15) | ((first >> 2) & 48)], axis=1)
    return scales, np.concatenate([second & 63, (third >> 4) | ((second >> 2) & 48)], axis=1)


def _q4_k(data: Host) -> Codes:
    scales, minima = _scales_and_minima(data[:, 4:16])
    return Codes(_spread(data[:, 16:], 4, 4, 8), _half(data, 0) * scales, -(_half(data, 2) * minima))


def _q5_k(data: Host) -> Codes:
    scales, minima = _scales_and_minima(data[:, 4:16])
    codes = _spread(data[:, 48:], 4, 4, 8) | _spread(data[:, 16:48], 1, 1, 8) << 4
    return Codes(codes, _half(data, 0) * scales, -(_half(data, 2) * minima))


def _q6_k(data: Host) -> Codes:
    codes = _spread(data[:, :128], 2, 4, 16) | _spread(data[:, 128:192], 2, 2, 16) << 4
    scales = np.ascontiguousarray(data[:, 192:208]).view(np.int8)
    return Codes(_signed(codes, 32), _half(data, 208) * scales)


# Codes that are looked up in a table


UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
FLOATS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the numbers of FP4 (one sign, two bits of exponent, one of fraction)."""


def _iq4_nl(data: Host) -> Codes:
    return Codes(UNEVEN[_nibbles(data[:, 2:])][:, None], _half(data, 0))


def _iq4_xs(data: Host) -> Codes:
    low = np.stack([data[:, 4:8] & 15, data[:, 4:8] >> 4], axis=2).reshape(len(data), 8)
    high = np.ascontiguousarray(data[:, 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16)
    scales = _signed(low | (high & 3).astype(np.uint8) << 4, 32)
    return Codes(UNEVEN[_spread(data[:, 8:], 8, 4, 8)], _half(data, 0) * scales)


def _mxfp4(data: Host) -> Codes:
    """The scale is a power of two, of which half is taken, as the codes are doubled."""
    scale = np.ldexp(np.float32(1.0), data[:, :1].astype(np.int32) - 128)
    return Codes(FLOATS[_nibbles(data[:, 1:])][:, None], scale)


_UNEVEN, _FLOATS = (tuple(sorted({*table.tolist()})) for table in (UNEVEN, FLOATS))

FORMATS: Mapping[str, Format] = {
    "Q4_0": Format(_q4_0, -8, 7),
    "Q4_1": Format(_q4_1, 0, 15),
    "Q5_0": Format(_q5_0, -16, 15),
    "Q5_1": Format(_q5_1, 0, 31),
    "Q8_0": Format(_q8_0, -128, 127),
    "Q2_K": Format(_q2_k, 0, 3),
    "Q3_K": Format(_q3_k, -4, 3),
    "Q4_K": Format(_q4_k, 0, 15),
    "Q5_K": Format(_q5_k, 0, 31),
    "Q6_K": Format(_q6_k, -32, 31),
    "IQ4_NL": Format(_iq4_nl, -127, 113, _UNEVEN),
    "IQ4_XS": Format(_iq4_xs, -127, 113, _UNEVEN),
    "MXFP4": Format(_mxfp4, -12, 12, _FLOATS),
}
"""The kinds of blocks that are whole numbers times a scale; in all others several numbers are looked up together."""
