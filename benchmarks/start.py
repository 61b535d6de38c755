"""From the command to the first screen, and to `--version` and `--help`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import Promise, interleaved, milliseconds, repetitions, report, timed
from benchmarks.terminal import Terminal

PROGRAM = (sys.executable, "-m", "tui_transformer")
FRAME, COMMAND = 2.0, 4.0
"""What is promised: of the first screen beside the imports, of `--version` and `--help` beside a bare Python."""

SIZES = ((160, 45), (80, 24))
LAST_WORD = b"quit"
"""The last word of the last line of a full frame."""


def main() -> None:
    screens = {f"{columns}×{lines}": _first_screen(columns, lines) for columns, lines in SIZES}
    base = "import textual.app, numpy"
    spent = interleaved({**screens, base: _python(base)}, repetitions(9))
    for name in screens:
        note = milliseconds(screen=spent[name], imports=spent[base])
        report(
            Promise(
                f"first screen {name} ÷ importing textual.app and numpy",
                spent[name] / spent[base],
                bound=FRAME,
                note=note,
            )
        )
    _commands()


def _first_screen(columns: int, lines: int) -> Callable[[], float]:
    def measure() -> float:
        with Terminal(PROGRAM, columns, lines) as terminal:
            return terminal.until(LAST_WORD)

    return measure


def _commands() -> None:
    options = {option: _process(*PROGRAM, option) for option in ("--version", "--help")}
    spent = interleaved({**options, "pass": _python("pass")}, repetitions(15))
    for name in options:
        note = milliseconds(own=spent[name], bare_python=spent["pass"])
        report(
            Promise(f"{name} ÷ python -c pass", spent[name] / spent["pass"], bound=COMMAND, note=note),
        )


def _python(code: str) -> Callable[[], float]:
    return _process(sys.executable, "-c", code)


def _process(*command: str) -> Callable[[], float]:
    return lambda: timed(lambda: subprocess.run(command, check=True, capture_output=True))


if __name__ == "__main__":
    main()
