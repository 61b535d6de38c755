"""Embedding tables that a file may hold under several names: what BART, Marian and T5 have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tui_transformer.errors import UsageError


def repeated(names: frozenset[str], candidates: Sequence[str]) -> Mapping[str, str]:
    """These of a file, but for the first, and the first: equal where all are the same weight."""
    held = [name for name in candidates if name in names]
    return dict.fromkeys(held[1:], held[0]) if held else {}


def check_one_table(names: frozenset[str], candidates: Sequence[str]) -> None:
    """Raise UsageError where several of these are left in a file, because they differ."""
    for other, table in repeated(names, candidates).items():
        raise UsageError(f"tensors {other} and {table} differ: only one embedding for both sides is supported")
