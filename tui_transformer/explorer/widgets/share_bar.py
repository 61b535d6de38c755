"""A share of 1 as a bar of eighths of a cell."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


def share_bar(share: float, width: int) -> str:
    """A bar, as many cells wide as there are of `width`, padded to `width`.

    Args:
        share: 0 to 1; what is not 0 has at least an eighth of a cell.
        width: The cells of 1.
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(max(eighths, int(share > 0)), 8)
    return (_FULL * full + _EIGHTHS[rest][: int(rest > 0)]).ljust(width)[:width]
