"""The colours that stand for values on a light page, from the smallest to the largest.

They are monotone in lightness. The signed ones go from blue to orange through a neutral middle (after PuOr of
ColorBrewer).
"""

from __future__ import annotations

from tui_transformer.views.view import ScaleKind

RAMPS: dict[ScaleKind, tuple[str, ...]] = {
    "sequential": ("#f7f6ee", "#d9e6dc", "#a9cdc8", "#6da7c0", "#437fb2", "#2d5693", "#203668", "#141c40"),
    "diverging": (
        "#153c78",
        "#2f6bb3",
        "#78aadd",
        "#c3dbf0",
        "#f7f6f0",
        "#f8d9a8",
        "#e5a04e",
        "#b8640f",
        "#733a06",
    ),
}
