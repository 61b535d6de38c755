"""Random sequences that are repeated: from the second time on, every token follows from what came before.

A decoder can only know the next token by finding its last occurrence and copying what followed: the task in which
induction heads appear (Olsson et al. 2022, "In-context learning and induction heads").
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

TOKENS = tuple("abcdefghijklmnopqrstuvwx")
SHORTEST, LONGEST = 6, 14


def lines(count: int, seed: int = 0) -> Iterator[str]:
    """Lines such as `q f a v m q f a v m`: a sequence, and again."""
    random = Random(seed)  # noqa: S311 - the same lines for the same seed, nothing secret
    for _ in range(count):
        sequence = " ".join(random.choices(TOKENS, k=random.randint(SHORTEST, LONGEST)))
        yield f"{sequence} {sequence}"
