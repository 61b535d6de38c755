"""What a machine has, as people and settings write it: memory and threads.

Only the standard library is imported: the command line reads this first.
"""

from __future__ import annotations

import re

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Settings of the environment that say how many threads products may take, whichever library makes them."""

UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
LARGEST = 1 << 50


def parse_size(text: str) -> int | None:
    """Bytes from a number and a unit: `512MiB`, `2 GiB`, `0`; None for anything else."""
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or float(match[1]) * unit > LARGEST:
        return None
    return int(float(match[1]) * unit)
