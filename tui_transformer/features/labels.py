"""What people call features: a table of numbers and labels, as CSV or as Neuronpedia exports them.

How two columns of a file are read stands here too.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
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
        pairs = (_cells(each, (NUMBER, LABEL)) for each in read_json_list(path, LARGEST))
    else:
        pairs = (pair for pair, _ in read_pairs(path, (NUMBER, LABEL)))
    for number, label in pairs:
        if isinstance(number, bool) or not isinstance(number, int | str) or not isinstance(label, str):
            raise TypeError("neither a number nor a label")
        value = int(number) if isinstance(number, int) or len(number) < 20 else -1
        if not 0 <= value < LARGEST_NUMBER:
            raise ValueError("no number of a feature")
        yield value, label.strip()


Names = tuple[tuple[str, ...], tuple[str, ...]]
"""What the columns, or keys, of two values may be called."""


def read_pairs(path: Path, names: Names, delimiter: str = ",") -> Iterator[tuple[tuple[Any, Any], str]]:
    """The two values of every line of a file, None for one that is not there, and the place of an object.

    A line is an object (.jsonl), or cells, which stand in this order where no line of names is in front. Errors of the
    file and of `csv` are those of Python.
    """
    with open_text(path) as file:
        if path.suffix in (".jsonl", ".ndjson"):
            for number, text in enumerate(file, 1):
                if text.strip():
                    where = f"{named(path)}, line {number:,}"
                    yield _cells(json_object(text, where), names), where
            return
        lines = ([cell.strip() for cell in line] for line in csv.reader(file, delimiter=delimiter))
        head = [names[0][0], names[1][0]]
        for number, cells in enumerate(line for line in lines if any(line)):
            own = [cell.casefold() for cell in cells]
            if number == 0 and None not in _cells(dict.fromkeys(own, ""), names):
                head = own
            else:
                yield _cells(dict(zip(head, cells, strict=False)), names), ""


def _cells(given: Mapping[str, Any], names: Names) -> tuple[Any, Any]:
    first, second = (next((given[name] for name in among if name in given), None) for among in names)
    return first, second


OWN = "labels.csv"
"""The file of a dictionary's labels, where they lie beside it."""


def own_labels(folder: Path | None) -> dict[int, str]:
    """The labels beside a dictionary; none where there are none."""
    path = None if folder is None else folder / OWN
    return read_labels(path) if path is not None and is_file(path) else {}
