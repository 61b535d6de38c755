"""The keys of the cursor, which the table of all keys takes from here: widgets know of no other."""

from __future__ import annotations

from collections.abc import Mapping

CURSOR_KEYS: Mapping[str, str] = {
    "cursor.left": "left,h",
    "cursor.right": "right,l",
    "cursor.up": "up,k",
    "cursor.down": "down,j",
    "cursor.top": "g",
    "cursor.bottom": "G",
    "cursor.row-start": "home",
    "cursor.row-end": "end",
    "cursor.page-up": "pageup",
    "cursor.page-down": "pagedown",
    "cursor.half-up": "ctrl+u",
    "cursor.half-down": "ctrl+d",
    "cursor.wider": "plus,equals_sign",
    "cursor.narrower": "minus",
    "cursor.choose": "enter",
}
"""The keys of each meaning, separated by commas."""
