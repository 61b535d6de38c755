"""The tables of a survey, one for every part and measure, and where in a model an example of one is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from rich.text import Text

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.engine.parts import layer_outputs
from tui_transformer.engine.targets import KINDS
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.ablation.search import bar, number
from tui_transformer.model import Model
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import PLAIN, ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.survey.results import Results
from tui_transformer.text.display import fit
from tui_transformer.views.step_view import Place

NAME, NUMBER, LEAST_BAR = 20, 11, 4
CONTEXT = "context"
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


def header(width: int) -> str:
    """The titles of the columns."""
    return fit(f" {fit('of', NAME)}{'mean':>{NUMBER}}{'± (95 %)':>{NUMBER}}{'texts':>{NUMBER}}", width)


def line(row: Row, largest: float, width: int, color: str) -> Text:
    """One row: its name, mean, half of its interval, count, and a bar."""
    uncertain = "–" if row.low is None or row.high is None else number((row.high - row.low) / 2)
    numbers = number(row.mean or 0.0), uncertain, f"{row.count:,}"
    text = Text(f" {fit(name(row), NAME)}{''.join(f'{each:>{NUMBER}}' for each in numbers)}", no_wrap=True)
    room = width - NAME - 3 * NUMBER - 4
    if room >= LEAST_BAR:
        text.append("  ").append(bar(abs(row.mean or 0.0), largest, room), color)
    return text


# From an example to the session and the cell that it is about


def session_of(before: Session, example: Example) -> Session:
    """The text, alone, on the model of the survey; that is loaded where another is open.

    Raises:
        InputError: There is no such model any more.
    """
    if not is_of(before.model, example):
        named = example.model, example.vocab or None, before.model.backend.device, example.dtype, example.seed
        return open_session(ModelOptions(*named, budget=before.budget, cut=True), example.text, None)
    alone = replace(
        before,
        edits=(),
        cut=True,
        framing=PLAIN,
        batch=(),
        item=0,
        pair=None,
        mask=None,
        decoder_text="",
        decoder_ids=None,
        breaks=(),
        overlay=NOTHING,
        targets=None,
    )
    return alone.with_text(example.text)


def is_of(model: Model, example: Example) -> bool:
    """Whether a model is certainly the one of a survey: random weights and another vocabulary are loaded again."""
    words = model.vocabulary
    own = words is None or words.path is None or words.path.parent == model.folder
    if model.folder is None or example.vocab or not own or example.dtype != model.backend.dtype.name:
        return False
    other = find_model(example.model)
    return other is not None and other.folder.resolve() == model.folder.resolve()


def position_of(trace: Trace, example: Example) -> Position:
    """The cell where an example is strongest: of a head its row of weights, at the key with the largest.

    Raises:
        InputError: The model has no such head, neuron or layer.
    """
    stack, _, sublayer = example.part.partition(" ")

    def step(kind: str) -> str:
        place = f"{stack}.{example.layer}.{sublayer.replace('-', '_')}"
        return KINDS[kind].steps(trace.program, place)[0]

    if example.neuron is not None:
        return Position(step("neuron"), Place(0, example.position, example.neuron))
    if example.head is None:
        outputs = layer_outputs(trace.program)
        last = len(outputs) - 1
        output = outputs[last if example.layer is None else min(max(example.layer, 0), last)]
        return Position(output, Place(0, example.position, 0))
    if example.measure == CONTEXT:
        return Position(step("head"), Place(example.head, example.position, 0))
    attention = next((each for each in attentions(trace.program, example.part) if each.layer == example.layer), None)
    if attention is None or example.head >= attention.heads:
        raise InputError(f"the model has no {example.part} of layer {example.layer} with a head {example.head}")
    row = min(example.position, attention.queries.size - 1)
    head = range(example.head, example.head + 1)
    weights = trace.window(attention.name, (head, range(row, row + 1), range(attention.keys.size)))
    return Position(attention.name, Place(example.head, row, int(np.argmax(weights))))
