"""Whether the explorer can be shown."""

from __future__ import annotations

import os
import sys

from tui_transformer.errors import UsageError


def check_terminal() -> None:
    """Raise UsageError where the explorer cannot draw; in a browser it does not draw on a terminal."""
    if is_served():
        return
    if os.environ.get("TERM") == "dumb":
        raise UsageError("the explorer cannot draw on TERM=dumb: use `tui-transformer show` instead")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        # Textual draws on standard error: sent to a file, the screen would stay empty.
        raise UsageError(
            "the explorer needs a terminal for input, output and errors: use `tui-transformer show` instead"
        )


def is_served() -> bool:
    """Whether textual-serve shows the explorer in a browser."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")
