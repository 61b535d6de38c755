"""Positions from 1; halves; sine and cosine exchanged or alone; other exponents, a product, degrees."""

import numpy as np


def _table(angles, even=np.sin, odd=np.cos):
    """Sines and cosines, or others, of angles that are made of places, columns 2i and d_model."""

    def positions(tokens, width):
        turned = angles(np.arange(tokens)[:, None], 2 * np.arange(width // 2), width)
        return np.stack([even(turned), odd(turned)], axis=-1).reshape(tokens, -1)

    return positions


def _angles(places, columns, width):
    return places / 10000 ** (columns / width)


from_one = _table(lambda places, columns, width: _angles(places + 1, columns, width))
multiplied = _table(lambda places, columns, width: places * 10000 ** (columns / width))
whole_exponent = _table(lambda places, columns, width: places / 10000 ** (columns // width))
in_degrees = _table(lambda places, columns, width: np.radians(_angles(places, columns, width)))
exchanged = _table(_angles, np.cos, np.sin)
only_sines = _table(_angles, np.sin, np.sin)


def halves(tokens, width):
    angles = _angles(np.arange(tokens)[:, None], 2 * np.arange(width // 2), width)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def column_in_exponent(tokens, width):
    columns = np.arange(width)
    angles = _angles(np.arange(tokens)[:, None], 2 * columns, width)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))
