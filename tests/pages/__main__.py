"""The pages that list what the program has: compare them with the program, or write them anew."""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import re
import sys

from tests.pages.made import FOLDER, PAGES, filled, written

MEASURED = r"\d\.\de[-+]\d+"
"""A difference, which another machine rounds otherwise."""


def main() -> int:
    """Write the pages that are not as they should be; 1 where they are only compared and one is not.

    Of pages that nobody names, those that differ in more than what was measured.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("pages", nargs="*", help="only these: " + ", ".join(PAGES))
    parser.add_argument("--write", action="store_true", help="write them anew")
    given = parser.parse_args()
    stale = 0
    for name in given.pages or PAGES:
        now, wanted = written(name), filled(name)
        if now != wanted and (given.pages or re.sub(MEASURED, "", now) != re.sub(MEASURED, "", wanted)):
            stale += 1
            print(f"{name} is not what the program has")
            if given.write:
                (FOLDER / name).write_text(wanted, encoding="utf-8")
    return int(bool(stale) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
