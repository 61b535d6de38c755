"""What the golden tests reach of the program: a command run in this process, in a folder and a home of its own.

The program's own parts are named here, in `surface.py` and in `screens.py`: a rebuilding changes only these.
"""

from __future__ import annotations

import gc
import importlib.metadata
import io
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn
from unittest import mock

from tui_transformer.cli import main as cli

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SHARED = Path(__file__).parent / "files"
LINKS = ("references", "sentences", "classifiers", "vectors")
"""Folders of the tests with small checkpoints, which every case finds beside it."""

KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "OPENBLAS_NUM_THREADS", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")


PATIENCE = 120
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@contextmanager
def alone() -> Iterator[Path]:
    """An empty folder to work in, with links to the checkpoints; home, terminal and packages are always the same."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="golden") as place:
        here, home = Path(place).resolve() / "here", Path(place).resolve() / "home"
        for folder in (here, home):
            folder.mkdir()
        for name in LINKS:
            (here / name).symlink_to(TESTS / name)
        for path in SHARED.iterdir():
            (here / path.name).write_bytes(path.read_bytes())
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        homes = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
        terminal = {"COLUMNS": "100", "LINES": "30", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        more = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "TZ": "UTC"}
        try:
            os.chdir(here)
            own = mock.patch.dict(os.environ, kept | homes | terminal | more, clear=True)
            with own, mock.patch.object(importlib.metadata, "distributions", return_value=()):
                yield here
        finally:
            os.chdir(before)


def run(arguments: Sequence[str], stdin: str = "") -> Ended:
    """The whole command in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (stdin.encode(), b"", b"")]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *cli.ENDING)}
    with (
        mock.patch.multiple(sys, argv=["tui-transformer", *arguments], stdin=streams[0], stdout=streams[1]),
        mock.patch.multiple(sys, stderr=streams[2], __stdout__=streams[1], __stderr__=streams[2]),
        mock.patch.object(gc, "freeze"),
    ):
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(PATIENCE)
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            signal.alarm(0)
            gc.enable()
            for number, handler in handlers.items():
                signal.signal(number, handler)
    said = []
    for stream in streams[1:]:
        stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8", "backslashreplace"))  # type: ignore[attr-defined]
    return Ended(code, *said)


def _too_long(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


MASKS = (
    (re.compile(re.escape(str(TESTS))), "{tests}"),
    (re.compile(re.escape(str(ROOT / "tui_transformer"))), "{package}"),
    (re.compile(re.escape(str(ROOT))), "{root}"),
    (re.compile(re.escape(sys.executable)), "{python}"),
    (re.compile(re.escape(f"{tempfile.gettempdir()}/tui-transformer-") + r"\w+"), "{scratch}"),
    (re.compile(r"limits hold .*"), "{limits}"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "{address}"),
)


def masked(text: str, here: Path) -> str:
    """A text without what is of this machine: folders."""
    text = text.replace(str(here), "{here}").replace(str(here.parent / "home"), "{home}")
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text
