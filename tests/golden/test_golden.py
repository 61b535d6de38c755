"""What users see is what was frozen; and the comparison notices what it has to notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import store
from tests.golden.compare import differences, same_line
from tests.golden.coverage import unused
from tests.golden.parts import PARTS

ROOT = Path(__file__).parents[2]


TABLES = ("keys", "help", "library-names", "library-results")
"""What is the same on every machine; outputs and screens are compared by hand, before and after a rebuilding."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_users_see_is_as_it_was_frozen() -> None:
    """In a process of its own, which nothing else has changed."""
    command = [sys.executable, "-m", "tests.golden", *TABLES]
    ended = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-2000:]}"


def test_every_command_and_option_has_a_case() -> None:
    assert unused() == {}


def test_every_part_is_frozen_and_nothing_else() -> None:
    files = {path.name.partition(".")[0] for path in store.FROZEN.iterdir()}
    assert files == set(PARTS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss  1.23456", "loss  1.23457"),
        ("loss  1.23456", "loss  1.23463"),
        ("p  0.00000", "p  -0.00000"),
        ("x  9.9999", "x 10.0000"),
        ("difference 2.2e-16", "difference 4.1e-17"),
        ("│ 1.2345  0.5678 │", "│ 1.2346  0.5677 │"),
    ],
)
def test_what_rounding_explains_is_the_same(one: str, other: str) -> None:
    assert same_line(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss  1.23456", "loss  1.24456"),
        ("p  .312", "p  .313"),
        ("p  0.31", "p  0.32"),
        ("head 2 of 4", "head 3 of 4"),
        ("layer  heads", "layer  head"),
        ("layer  heads", "layer heads"),
        ("1.2345  a", "1.2345   a"),
        ("abcd│x", "abce│x"),
        ("fill: #12e456", "fill: #12e457"),
        ("3 of 5", "3 of 5 of them"),
    ],
)
def test_what_rounding_does_not_explain_is_noticed(one: str, other: str) -> None:
    assert not same_line(one, other)
    assert differences(f"before\n{one}\nafter", f"before\n{other}\nafter") == [f"- {one}", f"+ {other}"]


def test_a_line_that_is_new_is_the_only_difference() -> None:
    assert differences("a 1.5\nc 2.5", "a 1.5\nb\nc 2.5") == ["+ b"]


def test_cases_are_read_as_they_were_written(tmp_path: Path) -> None:
    cases = {"one": "a\nb", "none": "", "long": "word " * store.MOST_BYTES}
    store.write(tmp_path, "file", cases)
    assert (tmp_path / "file.txt.gz").exists()
    assert store.compared(store.read(tmp_path, "file"), cases) == {}
    assert set(store.compared(store.read(tmp_path, "file"), {"one": "a\nc", "new": "x"})) == {
        "one",
        "none",
        "long",
        "new",
    }
