"""Breaks by their names; their table is read only where there are some, since it takes a while at the start."""

from __future__ import annotations

from collections.abc import Collection


def break_titles(names: Collection[str]) -> list[str]:
    """Titles of the breaks of these names, in the order of the table."""
    if not names:
        return []
    from tui_transformer.diagnosis.breaking import BREAKS

    return [each.title for each in BREAKS if each.name in names]


def unknown_break(names: Collection[str]) -> str:
    """Remark on the first name that no break has, and on those there are; "" where every name is known."""
    if not names:
        return ""
    from tui_transformer.diagnosis.breaking import BREAKS

    known = [each.name for each in BREAKS]
    return next((f"{name[:40]!r} is none of {', '.join(known)}" for name in names if name not in known), "")
