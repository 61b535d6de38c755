"""Limits of all processes of an answer together, where systemd-run makes a cgroup for them.

That takes a user's systemd to which cgroups v2 with the controllers of memory and pids are delegated. Nothing is
believed: limits are asked for once, and a command reads in its cgroup whether they hold. Elsewhere (cgroups v1,
containers without systemd, macOS) there is no scope, and other things hold:

- `child.py` limits each process so hard that an answer cannot raise it: memory, time of the processor, size of a file.
- `running.py` looks at all together every few hundredths of a second (their number, memory and what they wrote, by
  `processes.py`; their folder, by `scratch.py`) and ends them at the first that is too much.
- At the end all that they started is found and ended, whatever group or session it went to.

What only the cgroup does: it refuses memory and processes before they are taken. Without it, all together may go beyond
their limits between two looks, by as much as each process may take alone.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass

PROBE_SECONDS = 5.0
PROBED = 1 << 30, 64
"""Bytes and tasks that are asked for when it is tried."""

SHOW = 'cd "/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/self/cgroup)" && cat memory.max pids.max'
"""Prints the limits that really hold in the cgroup of this command."""


@dataclass(frozen=True)
class Scope:
    """A cgroup by the name that systemd has for it; "" where there is none.

    Attributes:
        words: What a command begins with that is to run in it.
    """

    name: str = ""
    words: tuple[str, ...] = ()

    def end(self) -> None:
        """End whatever runs in it."""
        if self.name:
            _run(["systemctl", "--user", "kill", "--signal=SIGKILL", self.name])


def scope(memory: int, tasks: int, seconds: float, environment: dict[str, str]) -> Scope:
    """A cgroup of its own for a command, with limits.

    Args:
        memory: Bytes.
        tasks: Processes and threads.
        seconds: From the clock.
        environment: What the command gets, and not what systemd-run needs.
    """
    program = _program()
    if not program:
        return Scope()
    name = f"tui-transformer-{secrets.token_hex(8)}.scope"
    own = ("env", "-i", *(f"{key}={value}" for key, value in environment.items()))
    return Scope(name, (*_words(program, memory, tasks, seconds), f"--unit={name}", "--", *own))


def limits_said() -> str:
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


def _run(command: list[str]) -> str:
    """What a command prints; "" where it fails."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        ended = subprocess.run(  # noqa: S603 - systemd's own
            command, capture_output=True, timeout=PROBE_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        return "" if ended.returncode else ended.stdout.decode(errors="replace")
    return ""
