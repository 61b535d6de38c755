"""A survey: heads, neurons or layers by a measure over many texts, and the texts in which each is strongest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.overview import Overview, Texts
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen, reading
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation.search import number
from tui_transformer.explorer.tools.runs import path_of
from tui_transformer.explorer.tools.survey.tables import (
    NAME,
    NUMBER,
    Survey,
    Table,
    header,
    line,
    name,
    position_of,
    session_of,
)
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.survey.results import FORMATS, Results, read_results
from tui_transformer.text.display import fit, visible


def open_from(port: Port) -> None:
    """Ask for the file of a survey, and show it."""
    known = recent("surveys")
    prompt = PromptScreen(
        "Survey in the file",
        value=known[0] if known else "",
        hint=f"what `tui-transformer survey … --out FILE` wrote: {', '.join(FORMATS)}",
        check=lambda text: read_results(path_of(text)),
        lately=known,
    )
    port.open(prompt, lambda text: open_file(port, path_of(text)) if text is not None else None)


def open_file(port: Port, path: Path) -> None:
    """Show the survey of a file."""

    def show(results: Results) -> None:
        remember("surveys", str(path))
        open_results(port, results)

    port.ask("survey", AT_ONCE + 1, lambda _: read_results(path), show)


def open_results(port: Port, results: Results) -> None:
    """Show the results of a survey."""
    port.open(SurveyScreen(port, Survey(results)))


class SurveyScreen(Overview, tool="survey"):
    """The rows of one measure, the highest first."""

    HAS_COLUMNS = True

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
        return line(self.table.rows[index], self.table.largest, self.lines.size.width, color)

    def texts(self) -> Texts:
        """Of the model of the survey, which may be another than that of the main screen, and of the selected row."""
        row, tables, parts = self.selected, self.survey.tables, {table.part for table in self.survey.tables}
        certain = row.low is None or row.high is None
        interval = "" if certain else f", from {number(row.low or 0.0)} to {number(row.high or 0.0)} (95 %)"
        examples = self.survey.examples(row)
        useful = {"kind": len(parts) > 1, "order": len(tables) > 1, "find": len(tables) > 1}
        return Texts(
            f"{self.table.title} · {'lowest' if self.reverse else 'highest'} first",
            f"table {self.at + 1} of {len(tables)} · mean over texts, each counting once",
            (
                f"{name(row)}   {row.measure} {number(row.mean or 0.0)}{interval}, over {row.count:,} texts",
                f"strongest: {where_strongest(examples[0])}" if examples else "no examples are kept of it",
            ),
            columns=header(self.size.width - 2),
            hidden=[action for action, is_useful in useful.items() if not is_useful],
            about=f"tui-transformer   survey of {self.survey.model}",
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

        check, answered = reading(read, self._turn)
        self.open(PromptScreen("Measure", check=check, suggestions=tuple(names)), answered)

    def action_part(self) -> None:
        """The first measure of the next part of the model."""
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
        where, text = visible(f"{example.file}:{example.line}"), " ".join(visible(example.text).split())
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
        """Explore the text of the example; undo goes back."""
        example, before = self.selected, self.port.session

        def work(task: Task) -> tuple[Session, Position]:
            session = session_of(before, example)
            session.trace.compute(before=lambda step: task.report(step.name))
            return session, position_of(session.trace, example)

        def show(place: tuple[Session, Position]) -> None:
            self.action_leave()
            self.before.action_leave()
            self.port.change(*place)

        self.port.ask("example", AT_ONCE + 1, work, show)


def where_strongest(example: Example) -> str:
    """`0.9812 at token 5 of corpus.txt line 3`."""
    where = visible(f"{example.file} line {example.line:,}")
    return f"{number(example.value)} at token {example.position} of {where}"
