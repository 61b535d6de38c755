"""Texts made by rules of the program's own, for models that train in minutes; all in the public domain.

Each file has `lines(count, seed)`, which gives the same lines for the same seed on every computer.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast

from tui_transformer.errors import UsageError

CORPORA = ("copy", "dates", "question", "story")


def lines_of(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a text by its name.

    Raises:
        UsageError: There is no such text.
    """
    if name not in CORPORA:
        raise UsageError(f"no text is called {name!r}: there are {', '.join(CORPORA)}")
    module = import_module(f"tui_transformer.learning.corpora.{name}")
    return cast("Iterator[str]", module.lines(count, seed))
