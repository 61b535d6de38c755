"""`diff` with a long log is ended by a signal while it reads."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "tui_transformer", "diff", "encoder")
LOGS = {
    "headings": "scores of {}:\n" * 8,
    "one line": "0.125 1 {} ",
    "rows": "0.125 1 {}\n",
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the files that a process has open")
@pytest.mark.parametrize("kind", LOGS)
def test_sigterm_ends_a_log_that_is_read_within_a_moment(kind, environment, tmp_path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(LOGS[kind].replace("{}", str(i)) for i in range(500)) * 2000)
    command = [*COMMAND, str(path)]
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    others = usage.ru_utime + usage.ru_stime
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        _wait_until_open(process.pid, path)
        process.send_signal(signal.SIGTERM)
        before = _used(process.pid)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err) == (143, b"", b"")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - others - before < 2  # of the processor: far less than reading it takes


def _used(process: int) -> float:
    """Seconds of the processor that a process has used."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def _wait_until_open(process: int, path: Path) -> None:
    until = time.monotonic() + 60
    while not any(_target(each) == path for each in Path(f"/proc/{process}/fd").iterdir()):
        assert time.monotonic() < until
        time.sleep(0.005)


def _target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except OSError:
        return None
