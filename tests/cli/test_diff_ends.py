"""`diff` with a long log is ended by a signal while it reads."""

from __future__ import annotations

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
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        _wait_until_open(process.pid, path)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, b"", b"")
    assert time.monotonic() - begun < 3  # far less than reading it takes, or a busy machine may


def _wait_until_open(process: int, path: Path) -> None:
    until = time.monotonic() + 30
    while not any(_target(each) == path for each in Path(f"/proc/{process}/fd").iterdir()):
        assert time.monotonic() < until
        time.sleep(0.005)


def _target(link: Path) -> Path | None:
    try:
        return link.readlink()
    except OSError:
        return None
