"""The terminal: whether the explorer can be shown on it, its size and themes; and the threads of matrix products."""

from __future__ import annotations

import os
import re
import sys

from tui_transformer.errors import UsageError


def check_terminal() -> None:
    """Raise UsageError where the explorer cannot draw; in a browser it does not draw on a terminal."""
    if is_served():
        return
    if os.environ.get("TERM") == "dumb":
        raise UsageError("the explorer cannot draw on TERM=dumb: use `tui-transformer show` instead")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        # Textual draws on standard error: sent to a file, the screen would stay empty.
        raise UsageError(
            "the explorer needs a terminal for input, output and errors: use `tui-transformer show` instead"
        )


def is_served() -> bool:
    """Whether textual-serve shows the explorer in a browser."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


SMALLEST, LARGEST = (40, 12), (400, 150)


def parse_terminal_size(text: str) -> tuple[int, int]:
    """Columns and lines.

    Raises:
        UsageError: It is no size, or too small or large to draw.
    """
    match = re.fullmatch(r"\s*([0-9]{1,4})\s*[x×,]\s*([0-9]{1,4})\s*", text)
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(low <= each <= high for low, each, high in zip(SMALLEST, size, LARGEST, strict=True)):
        least, most = (f"{columns}x{lines}" for columns, lines in (SMALLEST, LARGEST))
        raise UsageError(f"--size: {text[:40]!r} is not COLUMNSxLINES from {least} to {most}, as 160x45")
    return size


def check_theme(theme: str) -> None:
    """Raise UsageError where no theme is called so."""
    from textual.theme import BUILTIN_THEMES

    from tui_transformer.explorer.shell.themes import SHORT, theme_names

    names = theme_names(BUILTIN_THEMES)
    if theme not in (*names, *SHORT.values()):
        raise UsageError(f"no theme is called {theme[:40]!r}: use {', '.join(names)}")


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
