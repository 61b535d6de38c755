"""A learner's function or program, run in processes of its own within limits that it cannot raise.

It has all rights of the user: what is held back is what goes wrong by mistake or out of mischief, not an attack on the
user's own files.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import secrets
import shutil
import signal
import site
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from tui_transformer.course.exercise import Why
from tui_transformer.course.processes import Family, started
from tui_transformer.course.sources import Given, write_inputs
from tui_transformer.diagnosis.dumps.npz_reader import open_trace
from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import json_object, read_regular
from tui_transformer.gate import check_may_run
from tui_transformer.machine import THREADS
from tui_transformer.records import dataclass, replace

CHILD = Path(__file__).with_name("child.py")
LARGEST_FILE = 1 << 20
"""Bytes of an answer's file, and of why functions failed."""
MOST_PRINTED = 1 << 22
"""Bytes that a program may print, on each of its two streams."""
MOST_CELLS = 1 << 24
"""Of an array that is returned."""
MOST_TASKS = 512
"""Processes and threads in a cgroup."""
PAUSE = 0.02
SHARE = 5
"""The part of the time that is spent looking at an answer is at most 1 ÷ (1 + this)."""

KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH", "JAVA_HOME", "CUDA_VISIBLE_DEVICES", "SYSTEMROOT", "PATHEXT")  # fmt: skip
"""Of the user's environment: what programs and their libraries are found by, and the language."""
ONE_THREAD = dict.fromkeys(THREADS, "1")
"""Threads take memory each, and exercises are small."""


@dataclass(frozen=True)
class Limits:
    """Limits of a learner's code.

    Attributes:
        seconds: From the clock.
        memory: Bytes, of a process and of all together.
        disk: Bytes of its folder, and of a file anywhere.
        written: Bytes that it may write in all, to any file or pipe.
        processes: Processes at a time.
    """

    seconds: float = 10.0
    memory: int = 2 << 30
    disk: int = 1 << 26
    written: int = 1 << 28
    processes: int = 64


@dataclass(frozen=True, eq=False)
class Ran:
    """Result of running it.

    Attributes:
        arrays: By function, the answers in order.
        failed: By function, why there is none; under "" why nothing was run.
        printed: What was printed.
        errors: What was printed to standard error.
    """

    arrays: Mapping[str, tuple[Host, ...]]
    failed: Mapping[str, Why]
    printed: str
    errors: str = ""

    def why(self, function: str) -> Why | None:
        """Why a function has no answer; None where it has one."""
        reason = self.failed.get("") or self.failed.get(function)
        return reason or (None if function in self.arrays else Why("gives no answer"))


def run_python(
    file: Path, functions: Sequence[str], inputs: Mapping[str, Given], answers: Sequence[str], limits: Limits
) -> Ran:
    """Functions of a file, each given the inputs by name.

    Raises:
        InputError: The file is none that can be read, or a visitor asks.
    """
    check_may_run(str(file))
    try:
        source = read_regular(file, LARGEST_FILE)
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    with scratch() as folder:
        (folder.path / "source.py").write_bytes(source)
        arrays: dict[str, Any] = {}
        for name, given in inputs.items():
            weights = given.value if isinstance(given.value, dict) else {"": given.value}
            arrays |= {f"{name}/{below}".removesuffix("/"): np.asarray(each) for below, each in weights.items()}
        np.savez(folder.path / "input.npz", **arrays)
        job = {"file": str(file.absolute()), "functions": list(functions), "answers": list(answers)}
        ran = _ran(folder, job, limits)
        if ran.failed.get(""):
            return ran
        return _with_arrays(ran, folder, functions, len(answers), limits)


def run_command(command: Sequence[str], inputs: Mapping[str, Given], limits: Limits) -> Ran:
    """A program that is given a folder of text files, the path of which is its last argument.

    Raises:
        InputError: A visitor asks.
    """
    check_may_run(command[0])
    with scratch() as folder:
        place = folder.path / "inputs"
        place.mkdir()
        write_inputs(place, inputs)
        return _ran(folder, {"command": [*command, str(place)]}, limits)


def _ran(folder: Scratch, job: Mapping[str, Any], limits: Limits) -> Ran:
    """Run a job to its end, and read what it says; its arrays are read by those who know them."""
    most = {"memory": limits.memory, "disk": limits.disk, "seconds": int(limits.seconds * (os.cpu_count() or 1)) + 1}
    (folder.path / "job.json").write_text(json.dumps({**job, **most}), encoding="utf-8")
    # files without a name, which nobody can put something else in the place of
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        why, code = _watched(folder, job, (printed, errors), limits)
        why, said = why or _too_much(folder, (printed, errors), limits), None
        if not why:
            try:  # why functions failed, as the process wrote it
                data = folder.read("result.json", LARGEST_FILE)
                said = None if data is None else json_object(data, "result.json")
            except InputError as error:
                why = f"leaves no result that can be read: {error}"
        if not why and said is None and not (code == 0 and "command" in job):
            why = _said(code)
        failed = dict[str, Why]()
        for name, each in ({"": {"says": why}} if why else said or {}).items():
            if isinstance(each, dict) and isinstance(each.get("says"), str):
                cause = each.get("cause")
                failed[name] = Why(each["says"], cause if cause and isinstance(cause, str) else None)
        return Ran({}, failed, _text(printed), _text(errors))


def _watched(
    folder: Scratch, job: Mapping[str, Any], streams: tuple[IO[bytes], IO[bytes]], limits: Limits
) -> tuple[str, int]:
    """Run a job and look at it as long as it runs: why it had to be ended, and the exit code."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    home = {name: str(folder.home) for name in ("HOME", "TMPDIR", "TEMP", "TMP")}
    # NumPy may be among the packages of this user alone, which are looked for below HOME
    environment = {"LANG": "C.UTF-8", **kept, **home, **ONE_THREAD, "PYTHONUSERBASE": site.getuserbase()}
    command = [sys.executable, "-B", "-P", "-X", "utf8", str(CHILD), str(folder.path)]
    with started(
        command,
        environment,
        limits.memory,
        MOST_TASKS,
        limits.seconds,
        stdout=streams[0],
        stderr=streams[1],
        cwd=None if "command" in job else folder.home,
    ) as (process, family):
        began, pause = time.monotonic(), PAUSE
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return "", process.wait(pause)
            looked = time.monotonic()
            if looked - began > limits.seconds:
                return f"does not end within {limits.seconds:g} s: is there an endless loop?", 0
            why = _beyond(family, limits) or _too_much(folder, streams, limits)
            if why:
                return why, 0
            pause = max(PAUSE, SHARE * (time.monotonic() - looked))


def _beyond(family: Family, limits: Limits) -> str:
    living = family.living()
    if len(living) > limits.processes:
        return f"starts more than the {limits.processes} processes that it may"
    if family.memory(living, limits.memory) > limits.memory:
        return "takes more memory than it may, with the processes that it started"
    if family.written(living) > limits.written:
        return f"writes more than the {limits.written >> 20} MiB that it may in all"
    return ""


def _too_much(folder: Scratch, streams: Sequence[IO[bytes]], limits: Limits) -> str:
    if any(os.fstat(each.fileno()).st_size > MOST_PRINTED for each in streams):
        return f"prints more than the {MOST_PRINTED >> 20} MiB that it may"
    return folder.beyond(limits.disk)


def _said(code: int) -> str:
    """Why a process ended that ended early."""
    if code >= 0:
        return f"ends with exit code {code}, without an answer"
    number = -code
    if number == getattr(signal, "SIGXCPU", None):
        return "takes more time than it may: is there an endless loop?"
    if number == getattr(signal, "SIGXFSZ", None):
        return "writes more than it may"
    more = ": did it take more memory than it may?" if number == getattr(signal, "SIGKILL", None) else ""
    return f"was ended by signal {number} ({signal.strsignal(number) or 'unknown'}){more}"


def _with_arrays(ran: Ran, folder: Scratch, functions: Sequence[str], count: int, limits: Limits) -> Ran:
    """The arrays of functions, read from a copy that no process of the answer knows of."""
    arrays: dict[str, tuple[Host, ...]] = {}
    failed = dict(ran.failed)
    try:
        data = folder.read("answer.npz", limits.disk)
    except InputError as error:
        return replace(ran, failed={"": Why(f"leaves no answer that can be read: {error}")})
    with tempfile.TemporaryDirectory(prefix="tui-transformer-") as own, contextlib.suppress(InputError):
        copy = Path(own) / "answer.npz"
        copy.write_bytes(data or b"")
        file = open_trace(copy)  # refused where no function gave one, or the learner's code wrote it itself
        for name in functions:
            keys = [f"{name}/{i}" for i in range(count)]
            if not all(each in file.entries for each in keys):
                continue
            large = next((shape for each in keys if math.prod(shape := file.shape(each)) > MOST_CELLS), None)
            if large is None:
                arrays[name] = tuple(file.read(each) for each in keys)
            else:
                failed[name] = Why(f"returns {shape_text(large)} cells: far more than are asked for")
    return replace(ran, arrays=arrays, failed=failed)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0, io.SEEK_SET)
    return stream.read(MOST_PRINTED).decode("utf-8", errors="replace")


MOST_FILES = 10_000
DEEPEST = 50
"""Folders in folders."""

_BY_FOLDER = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class Scratch:
    """A folder that somebody's code may do anything to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home"
        self.home.mkdir()
        self._held = os.open(path, os.O_RDONLY) if _BY_FOLDER else None

    def read(self, name: str, largest: int) -> bytes | None:
        """A file in it; None where there is none.

        Raises:
            InputError: It is a link, a pipe, a device or a folder, or too large.
        """
        try:
            path = Path(name) if self._held is not None else self.path / name
            return read_regular(path, largest, self._held)
        except FileNotFoundError:
            return None

    def beyond(self, most: int) -> str:
        """What is too much in it: bytes, files or folders in folders; "" where nothing is."""
        size = count = 0
        folders = [(self.path, 0)]
        for folder, depth in folders:  # which grows
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError),
                os.scandir(folder) as all_,
            ):
                for each in all_:
                    count += 1
                    if count > MOST_FILES or depth > DEEPEST:
                        return f"makes more than {MOST_FILES:,} files" if count > MOST_FILES else "makes deep folders"
                    if each.is_dir(follow_symlinks=False):
                        folders.append((Path(each.path), depth + 1))
                    else:
                        with contextlib.suppress(OSError):
                            status = each.stat(follow_symlinks=False)
                            size += int(getattr(status, "st_blocks", -(-status.st_size // 512))) * 512
        return f"writes more than the {most >> 20} MiB that it may" if size > most else ""

    def remove(self) -> None:
        """Remove it and all that is in it."""
        if self._held is None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            _empty(self._held)
        with contextlib.suppress(OSError):
            if self.path.is_symlink():  # put there by the answer, which moved the folder
                self.path.unlink()
                Path(f"/proc/self/fd/{self._held}").readlink().rmdir()
            else:
                self.path.rmdir()
        os.close(self._held)


@contextlib.contextmanager
def scratch() -> Iterator[Scratch]:
    """A new folder, which is removed at the end.

    Raises:
        InputError: None can be made.
    """
    try:
        made = Scratch(Path(tempfile.mkdtemp(prefix="tui-transformer-")))
    except OSError as error:
        raise InputError(f"{tempfile.gettempdir()}: cannot be written: {error.strerror}") from error
    try:
        yield made
    finally:
        made.remove()


def _empty(folder: int) -> None:
    """Remove all that is in a folder. What lies deeper is put to the top first: no path becomes long, however deep."""
    while names := os.listdir(folder):
        for name in names:
            if not _is_folder(name, folder):
                os.unlink(name, dir_fd=folder)
                continue
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            try:
                for below in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                    _is_folder(below, inner)
                    os.rename(below, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=folder)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)


def _is_folder(name: str, within: int) -> bool:
    """True if that is a folder, which then may be changed."""
    folder = stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
    if folder:
        os.chmod(name, 0o700, dir_fd=within)
    return folder
