"""The one exception that a user's input may cause: its message is a line to be shown as it is."""

from __future__ import annotations


class InputError(Exception):
    """Something that the user gave cannot be used.

    The message is one line: it names the thing and says what to do. It is shown without a traceback
    (exit code 1 on the command line, a message in the explorer).
    """


class UsageError(InputError):
    """The command line or a setting is wrong in itself (exit code 2)."""


def reason(error: Exception) -> str:
    """The line to be shown: where memory is short it says what to do, then what an array library asked for."""
    if not isinstance(error, MemoryError):
        return str(error)
    return "not enough memory: use fewer tokens or smaller sizes" + (f" ({error})" if str(error) else "")
