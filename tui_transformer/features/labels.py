"""What people call features: a table of numbers and labels, as CSV or as Neuronpedia exports them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.files import expanded, is_file, json_object, named, open_text, read_json_list

NUMBER, LABEL = ("feature", "index", "id"), ("label", "description", "explanation")
"""What the columns, or keys, of a feature's number and of its label may be called."""

LARGEST = 1 << 28
LARGEST_NUMBER = 1 << 40


def read_labels(path: str | Path) -> dict[int, str]:
    """The labels of features by their numbers; of several for one feature the first.

    Args:
        path: A CSV file with a line of names, or a number and a label a line; a JSON list of objects (.json), or an
            object a line (.jsonl).

    Raises:
        InputError: It is none of these, or has no labels.
    """
    place = expanded(path)
    labels: dict[int, str] = {}
    try:
        for number, label in _pairs(place):
            if label:
                labels.setdefault(number, label)
    except (ValueError, TypeError, RecursionError, OSError, csv.Error) as error:
        raise InputError(f"{named(place)}: no labels of features: write lines such as 12,a label") from error
    if not labels:
        raise InputError(f"{named(place)}: there is no label in it")
    return labels


def _pairs(path: Path) -> Iterator[tuple[int, str]]:
    if path.suffix == ".json":
        yield from map(_pair, read_json_list(path, LARGEST))
        return
    with open_text(path) as file:
        if path.suffix in (".jsonl", ".ndjson"):
            where = f"{named(path)}, line"
            lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
            yield from (_pair(json_object(line, f"{where} {number:,}")) for number, line in lines)
        else:
            yield from _of_csv(csv.reader(file))


def _of_csv(lines: Iterable[list[str]]) -> Iterator[tuple[int, str]]:
    """A line of names first, or none: the number is then in front."""
    names: list[str] | None = None
    for line in lines:
        if not line:
            continue
        if names is None:
            lower = [cell.strip().lower() for cell in line]
            names = lower if any(cell in NUMBER for cell in lower) else [NUMBER[0], LABEL[0]]
            if names is lower:
                continue
        yield _pair(dict(zip(names, line, strict=False)))


def _pair(given: Mapping[str, Any]) -> tuple[int, str]:
    number, label = (next((given[name] for name in among if name in given), None) for among in (NUMBER, LABEL))
    if isinstance(number, bool) or not isinstance(number, int | str) or not isinstance(label, str):
        raise TypeError("neither a number nor a label")
    value = int(number) if isinstance(number, int) or len(number) < 20 else -1
    if not 0 <= value < LARGEST_NUMBER:
        raise ValueError("no number of a feature")
    return value, label.strip()


OWN = "labels.csv"
"""The file of a dictionary's labels, where they lie beside it."""


def own_labels(folder: Path | None) -> dict[int, str]:
    """The labels beside a dictionary; none where there are none."""
    path = None if folder is None else folder / OWN
    return read_labels(path) if path is not None and is_file(path) else {}
