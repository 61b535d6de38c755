"""Faults that cannot be planted any more are said, with what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from of_the_structure import OF_THE_STRUCTURE
from plant import PACKAGE, ROOT, missing_from
from table import FAULTS

FAULT = FAULTS[0]


def test_every_line_of_the_table_is_in_the_source():
    if not (ROOT / PACKAGE).is_dir():
        pytest.skip("the package is not beside the tests")
    assert list(missing_from(ROOT / PACKAGE, (*FAULTS, *OF_THE_STRUCTURE)).values()) == []


def test_every_test_of_the_table_is_there():
    for test in (fault.test for fault in (*FAULTS, *OF_THE_STRUCTURE)):
        path, name = test.partition("[")[0].split("::")
        assert re.search(rf"def {name}\(", (ROOT / path).read_text("utf-8")), test


@pytest.mark.parametrize("text", ["", "another line", "{line} and again {line}", None])
def test_a_line_that_is_gone_or_there_twice_is_named_with_its_file(tmp_path: Path, text: str | None):
    fault = replace(FAULT, file="part.py")
    if text is not None:
        (tmp_path / "part.py").write_text(text.format(line=fault.line), "utf-8")
    (said,) = missing_from(tmp_path, [fault]).values()
    assert said == f"part.py does not have this once: {fault.line!r}: bring the table up to date"


def test_a_line_that_is_there_once_is_not_named(tmp_path: Path):
    (tmp_path / "part.py").write_text(f"before\n{FAULT.line}\n", "utf-8")
    assert missing_from(tmp_path, [replace(FAULT, file="part.py")]) == {}
