"""What README and pages say is what the program has, and what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from benchmarks import parity
from tests.golden.program import alone, run
from tests.pages.made import FOLDER, MARK, PAGES, ROOT, filled, written

README = (ROOT / "README.md").read_text(encoding="utf-8")
PRINTED = re.findall(r"`(tui-transformer [^`\n]+)`\n\n```\n(.*?)```", README, re.DOTALL)
MOST_LINES = 130

EXACT = {"bloom": 2e-9, "marian": 3e-7}
"""References that hold some values in float32, and how far these may be from float64."""


@pytest.mark.parametrize("name", [name for name in PAGES if name != "PARITY.md"])
def test_a_page_lists_what_the_program_has(name: str) -> None:
    assert written(name) == filled(name), "python -m tests.pages --write"


def test_the_page_of_parity_has_every_reference_within_its_bound() -> None:
    rows = [re.findall(r"[^|` ]+", line) for line in written("PARITY.md").partition(MARK)[2].splitlines()[3:] if line]
    assert [name for name, *_ in rows] == [folder.name for folder in parity.folders()]
    for name, exact, single, _ in rows:
        assert float(exact) < EXACT.get(name, 1e-9), name
        assert float(single) < 1e-4, name


def test_a_row_of_parity_is_what_is_measured() -> None:
    found = parity.differences(parity.REFERENCES / "t5", "float64")
    (row,) = re.findall(r"^\| `t5` \| (\S+) \| (\S+) \| (\d+) \|$", written("PARITY.md"), re.MULTILINE)
    assert found.arrays == int(row[2])
    assert found.absolute < 10 * float(row[0])


def test_the_readme_is_a_page() -> None:
    assert len(README.splitlines()) <= MOST_LINES


@pytest.mark.parametrize(("command", "lines"), PRINTED, ids=[command for command, _ in PRINTED])
def test_a_command_of_the_readme_prints_what_stands_below_it(command: str, lines: str) -> None:
    with alone():
        said = run(shlex.split(command)[1:]).out
    assert lines in said


def test_the_readme_shows_what_commands_print() -> None:
    assert len(PRINTED) == 2


@pytest.mark.parametrize("page", [ROOT / "README.md", *(FOLDER / name for name in PAGES)], ids=lambda path: path.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
