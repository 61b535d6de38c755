"""Faults planted into a copy of the package, one by one but for those of its structure: the test of each has to fail.

`python tests/faults/plant.py` says what is wrong and ends with 1 where a fault is not noticed, where a test fails
without it, or where the source no longer has the line; with `--tested` the tests are known to pass without a fault.

Every test runs in a process of its own, forked from one that has imported pytest and the libraries, and nothing of the
package: starting Python for each took most of the time.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from multiprocessing import get_context
from pathlib import Path

import pytest
from fault import Fault
from of_the_structure import OF_THE_STRUCTURE
from table import FAULTS

ROOT = Path(__file__).parents[2]
PACKAGE = "tui_transformer"
SOME_FAILED = 1
"""With which pytest ends where tests ran and failed; a fault that only breaks an import proves nothing."""

PATIENCE, WAITING = 300, 10
"""Seconds that a test may take, and that it waits for what a fault may keep from ever coming."""

LAST = 2000
"""Characters of what pytest says that are shown."""


def main() -> None:
    """Plant them all, as many at a time as there are processors, and one more: some tests wait."""
    wrong = list(_wrong(tested="--tested" in sys.argv))
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


def _wrong(*, tested: bool) -> Iterator[str]:
    missing = missing_from(ROOT / PACKAGE, (*FAULTS, *OF_THE_STRUCTURE))
    yield from missing.values()
    planted = [fault for fault in FAULTS if fault not in missing]
    together = [fault for fault in OF_THE_STRUCTURE if fault not in missing]
    _import_libraries()
    with (
        tempfile.TemporaryDirectory() as folder,
        get_context("fork").Pool((os.cpu_count() or 1) + 1, _settle, [folder]) as pool,
    ):
        right = None if tested else pool.apply_async(_tested, [[fault.test for fault in FAULTS]])
        structure = pool.apply_async(_tested, [sorted({each.test.partition("::")[0] for each in together}), together])
        for fault, (code, said) in zip(planted, pool.imap(_alone, planted), strict=True):
            if code != SOME_FAILED:
                why = "is not noticed" if not code else f"ends pytest with {code}:\n{said[-LAST:]}"
                yield f"{fault.file}, {fault.what}: planted, {why} by {fault.test}"
        if right and right.get()[0]:
            yield f"without a fault:\n{right.get()[1][-LAST:]}"
        yield from _unnoticed(together, *structure.get())


def _unnoticed(faults: Sequence[Fault], code: int, said: str) -> list[str]:
    """The faults of the structure, all of them planted, whose test does not fail."""
    if code != SOME_FAILED:
        return [f"with all faults of the structure pytest ends with {code}:\n{said[-LAST:]}"]
    failed = {line.split()[1] for line in said.splitlines() if line.startswith("FAILED ")}
    return [f"{each.file}, {each.what}: not noticed by {each.test}" for each in faults if each.test not in failed]


def _import_libraries() -> None:
    """Import what pytest, its plugins and the package import."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PATIENCE": str(WAITING)}
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as empty, redirect_stdout(StringIO()):
        pytest.main(["-c", os.devnull, empty])  # which itself imports its plugins: it changes their assertions
    script = f"import sys, {PACKAGE}.cli.main, {PACKAGE}.explorer.app; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in imported.stdout.split():
        if name.partition(".")[0] != PACKAGE:
            with suppress(ImportError):
                importlib.import_module(name)


def _settle(folder: str) -> None:
    """Make the copy that a process plants its faults into, and work there."""
    copy = Path(tempfile.mkdtemp(dir=folder))
    for name in ("tests", "vocabularies", "benchmarks", "screenshots", "pyproject.toml"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / PACKAGE, copy / PACKAGE)  # with what Python made of it: little is compiled again
    shutil.copy2(ROOT / "ARCHITECTURE.md", copy)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path.insert(0, str(copy))


def _alone(fault: Fault) -> tuple[int, str]:
    return _tested([fault.test], [fault], "-x")


def _tested(tests: Sequence[str], faults: Sequence[Fault] = (), *options: str) -> tuple[int, str]:
    """With what pytest ends, and what it says, on the copy with the faults; then they are taken out again."""
    for fault in faults:
        path = Path(PACKAGE, fault.file)
        path.parent.mkdir(exist_ok=True)
        path.write_text(_text(path).replace(fault.line, fault.planted) if fault.line else fault.planted, "utf-8")
    try:
        return _run("-n", "0", "-p", "no:cacheprovider", *options, *tests)
    finally:
        for path in {Path(PACKAGE, fault.file) for fault in faults}:
            if (ROOT / path).exists():
                shutil.copy2(ROOT / path, path)  # with its time: what was compiled of it holds again
            else:
                path.unlink()


def _run(*arguments: str) -> tuple[int, str]:
    """The code and the output of pytest, in a process that is forked from this one."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            code = pytest.main([*arguments])
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read()


if __name__ == "__main__":
    main()
