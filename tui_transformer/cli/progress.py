"""One line on standard error that says how far the work is, where that is a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tui_transformer.text.display import fit, visible

CLEAR = "\r\x1b[K"
Item = TypeVar("Item")


def show(text: str | None) -> None:
    """Write over the line where standard error is a terminal; None leaves it empty."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(CLEAR + ("" if text is None else fit(visible(text), width).rstrip()))
        sys.stderr.flush()


def counted(items: Iterable[Item], names: Iterable[object]) -> Iterator[Item]:
    """The items as they come; while one is waited for, its name and number stand on the line."""
    names = list(names)
    iterator = iter(items)
    try:
        for number, name in enumerate(names):
            show(f"{number + 1} of {len(names)}  {name}")
            yield next(iterator)
    finally:
        show(None)
