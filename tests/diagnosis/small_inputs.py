"""Positions, tokens and padding of the small models, with the mistakes that are made with them."""

from __future__ import annotations

import math

import numpy as np


def sines(n: int, d: int, faults: frozenset[str]) -> np.ndarray:
    pe = np.zeros((n, d))
    start = 1 if "position-off-by-one" in faults else -1 if "position-before" in faults else 0
    for pos in range(n):
        for j in range(d):
            i = j // 2 if "position-halves" not in faults else j % (d // 2)
            exponent = 2 * j / d if "position-exponent" in faults else 2 * i / d
            exponent = 2 * i // d if "position-integer" in faults else exponent
            exponent = -exponent if "position-multiplied" in faults else exponent
            angle = (pos + start) / (1000 if "position-base" in faults else 10000) ** exponent
            cosine = j % 2 if "position-halves" not in faults else j >= d // 2
            cosine = not cosine if "position-swapped" in faults else cosine
            pe[pos, j] = math.cos(angle) if cosine else math.sin(angle)
    return pe * (2 if "position-twice" in faults else 1)


def read(ids: list[int], faults: frozenset[str], count: int) -> list[int]:
    """The rows of the table that are read."""
    mistakes = {
        "token-off-by-one": [min(i + 1, count - 1) for i in ids],
        "token-before": [max(i - 1, 0) for i in ids],
        "one-token": [*ids[:2], ids[2] + 1, *ids[3:]],
        "tokens-late": [0, *ids[:-1]],
        "tokens-early": [*ids[1:], ids[-1]],
        "tokens-rolled": [ids[-1], *ids[:-1]],
    }
    return next((read for fault, read in mistakes.items() if fault in faults), ids)


def visible_of(ids: list[int], pad_id: int | None) -> np.ndarray:
    visible = np.ones(len(ids), bool)
    for i in reversed(range(len(ids))):
        if ids[i] != pad_id:
            break
        visible[i] = False
    return visible
