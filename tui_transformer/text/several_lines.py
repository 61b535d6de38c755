"""Lines of a text, many at a time: splitting them one by one takes longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def several_lines(lines: Iterable[str], size: int, between: str = "") -> Iterator[str]:
    """Texts of lines that follow each other, each as soon as it has more than `size` characters."""
    waiting: list[str] = []
    length = 0
    for line in lines:
        waiting.append(line)
        length += len(line)
        if length > size:
            yield between.join(waiting)
            waiting, length = [], 0
    if waiting:
        yield between.join(waiting)
