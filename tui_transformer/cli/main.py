"""The command `tui-transformer`: the explorer, the headless commands, and one exit code for every end.

0 fine; 1 the work failed; 2 wrong usage, or no terminal for the explorer; 3 not all was compared (`diff`); 128 + n for
a signal.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import signal
import sys
from typing import NoReturn

import typer
from typer._click.exceptions import ClickException

from tui_transformer.cli.explore import COMMANDS, NAME, Explore
from tui_transformer.cli.typer_layer import app_of
from tui_transformer.errors import InputError, UsageError, reason
from tui_transformer.machine import ENDING
from tui_transformer.text.display import visible

app = app_of(Explore, add_completion=True)

FAILED, WRONG_USAGE = 1, 2
STREAMS = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
NOT_WRITTEN = {getattr(errno, name, None) for name in ("EBADF", "EDQUOT", "EFBIG", "EIO", "ENOSPC", "EPIPE")}


def main() -> NoReturn:
    """Run the command line and exit."""
    _use_utf8()
    _catch_signals()
    code = 0
    try:
        code = app(prog_name=NAME, standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as error:
        ends = {128 + number: f"ended by {number.name}" for number in ENDING} | {128 + signal.SIGINT: "interrupted"}
        if error.code in ends:  # the command has said nothing of the signal
            command = sys.argv[1] if sys.argv[1:] and sys.argv[1] in COMMANDS else NAME
            writes = any(word.split("=")[0] == "--out" for word in sys.argv)
            _say(f"{NAME}: {command} was {ends[error.code]}" + ": what it had not finished is not written" * writes)
        raise
    except Exception as error:  # noqa: BLE001 - what is nothing else is a mistake of the program
        code = _failed(error)
    try:
        sys.stderr.flush()
    except OSError:  # of a terminal that is gone: Python would end with a code of its own
        from tui_transformer.cli.output import discard_output

        discard_output(sys.stderr)
    sys.exit(code)


def _use_utf8() -> None:
    """Output is UTF-8 whatever the locale; what cannot be encoded is escaped.

    Where a stream is closed, no file that is opened takes its place: there is nothing to read, messages are lost, and
    data cannot be written.
    """
    for number, (name, flag, mode) in enumerate(STREAMS):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, flag)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
        elif name != "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _catch_signals() -> None:
    for number in (signal.SIGINT, *ENDING):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
            # the last of what is done at the end: a signal behind it would say that all this was not done
            atexit.register(signal.signal, number, signal.SIG_IGN)
    sys.unraisablehook = _end_again


def _end_again(lost: sys.UnraisableHookArgs) -> None:
    """End a moment later where Python dropped the end, as of a signal that comes while an object is taken down.

    What is raised in a finalizer or in the callback of a weak reference goes no further (`sys.unraisablehook`).
    """
    code = getattr(lost.exc_value, "code", 0)
    if hasattr(signal, "setitimer") and code in {128 + number for number in signal.valid_signals()}:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(code - 128))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def _say(line: str) -> None:
    """A line of a message; where it cannot be written, the code that the program ends with still says why."""
    try:
        typer.echo(line, err=True)
    except OSError:
        from tui_transformer.cli.output import discard_output

        discard_output(sys.stderr)


def _failed(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, ClickException):  # about the arguments, which typer quotes: nothing that a terminal would obey
        said = io.StringIO()
        error.show(said)
        for line in said.getvalue().splitlines():
            _say(visible(line))
        return error.exit_code
    if isinstance(error, InputError | MemoryError):
        message = reason(error)
    elif isinstance(error, OSError) and error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}: check the path and its permissions"
    elif isinstance(error, OSError) and error.errno in NOT_WRITTEN:  # one that names no file is of standard output
        from tui_transformer.cli.output import BROKEN_PIPE, discard_output, not_written

        discard_output()
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        message = not_written(error)
    else:
        from tui_transformer.crash import message as reported

        _say(f"{NAME}: {reported(error)}")
        return FAILED
    _say(f"{NAME}: {visible(message)}")
    return WRONG_USAGE if isinstance(error, UsageError) else FAILED
