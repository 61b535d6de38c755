"""Golden outputs: compare with them what the program says and shows now, or write them anew."""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.update({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
sys.path[:0] = [str(Path(__file__).parents[1])]  # as pytest has it


def main() -> int:
    """Run the parts that are wanted; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("files", nargs="*", help="Only these: show, help, screens-question …")
    parser.add_argument("--write", action="store_true", help="Write them anew.")
    parser.add_argument("--case", help="Only the cases whose names contain this; with --write, of those files all.")
    parser.add_argument("--frozen", type=Path, help="Another folder of frozen outputs.")
    given = parser.parse_args()
    from tests.golden import store
    from tests.golden.parts import PARTS

    folder, failed = given.frozen or store.FROZEN, 0
    unknown = [name for name in given.files if name not in PARTS]
    if unknown:
        parser.error(f"no file {', '.join(unknown)}: {', '.join(PARTS)}")
    for name in given.files or PARTS:
        began = time.monotonic()
        now = PARTS[name]("" if given.write else given.case or "")
        frozen = {case: said for case, said in store.read(folder, name).items() if not given.case or case in now}
        found = store.compared(frozen, now)
        failed += len(found)
        for case, lines in found.items():
            print(f"{name}: {case}", *(f"  {line}" for line in lines if not given.write), sep="\n")
        if given.write and found:
            store.write(folder, name, now)
        print(f"{name}: {len(now)} cases, {len(found)} differ, {time.monotonic() - began:.1f} s", file=sys.stderr)
    return int(bool(failed) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
