"""The tables of a survey: one for every part and measure, its rows in an order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.text import Text

from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.explorer.tools.ablation.table import bar, number
from tui_transformer.survey.results import Results
from tui_transformer.text.display import fit, visible

NAME, NUMBER, LEAST_BAR = 20, 11, 4
Key = tuple[str, int | None, int | None, int | None, str]


@dataclass(frozen=True)
class Table:
    """The rows of one measure of one part of the model."""

    part: str
    measure: str
    rows: Sequence[Row]

    @property
    def title(self) -> str:
        """`induction · decoder self-attention`, with the unit where there is one."""
        unit = self.rows[0].unit
        return f"{self.measure}{f', {unit}' if unit else ''} · {self.part}"

    @cached_property
    def largest(self) -> float:
        """The largest mean, without its sign."""
        return max(abs(row.mean or 0.0) for row in self.rows)

    def order(self, *, reverse: bool) -> list[int]:
        """The rows, the highest mean first, or the lowest; equal ones in the order of the model."""
        sign = 1.0 if reverse else -1.0
        return sorted(range(len(self.rows)), key=lambda at: (sign * (self.rows[at].mean or 0.0), at))


@dataclass(frozen=True)
class Survey:
    """The results of a survey, by what they are of."""

    results: Results

    @property
    def model(self) -> str:
        """The model, as it was named."""
        return self.results.rows[0].model

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables in the order of the file, those of heads first."""
        by_measure: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.results.rows:
            by_measure[row.part, row.measure].append(row)
        tables = (Table(part, measure, rows) for (part, measure), rows in by_measure.items())
        return tuple(sorted(tables, key=lambda table: table.rows[0].head is None))

    @cached_property
    def _examples(self) -> Mapping[Key, Sequence[Example]]:
        by_row: dict[Key, list[Example]] = defaultdict(list)
        for example in self.results.examples:
            by_row[_key(example)].append(example)
        return by_row

    def examples(self, row: Row) -> Sequence[Example]:
        """The strongest texts of a row, the strongest first."""
        return sorted(self._examples.get(_key(row), ()), key=lambda example: example.rank)


def _key(of: Row | Example) -> Key:
    return of.part, of.layer, of.head, of.neuron, of.measure


def name(of: Row | Example) -> str:
    """`layer 1 · head 3`, `layer 0 · neuron 17`, `embedding`, `whole model`."""
    if of.layer is None:
        return "whole model"
    parts = ["embedding" if of.layer < 0 else f"layer {of.layer}"]
    parts += [] if of.head is None else [f"head {of.head}"]
    parts += [] if of.neuron is None else [f"neuron {of.neuron}"]
    return " · ".join(parts)


def half(row: Row) -> float | None:
    """Half of the confidence interval."""
    return None if row.low is None or row.high is None else (row.high - row.low) / 2


def header(width: int) -> str:
    """The titles of the columns."""
    titles = f" {fit('of', NAME)}{'mean':>{NUMBER}}{'± (95 %)':>{NUMBER}}{'texts':>{NUMBER}}"
    return fit(titles, width)


def line(row: Row, largest: float, width: int, color: str) -> Text:
    """One row: its name, mean, half of its interval, count, and a bar."""
    uncertain = half(row)
    numbers = number(row.mean or 0.0), "–" if uncertain is None else number(uncertain), f"{row.count:,}"
    text = Text(f" {fit(name(row), NAME)}{''.join(f'{each:>{NUMBER}}' for each in numbers)}", no_wrap=True)
    room = width - NAME - 3 * NUMBER - 4
    if room >= LEAST_BAR:
        text.append("  ").append(bar(abs(row.mean or 0.0), largest, room), color)
    return text


def example_line(example: Example, width: int) -> Text:
    """One example: its value, where it is, and the text."""
    where = visible(f"{example.file}:{example.line}")
    text = " ".join(visible(example.text).split())
    return Text(
        fit(f" {example.rank:>3} {number(example.value):>{NUMBER}}  {fit(where, NAME)}  {text}", width), no_wrap=True
    )
