"""Texts with labels from a file, and the values of steps over texts in memory: what probes are fitted to."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.analysis.attentions import Report, silent
from tui_transformer.analysis.logit_lens import depths_of, stacks_of
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import Host
from tui_transformer.engine.parts import check_memory
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError
from tui_transformer.features.labels import read_pairs
from tui_transformer.files import expanded, named
from tui_transformer.model import Model
from tui_transformer.model.options import traced
from tui_transformer.records import dataclass, field

TEXT, LABEL = ("text", "sentence", "prompt"), ("label", "class", "y", "target")
"""What the columns, or keys, of a text and of its label may be called."""


@dataclass(frozen=True)
class Labelled:
    """Texts, and of each what it is to be told by: a word or a number."""

    texts: tuple[str, ...]
    labels: tuple[str | int | float, ...]


def read_labelled(path: str | Path) -> Labelled:
    """Texts with labels.

    Args:
        path: Lines of a label and a text, with a tab (.tsv, .txt) or a comma (.csv) between them, a line of names first
            where they are the other way round; or an object a line with `text` and `label` (.jsonl).

    Raises:
        InputError: It is none of these, or has fewer than two texts.
    """
    place, pairs = expanded(path), list[tuple[str, str]]()
    try:
        for (label, text), where in read_pairs(place, (LABEL, TEXT), "," if place.suffix == ".csv" else "\t"):
            if label is None or text is None:
                raise InputError(f"{where}: there is no text and label") if where else ValueError("a cell is missing")
            pairs.append((str(label), str(text)))
    except (ValueError, OSError, csv.Error) as error:
        raise InputError(f"{named(place)}: no texts with labels: write lines of a label, a tab and a text") from error
    if len(pairs) < 2:
        raise InputError(f"{named(place)}: there are no two texts with labels: write a label, a tab and a text a line")
    labels, texts = zip(*pairs, strict=True)
    return Labelled(texts, _numbers(labels))


def _numbers(labels: Sequence[str]) -> tuple[str | int | float, ...]:
    """Labels as numbers, where all are some."""
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return tuple(labels)
    if not np.isfinite(numbers).all():
        return tuple(labels)
    return tuple(int(number) if number.is_integer() else number for number in numbers)


# The values


def stream(program: Program) -> dict[str, str]:
    """What enters the first layer that reads the text, and what leaves each: steps, with their titles."""
    return {depth.step: depth.title for depth in depths_of(program, next(iter(stacks_of(program)), ""))}


@dataclass(frozen=True, eq=False)
class Values:
    """A step over texts: rows × columns, and of every row its text and position."""

    rows: Host = field(repr=False)
    text: Host = field(repr=False)
    position: Host = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows × columns."""
        return self.rows.shape

    def __getitem__(self, at: Any) -> Host:
        return np.asarray(self.rows[at])


def values_of(
    model: Model, texts: Sequence[str], steps: Sequence[str], report: Report = silent
) -> Mapping[str, Values]:
    """The values of steps, tokens × columns, over texts that are cut to what the model reads.

    Args:
        model: Reads every text alone.
        texts: At least one.
        steps: Of the text's own tokens, as `stream` names them.
        report: Told how far it is; what it raises ends it.

    Raises:
        InputError: A text has no tokens, or they take more memory than there is.
    """
    parts: dict[str, list[Host]] = {name: [] for name in steps}
    lengths = list[int]()
    for number, trace in enumerate(traced(model, texts), 1):
        report(f"text {number:,} of {len(texts):,}")
        for name in steps:
            parts[name].append(np.asarray(trace.window(name, whole(trace.program.shape(name)))))
        lengths.append(len(parts[steps[0]][-1]))
        if number == 1:
            size = sum(each[0].nbytes for each in parts.values()) * len(texts)
            check_memory(size, "the values of these texts take", "use fewer texts")
    text = np.repeat(np.arange(len(lengths)), lengths)
    position = np.concatenate([np.arange(length) for length in lengths])
    return {name: Values(np.concatenate(rows), text, position) for name, rows in parts.items()}
