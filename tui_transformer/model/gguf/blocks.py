"""Numbers in blocks of few bits: number = scale · code + minimum, with a scale for every group of a block.

The layouts are those of ggml (`ggml-common.h`, `ggml-quants.c`): blocks of 32 with one group, and "k-quants", blocks
of 256 in groups of 16 or 32 whose scales and minima are themselves whole numbers times one of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tui_transformer.engine.backend import POOL, Host

CACHED = 1 << 19
"""Numbers that are made together."""


Part = Callable[[Host], Host]
"""Of blocks, blocks of a row × bytes × rows, one part; rows are the last axis, as NumPy is fast along it alone."""


class Format(NamedTuple):
    """A kind of blocks.

    Attributes:
        codes: Whole numbers, blocks of a row × groups × numbers of a group × rows.
        scales: Blocks of a row × groups × rows.
        first: The smallest code.
        last: The largest.
        minima: The same as of the scales; None where nothing is added.
        steps: All that a code may be, in order, where they are not the whole numbers from first to last.
    """

    codes: Part
    scales: Part
    first: int
    last: int
    minima: Part | None = None
    steps: tuple[int, ...] = ()

    def numbers(self, data: Host, count: int) -> Host:
        """The numbers of rows of blocks, rows × blocks × bytes, of so many numbers each: numbers of a row × rows.

        They are made where the processor's cache holds them: to write them to memory and read them again would take
        longer than to make them.
        """
        blocks = np.ascontiguousarray(data.transpose(1, 2, 0))
        numbers = POOL.empty((len(blocks), count, len(data)), np.dtype(np.float32))
        step = max(1, CACHED // max(1, numbers[:1].size))
        with np.errstate(all="ignore"):  # numbers that are not finite are refused after
            scales = self.scales(blocks)
            minima = None if self.minima is None else self.minima(blocks)
            for some in (slice(start, start + step) for start in range(0, len(blocks), step)):
                codes = self.codes(blocks[some])
                room = numbers[some].reshape(codes.shape)
                room[...] = codes
                room *= scales[some, :, None]
                if minima is not None:
                    room += minima[some, :, None]
        made: Host = numbers.reshape(-1, len(data))
        return made


def _half(at: int) -> Part:
    """Numbers of 16 bits at a place, blocks of a row × 1 × rows."""

    def read(data: Host) -> Host:
        low, high = data[:, at : at + 1], data[:, at + 1 : at + 2]
        return (high.astype(np.uint16) << np.uint16(8) | low).view(np.float16).astype(np.float32)

    return read


def _whole(data: Host, at: int, numbers: Host) -> Host:
    """Whole numbers times that of 16 bits at a place."""
    times: Host = _half(at)(data) * numbers
    return times


def _nibbles(data: Host) -> Host:
    return np.concatenate([data & 15, data >> 4], axis=1)


def _joined(low: Host, high: Host) -> Host:
    """Codes of four bits that were just made, with the bits above them."""
    high *= 16
    low |= high
    return low


def _fives(data: Host) -> Host:
    """Codes whose fifth bits come first, four bytes, then the others."""
    return _joined(_nibbles(data[:, 4:]), np.unpackbits(data[:, :4], axis=1, bitorder="little"))


def _signed(codes: Host, middle: int) -> Host:
    """Codes that were just made, less that of 0."""
    signed: Host = codes.view(np.int8)
    signed -= np.int8(middle)
    return signed


def _spread(data: Host, parts: int, bits: int, groups: int) -> Host:
    """Codes of a few bits, of which every byte of a part holds several."""
    blocks, size, rows = data.shape
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(-1, 1, 1)
    codes = data.reshape(blocks, parts, 1, size // parts, rows) >> shifts
    codes &= np.uint8((1 << bits) - 1)
    return codes.reshape(blocks, groups, -1, rows)


def _q3_k(data: Host) -> Host:
    codes = _spread(data[:, 32:96], 2, 2, 16).view(np.int8)
    codes -= 4 * (1 - _spread(data[:, :32], 1, 1, 16).view(np.int8))
    return codes


def _q3_k_scales(data: Host) -> Host:
    low, high = data[:, 96:104], data[:, 104:108]
    fours = np.concatenate([low & 15, low >> 4], axis=1)
    twos = np.concatenate([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=1)
    return _whole(data, 108, _signed(fours | twos << 4, 32))


def _k_scales(data: Host) -> Host:
    """Of eight groups: six bits of four bytes; then four bits of others, and two that those left."""
    first, third = data[:, 4:8], data[:, 12:16]
    return _whole(data, 0, np.concatenate([first & 63, (third & 15) | ((first >> 2) & 48)], axis=1))


def _k_minima(data: Host) -> Host:
    second, third = data[:, 8:12], data[:, 12:16]
    return -_whole(data, 2, np.concatenate([second & 63, (third >> 4) | ((second >> 2) & 48)], axis=1))


def _q5_k(data: Host) -> Host:
    return _joined(_spread(data[:, 48:], 4, 4, 8), _spread(data[:, 16:48], 1, 1, 8))


def _q6_k(data: Host) -> Host:
    return _signed(_joined(_spread(data[:, :128], 2, 4, 16), _spread(data[:, 128:192], 2, 2, 16)), 32)


# Codes that are looked up in a table


UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
FLOATS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)
"""Twice the numbers of FP4 (one sign, two bits of exponent, one of fraction)."""


def _iq4_xs_scales(data: Host) -> Host:
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    low = np.stack([data[:, 4:8] & 15, data[:, 4:8] >> 4], axis=2).reshape(len(data), 8, -1)
    high = (data[:, 2:4, None] >> shifts & 3).reshape(len(data), 8, -1)
    return _whole(data, 0, _signed(low | high << 4, 32))


def _mxfp4_scales(data: Host) -> Host:
    """Powers of two, of which half is taken, as the codes are doubled."""
    return np.ldexp(np.float32(1.0), data[:, :1].astype(np.int32) - 128)


_UNEVEN, _FLOATS = (tuple(sorted({*table.tolist()})) for table in (UNEVEN, FLOATS))

FORMATS: Mapping[str, Format] = {
    "Q4_0": Format(lambda data: _signed(_nibbles(data[:, 2:]), 8)[:, None], _half(0), -8, 7),
    "Q4_1": Format(lambda data: _nibbles(data[:, 4:])[:, None], _half(0), 0, 15, _half(2)),
    "Q5_0": Format(lambda data: _signed(_fives(data[:, 2:]), 16)[:, None], _half(0), -16, 15),
    "Q5_1": Format(lambda data: _fives(data[:, 4:])[:, None], _half(0), 0, 31, _half(2)),
    "Q8_0": Format(lambda data: data[:, 2:].view(np.int8)[:, None], _half(0), -128, 127),
    "Q2_K": Format(
        lambda data: _spread(data[:, 16:80], 2, 2, 16),
        lambda data: _whole(data, 80, data[:, :16] & 15),
        *(0, 3),
        lambda data: -_whole(data, 82, data[:, :16] >> 4),
    ),
    "Q3_K": Format(_q3_k, _q3_k_scales, -4, 3),
    "Q4_K": Format(lambda data: _spread(data[:, 16:], 4, 4, 8), _k_scales, 0, 15, _k_minima),
    "Q5_K": Format(_q5_k, _k_scales, 0, 31, _k_minima),
    "Q6_K": Format(_q6_k, lambda data: _whole(data, 208, data[:, 192:208].view(np.int8)), -32, 31),
    "IQ4_NL": Format(lambda data: UNEVEN[_nibbles(data[:, 2:])][:, None], _half(0), -127, 113, steps=_UNEVEN),
    "IQ4_XS": Format(lambda data: UNEVEN[_spread(data[:, 8:], 8, 4, 8)], _iq4_xs_scales, -127, 113, steps=_UNEVEN),
    "MXFP4": Format(lambda data: FLOATS[_nibbles(data[:, 1:])][:, None], _mxfp4_scales, -12, 12, steps=_FLOATS),
}
"""The kinds of blocks that are whole numbers times a scale; in all others several numbers are looked up together."""
