"""The frozen outputs: files of cases below a line with the name of each."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from tests.golden.compare import differences

FROZEN = Path(__file__).parent / "frozen"
HEAD = "═══ "
MOST_BYTES = 60_000
"""A larger file is compressed."""

Cases = Mapping[str, str]
"""What each case gave, by its name."""


def read(folder: Path, name: str) -> Cases:
    """The cases of a file; none where it is not there."""
    plain, packed = folder / f"{name}.txt", folder / f"{name}.txt.gz"
    if packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    elif plain.exists():
        text = plain.read_text(encoding="utf-8")
    else:
        return {}
    parts = ("\n" + text).split(f"\n{HEAD}")[1:]
    return dict(part.split("\n", 1) if "\n" in part else (part, "") for part in parts)


def write(folder: Path, name: str, cases: Cases) -> None:
    """Write the cases of a file anew."""
    text = "".join(f"{HEAD}{case}\n{said}\n" for case, said in cases.items())
    data = text.encode()
    plain, packed = folder / f"{name}.txt", folder / f"{name}.txt.gz"
    plain.parent.mkdir(parents=True, exist_ok=True)
    for path in (plain, packed):
        path.unlink(missing_ok=True)
    if len(data) > MOST_BYTES:
        packed.write_bytes(gzip.compress(data, mtime=0))
    else:
        plain.write_bytes(data)


def compared(frozen: Cases, now: Cases) -> dict[str, list[str]]:
    """What differs, by the names of the cases."""
    found = {name: ["- a case that is not there any more"] for name in frozen if name not in now}
    for name, said in now.items():
        if name not in frozen:
            found[name] = ["+ a case that is new: write it"]
        elif told := differences(frozen[name].rstrip("\n"), said.rstrip("\n")):
            found[name] = told
    return found
