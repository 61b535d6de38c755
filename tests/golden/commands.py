"""The cases of `cases/*.toml`: lines of a shell, one after the other in one folder, and all that they say and write."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from safetensors.numpy import load_file

from tests.golden.program import LINKS, Ended, alone, masked, run

CASES = Path(__file__).parent / "cases"
LONGEST = 400
"""Characters of a line that are kept; what is behind them is counted."""


@dataclass(frozen=True)
class Case:
    """Lines that are run, what they read, and what of their answers is never the same."""

    lines: tuple[str, ...]
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    masks: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def groups() -> dict[str, dict[str, Case]]:
    """All cases: by the file that has them, and their names in it."""
    return {path.stem: _cases(path) for path in sorted(CASES.glob("*.toml"))}


def _cases(path: Path) -> dict[str, Case]:
    with path.open("rb") as file:
        table = tomllib.load(file)
    always = table.pop("with", "")
    return {name: _case(given, path.stem, always) for name, given in table.items()}


def _case(given: Any, group: str, always: str) -> Case:
    """A case as it is written: a line, several, or a table of lines and what they need."""
    table = given if isinstance(given, dict) else {"run": given}
    lines = [table["run"]] if isinstance(table["run"], str) else table["run"]
    own = (f"{line} {always}" if always and line.split()[0] == group else line for line in lines)
    hidden = tuple(table.get("hidden", ()))
    return Case(tuple(own), table.get("stdin", ""), table.get("files", {}), tuple(table.get("masks", ())), hidden)


def result(case: Case) -> str:
    """Everything that the lines of a case say, their exit codes, and the files that they write."""
    with alone() as here:
        for name, text in case.files.items():
            (here / name).write_text(text, encoding="utf-8")
        given = {path: path.read_bytes() for path in _files(here)}
        told = [part for line in case.lines for part in _told(line, run(shlex.split(line), case.stdin))]
        for path in _files(here):
            if given.get(path) != path.read_bytes():
                name = path.relative_to(here).as_posix()
                told += [
                    f"--- wrote {name}",
                    "…" if any(Path(name).match(each) for each in case.hidden) else content(path),
                ]
        text = masked("\n".join(told), here)
    for mask in case.masks:
        text = re.sub(mask, lambda found: f"{found[1] if found.re.groups else ''}{{…}}", text, flags=re.MULTILINE)
    return "\n".join(line[:LONGEST] + f"… {len(line)}" if len(line) > LONGEST else line for line in text.split("\n"))


def _told(line: str, ended: Ended) -> Iterator[str]:
    yield f"$ {line}"
    yield f"--- exit {ended.code}"
    yield from filter(None, [ended.out.rstrip("\n")])
    if ended.err:
        yield "--- said"
        yield "\n".join(part.rsplit("\r", 1)[-1] for part in ended.err.rstrip("\n").split("\n"))


def _files(here: Path) -> list[Path]:
    found = (path for path in here.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in found if path.relative_to(here).parts[0] not in LINKS)


def content(path: Path) -> str:
    """What a file holds, as text: arrays with their sizes and some of their numbers, a picture by its words."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return "\n".join(_array(name, file[name]) for name in file.files)
    if path.suffix == ".npy":
        return _array("array", np.load(path))
    if path.suffix == ".safetensors":
        return "\n".join(_array(name, array) for name, array in sorted(load_file(path).items()))
    if path.suffix == ".png":
        return f"a picture: {path.read_bytes()[:4]!r}"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return f"{path.stat().st_size} bytes, {zlib.crc32(path.read_bytes())}"
    return _screen(text) if path.suffix == ".svg" and "rich-terminal" in text else text.rstrip("\n")


def _screen(text: str) -> str:
    """The lines of a picture of a screen."""
    lines: dict[str, str] = {}
    for each in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text"):  # noqa: S314 - of the program
        lines[each.get("y", "")] = lines.get(each.get("y", ""), "") + (each.text or "").replace("\xa0", " ")
    return "\n".join(map(str.rstrip, lines.values()))


def _array(name: str, array: np.ndarray[Any, Any]) -> str:
    if array.dtype.kind in "fiub" and array.size:
        flat = array.astype(np.float64).ravel()
        some = [np.abs(flat).mean(), flat[0], flat[len(flat) // 3], flat[-1]]
        return f"{name} {array.dtype} {array.shape}: mean size {some[0]:.5g}; {' '.join(f'{x:.5g}' for x in some[1:])}"
    return f"{name} {array.dtype} {array.shape} {json.dumps(array.tolist())}"
