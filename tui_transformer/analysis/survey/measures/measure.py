"""Measures of a survey: their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tui_transformer.analysis.attentions import Rows
from tui_transformer.analysis.survey.reading import Reading, Text
from tui_transformer.engine.backend import Host


@dataclass(frozen=True)
class Measure:
    """Something that is measured in every text.

    Attributes:
        name: A word, for the option; its rows have this name, or begin with it and a colon.
        title: What it is, for help.
        unit: "bits", "nats", or "" for a share or a plain number.
        read: Its readings of a text.
        without: Rows that have no unit.
    """

    name: str
    title: str
    unit: str
    read: Callable[[Text], Iterable[Reading]]
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryMeasure:
    """A measure with a number for every query of every head; that of a text is the mean over its queries.

    All of them are read in one pass over the attention weights.

    Attributes:
        columns: From some queries, by the name of the row: heads × queries; NaN where a query has no such number. The
            names are the same for all queries of a step.
        without: Rows that have no unit.
        fewest: Queries that may look at fewer keys are left out: they have little or no choice.
    """

    name: str
    title: str
    unit: str
    columns: Callable[[Rows], Mapping[str, Host]]
    fewest: int = 2
    without: tuple[str, ...] = ()
