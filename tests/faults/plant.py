"""Faults planted one by one into a copy of the package: the test that is named for each has to fail.

`python tests/faults/plant.py` says what is wrong and ends with 1 where a fault is not noticed, where a test fails
without it, or where the source no longer has the line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fault import Fault
from table import FAULTS

ROOT = Path(__file__).parents[2]
PACKAGE = "tui_transformer"
SOME_FAILED = 1
"""With which pytest ends where tests ran and failed; a fault that only breaks an import proves nothing."""

PATIENCE = 300


def main() -> None:
    """Plant them all, as many at a time as there are processors."""
    wrong = list(_wrong())
    if wrong:
        sys.exit("\n".join(wrong))
    sys.stdout.write(f"{len(FAULTS)} planted faults, all noticed\n")


def missing_from(package: Path, faults: Sequence[Fault]) -> dict[Fault, str]:
    """The faults whose line is not there once, and what to say of each."""
    return {
        fault: f"{fault.file} does not have this once: {fault.line!r}: bring the table up to date"
        for fault in faults
        if not (package / fault.file).is_file() or (package / fault.file).read_text("utf-8").count(fault.line) != 1
    }


def _wrong() -> Iterator[str]:
    missing = missing_from(ROOT / PACKAGE, FAULTS)
    yield from missing.values()
    code, said = _tested([fault.test for fault in FAULTS])
    if code:
        yield f"without a fault:\n{said}"
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        planted = [fault for fault in FAULTS if fault not in missing]
        for fault, (code, said) in zip(
            planted, workers.map(lambda each: _tested([each.test], each), planted), strict=True
        ):
            if code != SOME_FAILED:
                why = "is not noticed" if not code else f"ends pytest with {code}:\n{said}"
                yield f"{fault.file}, {fault.what}: planted, {why} by {fault.test}"


def _tested(tests: Sequence[str], fault: Fault | None = None) -> tuple[int, str]:
    """With what pytest ends, and what it says, on a copy of the package that has the fault."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("tests", "vocabularies", "pyproject.toml"):
            (copy / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / PACKAGE, copy / PACKAGE)  # with what Python made of it: little is compiled again
        if fault is not None:
            path = copy / PACKAGE / fault.file
            path.write_text(path.read_text("utf-8").replace(fault.line, fault.planted), "utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    return done.returncode, done.stdout[-2000:]


if __name__ == "__main__":
    main()
