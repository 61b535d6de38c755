"""Threads of matrix products, chosen before NumPy is imported: its library reads these variables only then.

A token is written by products of one row, thousands a second. Where other work has the cores, each of them waits for a
thread that is not running: several threads were measured 6 to 17 times slower than one.
"""

from __future__ import annotations

import os
import sys

NUMBERS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
PAUSE, SHORT = "OPENBLAS_THREAD_TIMEOUT", "18"
"""How long a thread of OpenBLAS looks for more work before it sleeps, as a power of 2 in ticks (usually 26)."""


def choose_threads() -> None:
    """One thread where other work has all cores, unless a number was chosen; threads that wait take no core for long.

    Nothing is changed where NumPy is there already.
    """
    if "numpy" in sys.modules:
        return
    os.environ.setdefault(PAUSE, SHORT)
    if not any(os.environ.get(name) for name in NUMBERS) and _waiting() >= (os.cpu_count() or 1):
        os.environ[NUMBERS[0]] = "1"


def _waiting() -> float:
    """How many processes had or wanted a core in the last minute; 0 where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # as on Windows
        return 0.0
