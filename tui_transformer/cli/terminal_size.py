"""The size of a terminal, as it is written: `160x45`."""

from __future__ import annotations

import re

from tui_transformer.errors import UsageError

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
