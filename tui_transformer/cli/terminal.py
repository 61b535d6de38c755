"""Whether the explorer can be shown."""

from __future__ import annotations

import os
import sys

from tui_transformer.errors import UsageError


def check_terminal() -> None:
    """Raise UsageError where the explorer cannot draw."""
    if os.environ.get("TERM") == "dumb":
        raise UsageError("the explorer cannot draw on TERM=dumb: use `tui-transformer show` instead")
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        # Textual draws on standard error: sent to a file, the screen would stay empty.
        raise UsageError(
            "the explorer needs a terminal for input, output and errors: use `tui-transformer show` instead"
        )
