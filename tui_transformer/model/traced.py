"""Texts traced one after the other: what means over a data set are taken of, and what a lens is fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model.model import Model
from tui_transformer.text.encoding import Encoding
from tui_transformer.text.files import read_lines, shown_path

Listen = Callable[[Encoding], object]
"""Told of every text that was read, as that of its unknown words."""


def ignore(_: Encoding) -> None:
    """Nobody wants to know what is read."""


def texts_of(path: Path) -> Iterator[str]:
    """The lines of a text file that hold something.

    Raises:
        InputError: The file cannot be read, or holds nothing.
    """
    text = None
    for text in filter(str.strip, read_lines([path])):
        yield text.rstrip("\r\n")
    if text is None:
        raise InputError(f"{shown_path(path)}: no text in it: write a sentence on each line")


def traced(model: Model, texts: Iterable[str], listen: Listen = ignore) -> Iterator[Trace]:
    """The trace of each text, cut to what the model reads; nothing of it is kept.

    Raises:
        InputError: A text has no tokens, or the model has no vocabulary.
    """
    for text in texts:
        encoding = model.encode(text, cut=True)
        listen(encoding)
        yield model.trace(ids=encoding.ids, segments=encoding.segments, budget=0)
