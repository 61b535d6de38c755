"""Positions from 1; halves; sine and cosine exchanged or alone; other exponents, a product, degrees."""

import numpy as np


def _angles(places, width):
    return places[:, None] / 10000 ** (2 * np.arange(width // 2) / width)


def _alternating(even, odd):
    return np.stack([even, odd], axis=-1).reshape(len(even), -1)


def from_one(tokens, width):
    angles = _angles(np.arange(tokens) + 1, width)
    return _alternating(np.sin(angles), np.cos(angles))


def halves(tokens, width):
    angles = _angles(np.arange(tokens), width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def column_in_exponent(tokens, width):
    columns = np.arange(width)
    angles = np.arange(tokens)[:, None] / 10000 ** (2 * columns / width)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


def exchanged(tokens, width):
    angles = _angles(np.arange(tokens), width)
    return _alternating(np.cos(angles), np.sin(angles))


def only_sines(tokens, width):
    angles = _angles(np.arange(tokens), width)
    return _alternating(np.sin(angles), np.sin(angles))


def multiplied(tokens, width):
    angles = np.arange(tokens)[:, None] * 10000 ** (2 * np.arange(width // 2) / width)
    return _alternating(np.sin(angles), np.cos(angles))


def whole_exponent(tokens, width):
    angles = np.arange(tokens)[:, None] / 10000 ** (2 * np.arange(width // 2) // width)
    return _alternating(np.sin(angles), np.cos(angles))


def in_degrees(tokens, width):
    angles = np.radians(_angles(np.arange(tokens), width))
    return _alternating(np.sin(angles), np.cos(angles))
