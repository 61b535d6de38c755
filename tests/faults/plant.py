"""Faults planted into a copy of the package, one by one but for those of its structure: the test of each has to fail.

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
from of_the_structure import OF_THE_STRUCTURE
from table import FAULTS

ROOT = Path(__file__).parents[2]
PACKAGE = "tui_transformer"
SOME_FAILED = 1
"""With which pytest ends where tests ran and failed; a fault that only breaks an import proves nothing."""

PATIENCE = 300
LAST = 2000
"""Characters of what pytest says that are shown."""


def main() -> None:
    """Plant them all, as many at a time as there are processors."""
    wrong = list(_wrong())
    if wrong:
        sys.exit("\n".join(wrong))
    sys.stdout.write(f"{len(FAULTS) + len(OF_THE_STRUCTURE)} planted faults, all noticed\n")


def missing_from(package: Path, faults: Sequence[Fault]) -> dict[Fault, str]:
    """The faults whose line is not there once, and what to say of each."""
    return {
        fault: f"{fault.file} does not have this once: {fault.line!r}: bring the table up to date"
        for fault in faults
        if fault.line and _text(package / fault.file).count(fault.line) != 1
    }


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""


def _wrong() -> Iterator[str]:
    missing = missing_from(ROOT / PACKAGE, (*FAULTS, *OF_THE_STRUCTURE))
    yield from missing.values()
    planted = [fault for fault in FAULTS if fault not in missing]
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        right = workers.submit(_tested, [fault.test for fault in FAULTS])
        together = workers.submit(_structure, [fault for fault in OF_THE_STRUCTURE if fault not in missing])
        for fault, (code, said) in zip(planted, workers.map(_alone, planted), strict=True):
            if code != SOME_FAILED:
                why = "is not noticed" if not code else f"ends pytest with {code}:\n{said[-LAST:]}"
                yield f"{fault.file}, {fault.what}: planted, {why} by {fault.test}"
    code, said = right.result()
    if code:
        yield f"without a fault:\n{said[-LAST:]}"
    yield from together.result()


def _alone(fault: Fault) -> tuple[int, str]:
    return _tested([fault.test], [fault], "-x")


def _structure(faults: Sequence[Fault]) -> list[str]:
    """The faults of the structure whose test does not fail, all of them planted."""
    code, said = _tested(sorted({fault.test.partition("::")[0] for fault in faults}), faults)
    if code != SOME_FAILED:
        return [f"with all faults of the structure pytest ends with {code}:\n{said[-LAST:]}"]
    failed = {line.split()[1] for line in said.splitlines() if line.startswith("FAILED ")}
    return [f"{each.file}, {each.what}: not noticed by {each.test}" for each in faults if each.test not in failed]


def _tested(tests: Sequence[str], faults: Sequence[Fault] = (), *options: str) -> tuple[int, str]:
    """With what pytest ends, and what it says, on a copy of the package that has the faults."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("tests", "vocabularies", "benchmarks", "screenshots", "pyproject.toml"):
            (copy / name).symlink_to(ROOT / name)
        shutil.copy(ROOT / "ARCHITECTURE.md", copy)
        shutil.copytree(ROOT / PACKAGE, copy / PACKAGE)  # with what Python made of it: little is compiled again
        for fault in faults:
            path = copy / PACKAGE / fault.file
            path.parent.mkdir(exist_ok=True)
            path.write_text(_text(path).replace(fault.line, fault.planted) if fault.line else fault.planted, "utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *options, *tests]
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    return done.returncode, done.stdout


if __name__ == "__main__":
    main()
