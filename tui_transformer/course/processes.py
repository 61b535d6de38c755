"""The processes that come of one: found wherever they went, counted, ended, and limited together by a cgroup.

A cgroup takes a user's systemd to which cgroups v2 with the controllers of memory and pids are delegated. Nothing is
believed: limits are asked for once, and a command reads in its cgroup whether they hold. Elsewhere (cgroups v1,
containers without systemd, macOS) there is no scope. Then `child.py` limits each process so that an answer cannot raise
it, `running.py` looks at all together every few hundredths of a second and ends them at the first that is too much, and
at the end all that they started is found and ended. All together may then go beyond their limits between two looks, by
as much as each process may take alone; the cgroup refuses memory and processes before they are taken. Where this
process is killed, a guard ends them, which is this file as a program.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PROC = Path("/proc")
PS = ("ps", "-A", "-E", "-ww", "-o", "pid=,ppid=,stat=,lstart=,command=")
"""Every process and its environment, where there is no /proc: macOS."""

MARK = "TUI_TRANSFORMER_ANSWER"
"""In the environment of all that comes of a command."""

PATIENCE = 5.0
"""Seconds after which processes that do not end are left alone: the system itself holds them."""

PAUSE = 0.002
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
"""Numbers of prctl(2)."""


class Process(NamedTuple):
    """One process; its number and the time of its start together say which it is."""

    pid: int
    parent: int
    session: int
    started: str
    ended: bool
    marked: bool = False


def every(mark: str = "") -> dict[int, Process]:
    """All processes by number; without /proc, those with a mark in their environment are marked."""
    found: list[Process] = []
    is_linux = (PROC / "self" / "stat").exists()
    for name in filter(str.isdecimal, os.listdir(PROC)) if is_linux else ():  # noqa: PTH208 - many times a second
        with contextlib.suppress(OSError, ValueError, IndexError):
            after = (PROC / name / "stat").read_bytes().rpartition(b")")[2].split()
            ended = after[0] in (b"Z", b"X")
            found.append(Process(int(name), int(after[1]), int(after[3]), after[19].decode(), ended))
    for line in () if is_linux else _run(PS).splitlines():
        with contextlib.suppress(ValueError, IndexError):
            pid, parent, state, *words = line.split(None, 8)
            marked = bool(mark) and len(words) > 5 and mark in words[5]
            found.append(Process(int(pid), int(parent), 0, " ".join(words[:5]), state.startswith("Z"), marked))
    return {each.pid: each for each in found}


class Family:
    """A process of ours and all that come of it, in whatever group or session, with or without a parent.

    On Linux what loses its parent becomes a child of this process (`adopting`), so nothing is lost. Elsewhere known are
    those that were seen below the first while it ran, and those that still have the mark in their environment.
    """

    def __init__(self, root: int, before: Mapping[int, Process], mark: str) -> None:
        """Begin with a process that was started just now; `before` are all that were there already."""
        self._root, self._mark = root, mark
        self._before = {each.pid: each.started for each in before.values()}
        self._known = {each.pid: each.started for each in every().values() if each.pid == root}

    def living(self) -> list[Process]:
        """Those that have not ended; the ended ones that are ours to wait for are waited for."""
        table = every(self._mark)
        below: dict[int, list[int]] = {}
        for each in table.values():
            below.setdefault(each.parent, []).append(each.pid)
        own, session = os.getpid(), os.getsid(0)
        ours = []
        for each in table.values():
            adopted = each.parent == own and each.session not in (0, session)
            known = adopted or each.marked or self._known.get(each.pid) == each.started
            if known and self._before.get(each.pid) != each.started:
                ours.append(each.pid)
        for pid in ours:  # which grows
            ours += (each for each in below.get(pid, ()) if each not in ours)
        self._known = {pid: table[pid].started for pid in ours}
        for pid in ours:
            if table[pid].ended and pid != self._root and table[pid].parent == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        return [table[pid] for pid in ours if not table[pid].ended]

    def end(self) -> None:
        """End them all: first they are stopped, so that none starts others meanwhile."""
        stopped: set[int] = set()
        until = time.monotonic() + PATIENCE
        while (living := self.living()) and time.monotonic() < until:
            new = {each.pid for each in living} - stopped
            for pid in new or stopped:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP if new else signal.SIGKILL)
            stopped |= new
            if not new:
                time.sleep(PAUSE)

    def memory(self, living: Sequence[Process], most: int) -> int:
        """Bytes of memory of all together; pages that several share count once where it matters. 0 without /proc."""
        pages = sum(_number(each.pid, "statm", lambda text: int(text.split()[1])) for each in living)
        if not pages or (resident := pages * os.sysconf("SC_PAGE_SIZE")) <= most:
            return pages and resident
        return sum(_number(each.pid, "smaps_rollup", lambda text: _line(text, "Pss:") << 10) for each in living)

    def written(self, living: Sequence[Process]) -> int:
        """Bytes that all together wrote, to whatever file or pipe. 0 without /proc."""
        return sum(_number(each.pid, "io", lambda text: _line(text, "wchar:")) for each in living)


def _number(pid: int, name: str, read: Callable[[str], int]) -> int:
    """A number of a process; 0 where it has ended, or may not be looked at."""
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        return read((PROC / str(pid) / name).read_text())
    return 0


def _line(text: str, key: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(key))


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Meanwhile processes below this one that lose their parent become its children (Linux)."""
    if not sys.platform.startswith("linux"):
        yield
        return
    prctl = ctypes.CDLL(None).prctl
    before = ctypes.c_int(0)
    prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


PROBE_SECONDS = 5.0
PROBED = 1 << 30, 64
"""Bytes and tasks that are asked for when it is tried."""

SHOW = 'cd "/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/self/cgroup)" && cat memory.max pids.max'
"""Prints the limits that really hold in the cgroup of this command."""


@contextlib.contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], memory: int, tasks: int, seconds: float, **how: Any
) -> Iterator[tuple[subprocess.Popen[bytes], Family]]:
    """Start a command, in a cgroup of its own where one can be made; at the end all that came of it is ended.

    Args:
        command: The command.
        environment: What it gets, and not what systemd-run needs.
        memory: Bytes, in the cgroup.
        tasks: Processes and threads there.
        seconds: From the clock.
        how: Streams and folder, as `subprocess.Popen` takes them.
    """
    mark = secrets.token_hex(16)
    environment = {**environment, MARK: mark}
    name, words = f"tui-transformer-{secrets.token_hex(8)}.scope", list[str]()
    if program := _program():
        own = ("env", "-i", *(f"{key}={value}" for key, value in environment.items()))
        words = [*_words(program, memory, tasks, seconds), f"--unit={name}", "--", *own]
    with adopting(), guarded(mark):
        before = every()
        process = subprocess.Popen(  # noqa: S603 - Python itself, with a path of our own
            [*words, *command],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=None if words else environment,
            **how,
        )
        family = Family(process.pid, before, f"{MARK}={mark}")
        try:
            yield process, family
        finally:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGSTOP)  # none of them starts others meanwhile
                family.end()
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            if words:
                _run(["systemctl", "--user", "kill", "--signal=SIGKILL", name])
            process.wait()


@contextlib.contextmanager
def guarded(mark: str) -> Iterator[None]:
    """Meanwhile a process waits beside this one, and ends what has a mark should this one be killed."""
    command = [sys.executable, "-I", "-S", __file__, mark]
    null = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - Python itself
        command, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True
    ) as process:
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.communicate(b"done")


def guard(mark: str) -> None:
    """End all that has a mark, unless this is told before the end of its input that it is done."""
    if sys.stdin.buffer.read():
        return
    until = time.monotonic() + PATIENCE
    while (left := _left(f"{MARK}={mark}")) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE)


def _left(mark: str) -> list[int]:
    """The processes with a mark in their environment."""
    left = []
    for each in every(mark).values():
        marked = each.marked
        with contextlib.suppress(OSError):
            marked = marked or mark.encode() in (PROC / str(each.pid) / "environ").read_bytes()
        left += [each.pid] if marked and not each.ended else []
    return left


def describe_limits() -> str:
    """How far limits go on this system, for the learner or teacher; "" where they hold for all processes together."""
    if _program():
        return ""
    if sys.platform == "win32":
        return "only the time of an answer is limited on this system"
    watched = ", and all together are watched" if sys.platform.startswith("linux") else ""
    return f"limits hold for each process of an answer alone{watched}: systemd-run makes no cgroup here"


def _program() -> str:
    """systemd-run where it works; else ""."""
    program = shutil.which("systemd-run")
    return program if program and _works(program) else ""


@functools.cache
def _works(program: str) -> bool:
    return _run([*_words(program, *PROBED, 60.0), "--", "sh", "-c", SHOW]).split() == [str(each) for each in PROBED]


def _words(program: str, memory: int, tasks: int, seconds: float) -> list[str]:
    limits = (f"MemoryMax={memory}", "MemorySwapMax=0", f"TasksMax={tasks}", f"RuntimeMaxSec={seconds + 5:.0f}")
    return [program, "--user", "--scope", "--quiet", "--collect", *(f"--property={each}" for each in limits)]


def _run(command: Sequence[str]) -> str:
    """What a command prints; "" where it fails."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        ended = subprocess.run(  # noqa: S603 - ps, or systemd's own
            command, capture_output=True, timeout=PROBE_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        return "" if ended.returncode else ended.stdout.decode(errors="replace")
    return ""


if __name__ == "__main__":
    guard(sys.argv[1])
