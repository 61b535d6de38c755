"""Measure every subject in a process of its own: `python -m benchmarks [--quick] [SUBJECT…]`.

The exit code says whether everything could be measured, not how fast the machine is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from benchmarks.measure import QUICK

SUBJECTS = (
    "start",
    "keys",
    "written",
    "forward",
    "memory",
    "learning",
    "checkpoint",
    "quantized",
    "recording",
    "ablating",
    "generation",
    "language_model",
    "parity",
    "survey",
    "studies",
    "searches",
    "gpu",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the program promises.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"{', '.join(SUBJECTS)}; all by default")
    parser.add_argument(QUICK, action="store_true", help="fewer repetitions")
    parser.add_argument("--reference", metavar="PYTHON", help="an interpreter that has torch, transformers and more")
    parser.add_argument("--threads", metavar="N", help="threads of each side beside another program; all by default")
    options = parser.parse_args()
    unknown = [name for name in options.subjects if name not in SUBJECTS]
    if unknown:
        parser.error(f"no subject is called {unknown[0]!r}: use {', '.join(SUBJECTS)}")
    flags = [QUICK] if options.quick else []
    for name in ("reference", "threads"):
        if getattr(options, name):
            flags += [f"--{name}", getattr(options, name)]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode, too
    failed = 0
    for name in options.subjects or SUBJECTS:
        print(name, flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *flags], check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
