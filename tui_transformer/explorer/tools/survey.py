"""A survey: heads, neurons or layers by a measure over many texts, and the texts in which each is strongest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import numpy as np
from rich.text import Text

from tui_transformer.analysis.attentions import attentions
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.analysis.survey.measures import MEASURES
from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.engine.targets import KINDS
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.overview import Overview, Texts
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.effects import number
from tui_transformer.explorer.tools.runs import path_of
from tui_transformer.model import Model
from tui_transformer.model.local_models import find_model
from tui_transformer.model.options import PLAIN, ModelOptions
from tui_transformer.records import dataclass, replace
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING
from tui_transformer.survey.results import FORMATS, Results, read_results
from tui_transformer.text.display import fit, visible
from tui_transformer.views.numbers import BarScale
from tui_transformer.views.step_view import Place

NAME, NUMBER, LEAST_BAR = 20, 11, 4
"""Columns of a name, of a number, and of a bar at least."""

NEXT = {
    "cursor.choose": "texts where it is strongest",
    "order": "the next measure",
    "kind": "the next part",
}
"""What to do next, by the keys."""

UNITS = ("head", "neuron", "feature")
"""What a row may be of besides a layer."""


def open_from(port: Port) -> None:
    """Ask for the file of a survey, and show it."""
    known, hint = recent("surveys"), f"what `tui-transformer survey … --out FILE` wrote: {', '.join(FORMATS)}"

    def read(text: str) -> tuple[Path, Results]:
        path = path_of(text)
        return path, read_results(path)

    def show(found: tuple[Path, Results]) -> None:
        remember("surveys", str(found[0]))
        open_results(port, found[1])

    value = known[0] if known else ""
    port.open(*asking("Survey in the file", read, show, value=value, hint=hint, lately=known))


def open_results(port: Port, results: Results) -> None:
    """Show the results of a survey."""
    port.open(SurveyScreen(port, Survey(results)))


class SurveyScreen(Overview, tool="survey"):
    """The rows of one measure, the highest first."""

    HAS_COLUMNS = True
    DEFAULT_CSS = """
    SurveyScreen {
        & #overview-columns { height: 3; }
        &.-short #overview-columns { height: 1; }
    }
    """

    def __init__(self, port: Port, survey: Survey) -> None:
        super().__init__(port)
        self.survey = survey
        self.at = 0
        self.reverse = False

    @property
    def table(self) -> Table:
        return self.survey.tables[self.at]

    @property
    def selected(self) -> Row:
        return self.table.rows[self.lines.index]

    def begin(self) -> None:
        order = self.table.order(reverse=self.reverse)
        self.lines.show(len(order), self._line)
        self.lines.filter(order)
        self.lines.cursor = order[0]
        self.show_lines()

    def _line(self, index: int) -> Text:
        color = "" if self.app.no_color else "cyan"
        return line(self.table.rows[index], self.table.scale, self.lines.size.width, color)

    def texts(self) -> Texts:
        """Of the model of the survey, which may be another than that of the main screen, and of the selected row."""
        row, tables, parts = self.selected, self.survey.tables, {table.part for table in self.survey.tables}
        certain = row.low is None or row.high is None
        interval = "" if certain else f", from {number(row.low or 0.0)} to {number(row.high or 0.0)} (95 %)"
        examples = self.survey.examples(row)
        useful = {"kind": len(parts) > 1, "order": len(tables) > 1, "find": len(tables) > 1}
        keys = useful | {"cursor.choose": bool(examples)}
        following = " · ".join(f"{{{key}}}: {does}" for key, does in NEXT.items() if keys[key])
        titles = "".join(f"{title:>{NUMBER}}" for title in ("mean", "± (95 %)", "texts"))
        titles = f"{fit('of', NAME)}{titles}  {self.table.scale.says}"
        about = (self.table.says, self.port.hint(following))
        lines = (titles,) if self.has_class("-short") else (*about, titles)
        return Texts(
            f"{self.table.title} · {'lowest' if self.reverse else 'highest'} first",
            f"table {self.at + 1} of {len(tables)} · mean over texts, each counting once",
            (
                f"{name(row)}   {row.measure} {number(row.mean or 0.0)}{interval}, over {row.count:,} texts",
                f"strongest: {where_strongest(examples[0])}" if examples else "no examples are kept of it",
            ),
            columns="\n".join(fit(f" {line}", self.size.width - 2) for line in lines),
            useful=useful,
            about=f"tui-transformer   survey of {self.survey.results.rows[0].model}",
        )

    def action_order(self) -> None:
        self._turn((self.at + 1) % len(self.survey.tables))

    def action_find(self) -> None:
        names = {table.title: at for at, table in enumerate(self.survey.tables)}

        def read(text: str) -> int:
            hits = [at for title, at in names.items() if text.strip().casefold() in title.casefold()]
            if not hits:
                raise InputError(f"no measure here is called {text.strip()[:40]!r}")
            return hits[0]

        self.open(*asking("Measure", read, self._turn, suggestions=tuple(names)))

    def action_part(self) -> None:
        tables = self.survey.tables
        others = (at % len(tables) for at in range(self.at + 1, self.at + len(tables)))
        self._turn(next((at for at in others if tables[at].part != self.table.part), self.at))

    def action_reverse(self) -> None:
        self.reverse = not self.reverse
        self.begin()

    def _turn(self, at: int) -> None:
        self.at, self.reverse = at, False
        self.begin()

    def chosen(self) -> None:
        examples = self.survey.examples(self.selected)
        if examples:
            self.open(ExamplesScreen(self, self.table, examples))
        else:
            self.say("no examples are kept of it: the survey was made with --top 0, or without the file beside it")


class ExamplesScreen(Overview, tool="examples", topic="survey"):
    """The texts in which a row of a table is strongest."""

    def __init__(self, before: Overview, table: Table, examples: Sequence[Example]) -> None:
        """Over the screen of a survey, which is left with this one."""
        super().__init__(before.port)
        self.before, self.table, self.examples = before, table, examples

    def begin(self) -> None:
        self.lines.show(len(self.examples), self._line)
        self.show_lines()

    def _line(self, index: int) -> Text:
        example = self.examples[index]
        where = visible(f"{example.file}:{example.line}")
        text = " ".join(visible(example.marked or example.text).split())
        line = f" {example.rank:>3} {number(example.value):>{NUMBER}}  {fit(where, NAME)}  {text}"
        return Text(fit(line, self.lines.size.width), no_wrap=True)

    @property
    def selected(self) -> Example:
        return self.examples[self.lines.index]

    def texts(self) -> Texts:
        return Texts(
            f"strongest of {name(self.examples[0])} · {self.table.title}",
            "a text by its strongest token",
            (where_strongest(self.selected), self.selected.text),
            about=self.before.texts().about,
        )

    def chosen(self) -> None:
        example, before = self.selected, self.port.session

        def work(task: Task) -> tuple[Session, Position]:
            session = session_of(before, example)
            session.trace.compute(before=lambda step: task.report(step.name))
            return session, position_of(session.trace, example)

        def show(place: tuple[Session, Position]) -> None:
            self.action_leave()
            self.before.action_leave()
            self.port.change(*place)

        self.port.ask("example", work, show)


def where_strongest(example: Example) -> str:
    """`0.9812 at token 5 of corpus.txt line 3`."""
    where = visible(f"{example.file} line {example.line:,}")
    return f"{number(example.value)} at token {example.position} of {where}"


# The tables: one for every part and measure


KEY = attrgetter("part", "layer", "head", "neuron", "measure", "feature")
"""What a row and the examples of it are of."""


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

    @property
    def says(self) -> str:
        """What one looks at: `Every head by previous token (A_i,i−1), mean over the texts`."""
        first, measure = self.rows[0], MEASURES.get(self.measure.partition(":")[0])
        each = next((unit for unit in UNITS if getattr(first, unit) is not None), "layer")
        by = self.measure if measure is None else measure.title.partition(",")[0]
        formula = f" ({measure.formula})" if measure is not None and measure.formula else ""
        return f"Every {each} by {by}{formula}, mean over the texts"

    @cached_property
    def scale(self) -> BarScale:
        """A full bar is 1, or where that is too short, the next round number."""
        means = [row.mean or 0.0 for row in self.rows]
        return BarScale.holding(max(map(abs, means)), self.rows[0].unit, signed=min(means) < 0)

    def order(self, *, reverse: bool) -> list[int]:
        sign = 1.0 if reverse else -1.0
        return sorted(range(len(self.rows)), key=lambda at: (sign * (self.rows[at].mean or 0.0), at))


@dataclass(frozen=True)
class Survey:
    """The results of a survey, by what they are of."""

    results: Results

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables in the order of the file, those of heads first."""
        by_measure: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.results.rows:
            by_measure[row.part, row.measure].append(row)
        tables = (Table(part, measure, rows) for (part, measure), rows in by_measure.items())
        return tuple(sorted(tables, key=lambda table: table.rows[0].head is None))

    @cached_property
    def _examples(self) -> Mapping[tuple[object, ...], Sequence[Example]]:
        by_row: dict[tuple[object, ...], list[Example]] = defaultdict(list)
        for example in sorted(self.results.examples, key=attrgetter("rank")):
            by_row[KEY(example)].append(example)
        return by_row

    def examples(self, row: Row) -> Sequence[Example]:
        return self._examples.get(KEY(row), ())


def name(of: Row | Example) -> str:
    """`layer 1 · head 3`, `layer 0 · neuron 17`, `embedding`, `whole model`."""
    if of.layer is None:
        return "whole model"
    parts = ["embedding" if of.layer < 0 else f"layer {of.layer}"]
    parts += [f"{unit} {getattr(of, unit)}" for unit in UNITS if getattr(of, unit) is not None]
    return " · ".join(parts)


def line(row: Row, scale: BarScale, width: int, color: str) -> Text:
    """One row: its name, mean, half of its interval, count, and a bar."""
    uncertain = "–" if row.low is None or row.high is None else number((row.high - row.low) / 2)
    numbers = number(row.mean or 0.0), uncertain, f"{row.count:,}"
    text = Text(f" {fit(name(row), NAME)}{''.join(f'{each:>{NUMBER}}' for each in numbers)}", no_wrap=True)
    room = width - NAME - 3 * NUMBER - 4
    if room >= LEAST_BAR:
        text.append("  ").append(scale.bar(row.mean or 0.0, room), color)
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
    alone = replace(before, cut=True, framing=PLAIN, batch=(), item=0, pair=None, mask=None)
    alone = replace(alone, decoder_text="", decoder_ids=None, edits=(), breaks=(), overlay=NOTHING, targets=None)
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

    if example.feature is not None:  # of a dictionary that is not open: what it reads
        return Position(trace.program.step(example.part).name, Place(0, example.position, 0))
    if example.neuron is not None:
        return Position(step("neuron"), Place(0, example.position, example.neuron))
    if example.head is None:
        depths = {depth.layer: depth.step for depth in lens_of(trace.program).depths}
        layer = max(depths) if example.layer is None else example.layer
        if layer not in depths:
            raise InputError(f"the model has no layer {layer} to look at with the logit lens")
        return Position(depths[layer], Place(0, example.position, 0))
    if example.measure == "context":  # it is about the output of a head, not about its weights
        return Position(step("head"), Place(example.head, example.position, 0))
    attention = next((each for each in attentions(trace.program, example.part) if each.layer == example.layer), None)
    if attention is None or example.head >= attention.heads:
        raise InputError(f"the model has no {example.part} of layer {example.layer} with a head {example.head}")
    row = min(example.position, attention.queries.size - 1)
    head = range(example.head, example.head + 1)
    weights = trace.window(attention.name, (head, range(row, row + 1), range(attention.keys.size)))
    return Position(attention.name, Place(example.head, row, int(np.argmax(weights))))
