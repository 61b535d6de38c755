"""Rows of texts as a table whose columns stand below each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tui_transformer.text.display import cells, fit


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """One line a row; every row has as many texts. The texts are safe to show."""
    rows = list(rows)
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(fit(text, width) for text, width in zip(row, widths, strict=True)).rstrip() + "\n"
