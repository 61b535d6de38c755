"""Lines that are typed at a reader, and what it answers."""

from __future__ import annotations

from tui_transformer.explorer.plain.keys import meanings, read
from tui_transformer.explorer.plain.reader import Reader

WEIGHTS = "encoder.0.self_attention.weights"


def typed(reader: Reader, *lines: str) -> str:
    """The answer to the last of some lines."""
    known = meanings({})
    return [reader.answer(read(line, known)) for line in lines][-1]
