"""The log of a run, read: a line a step. What is broken in it is left out: a run goes on, and is looked at, without."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import is_file, open_text

LOGS = ("log.jsonl", "log.csv")
"""The files in a run's folder that its log may be."""


LONGEST = 1 << 16
"""Characters of a line, at most."""

LAST = 1 << 53
"""No step is later: below it floats hold every whole number."""


def logged(folder: Path) -> Iterator[Mapping[str, float]]:
    """The lines of a run's log by column, numbers only, each with its step; nothing where there is none."""
    path = next((folder / name for name in LOGS if is_file(folder / name)), None)
    if path is None:
        return
    with suppress(InputError, OSError, UnicodeDecodeError, csv.Error), open_text(path) as file:
        lines = iter(lambda: file.readline(LONGEST), "")
        rows = csv.DictReader(lines) if path.suffix == ".csv" else _objects(lines)
        for row in rows:
            numbers = _numbers(row)
            step = numbers.get("step", math.nan)
            if 0 <= step < LAST and step.is_integer():
                yield numbers


def _objects(lines: Iterator[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        with suppress(ValueError, RecursionError):  # the last line of a run that was killed may be cut
            row = json.loads(line)  # a line that is not JSON is left out, not said
            if isinstance(row, dict):
                yield row


def _numbers(row: Mapping[Any, Any]) -> dict[str, float]:
    numbers = {}
    for name, value in row.items():
        with suppress(TypeError, ValueError, OverflowError):
            numbers[str(name)] = float(value)
    return numbers
