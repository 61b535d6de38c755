"""A learner's function or program, run in a process of its own with limits of time, memory and disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.course.sources import Given
from tui_transformer.course.text_files import write_inputs
from tui_transformer.diagnosis.dumps.npz_reader import open_trace
from tui_transformer.engine.backend import Host
from tui_transformer.errors import InputError
from tui_transformer.files import read_json

CHILD = Path(__file__).with_name("child.py")
LARGEST_RESULT = 1 << 20
MOST_PRINTED = 1 << 24
"""Bytes of what a program prints that are read."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
"""Threads take memory each, and exercises are small."""


@dataclass(frozen=True)
class Limits:
    """Limits of a learner's code.

    Attributes:
        seconds: From the clock.
        memory: Bytes.
        disk: Bytes of a file that it writes.
    """

    seconds: float = 10.0
    memory: int = 2 << 30
    disk: int = 1 << 26


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
    failed: Mapping[str, str]
    printed: str
    errors: str = ""

    def why(self, function: str) -> str | None:
        """Why a function has no answer; None where it has one."""
        reason = self.failed.get("") or self.failed.get(function)
        return reason or (None if function in self.arrays else "gives no answer")


def run_python(
    file: Path, functions: Sequence[str], inputs: Mapping[str, Given], answers: Sequence[str], limits: Limits
) -> Ran:
    """Functions of a file, each given the inputs by name."""
    with _folder() as folder:
        np.savez(folder / "input.npz", **dict(_flat(inputs)))
        job = {"file": str(file.resolve()), "functions": list(functions), "answers": list(answers)}
        failed = _ended(folder, job, limits)
        arrays = {} if failed else _arrays(folder, functions, len(answers))
        return Ran(arrays, failed or _result(folder), _text(folder / "printed"), _text(folder / "errors"))


def run_command(command: Sequence[str], inputs: Mapping[str, Given], limits: Limits) -> Ran:
    """A program that is given a folder of text files, the path of which is its last argument."""
    with _folder() as folder:
        place = folder / "inputs"
        place.mkdir()
        write_inputs(place, inputs)
        failed = _ended(folder, {"command": [*command, str(place)]}, limits)
        return Ran({}, failed or _result(folder), _text(folder / "printed"), _text(folder / "errors"))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(prefix="tui-transformer-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise InputError(f"{tempfile.gettempdir()}: cannot be written: {error.strerror}") from error


def _flat(inputs: Mapping[str, Given]) -> Iterator[tuple[str, Any]]:
    """Arrays for one file; weights by name below the name of the input."""
    for name, given in inputs.items():
        if isinstance(given.value, dict):
            yield from ((f"{name}/{below}", array) for below, array in given.value.items())
        else:
            yield name, np.asarray(given.value)


def _ended(folder: Path, job: Mapping[str, Any], limits: Limits) -> dict[str, str]:
    """Run a job to its end; why it came to none."""
    most = {"memory": limits.memory, "seconds": int(limits.seconds) + 1, "disk": limits.disk}
    (folder / "job.json").write_text(json.dumps({**job, **most}), encoding="utf-8")
    with (folder / "printed").open("wb") as printed, (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - Python itself, with a path of our own
            [sys.executable, "-P", "-X", "utf8", str(CHILD), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
            start_new_session=True,
            env={**os.environ, **ONE_THREAD},
        )
        try:
            code = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            return {"": f"does not end within {limits.seconds:g} s: is there an endless loop?"}
        finally:
            _end(process)
    if (folder / "result.json").exists():
        return {}
    if code == 0 and "command" in job:
        return {}
    return {"": _said(code)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _said(code: int) -> str:
    """Why a process ended that ended early."""
    if code >= 0:
        return f"ends with exit code {code}, without an answer"
    number = -code
    if number == getattr(signal, "SIGXCPU", None):
        return "takes more time than it may: is there an endless loop?"
    if number == getattr(signal, "SIGXFSZ", None):
        return "writes more than it may"
    return f"was ended by signal {number} ({signal.strsignal(number) or 'unknown'})"


def _result(folder: Path) -> dict[str, str]:
    """Why functions failed, as the process wrote it."""
    path = folder / "result.json"
    raw = read_json(path, LARGEST_RESULT) if path.exists() else {}
    return {name: text for name, text in raw.items() if isinstance(text, str)}


def _arrays(folder: Path, functions: Sequence[str], count: int) -> dict[str, tuple[Host, ...]]:
    path = folder / "answer.npz"
    if not path.exists() or not path.stat().st_size:
        return {}
    try:
        file = open_trace(path)
    except InputError:  # no function gave one, or the learner's code wrote it itself
        return {}
    names = {name: [f"{name}/{i}" for i in range(count)] for name in functions}
    return {
        name: tuple(file.read(each) for each in keys)
        for name, keys in names.items()
        if all(each in file.entries for each in keys)
    }


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_PRINTED).decode("utf-8", errors="replace")
