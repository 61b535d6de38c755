"""A survey: heads, neurons or layers by a measure over many texts, and the texts in which each is strongest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from tui_transformer.analysis.survey.table import Example, Row
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import EXAMPLES, SURVEY
from tui_transformer.explorer.shell.overview import Overview
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.prompt import PromptScreen
from tui_transformer.explorer.shell.user_files import recent, remember
from tui_transformer.explorer.tools.ablation.table import number
from tui_transformer.explorer.tools.runs.paths import path_of
from tui_transformer.explorer.tools.survey.opening import open_example
from tui_transformer.explorer.tools.survey.tables import Survey, Table, example_line, half, header, line, name
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.session.store import AT_ONCE
from tui_transformer.survey.results import FORMATS, Results, read_results
from tui_transformer.text.display import visible


def open_from(port: Port) -> None:
    """Ask for the file of a survey, and show it."""
    known = recent("surveys")
    hint = f"what `tui-transformer survey … --out FILE` wrote: {', '.join(FORMATS)}"
    value = known[0] if known else ""
    prompt = PromptScreen(
        "Survey in the file", value=value, hint=hint, check=lambda text: read_results(path_of(text)), lately=known
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


class SurveyScreen(Overview):
    """The rows of one measure, the highest first."""

    ACTIONS = SURVEY
    DEFAULT_CSS = """
    SurveyScreen {
        #survey-header { height: 1; width: 1fr; color: $foreground 65%; }
        #survey { height: 1fr; }
    }
    """
    HELP_TOPIC, KIND = "survey", "survey"

    def __init__(self, port: Port, survey: Survey) -> None:
        super().__init__(port)
        self.survey = survey
        self.at = 0
        self.reverse = False

    @property
    def table(self) -> Table:
        """The table that is shown."""
        return self.survey.tables[self.at]

    def content(self) -> ComposeResult:
        """The titles of the columns, and the list."""
        yield Static(id="survey-header", markup=False)
        yield LineList(id="survey")

    def on_mount(self) -> None:
        """Show the first table."""
        self.query_one(LineList).focus()
        self.show_table()

    def show_table(self) -> None:
        """The rows of what is chosen, in order, from the first."""
        lines, order = self.query_one(LineList), self.table.order(reverse=self.reverse)
        lines.show(len(order), self._line)
        lines.filter(order)
        lines.cursor = order[0]
        self.show_lines()

    @property
    def selected(self) -> Row:
        """The row under the cursor."""
        return self.table.rows[self.query_one(LineList).index]

    def _line(self, index: int) -> Text:
        width = self.query_one(LineList).size.width
        return line(self.table.rows[index], self.table.largest, width, "" if self.app.no_color else "cyan")

    # What is said

    def show_lines(self) -> None:
        """The titles of the columns too."""
        super().show_lines()
        if self.is_mounted:
            self.query_one("#survey-header", Static).update(header(self.size.width - 2), layout=False)

    def about(self) -> str:
        """The model of the survey, which may be another than that of the main screen."""
        return f"tui-transformer   survey of {self.survey.model}"

    def heading(self) -> str:
        """The measure, and the order."""
        return f"{self.table.title} · {'lowest' if self.reverse else 'highest'} first"

    def note(self) -> str:
        """How many tables there are."""
        return f"table {self.at + 1} of {len(self.survey.tables)} · mean over texts, each counting once"

    def detail(self) -> tuple[str, str]:
        """The selected row in full, and its strongest example."""
        row, uncertain = self.selected, half(self.selected)
        interval = "" if uncertain is None else f", from {number(row.low or 0.0)} to {number(row.high or 0.0)} (95 %)"
        first = f"{name(row)}   {row.measure} {number(row.mean or 0.0)}{interval}, over {row.count:,} texts"
        examples = self.survey.examples(row)
        return first, f"strongest: {said(examples[0])}" if examples else "no examples are kept of it"

    def left_out(self) -> Collection[str]:
        """The actions that there is nothing for."""
        parts, tables = {table.part for table in self.survey.tables}, self.survey.tables
        there = {"kind": len(parts) > 1, "order": len(tables) > 1, "find": len(tables) > 1}
        return [name for name, useful in there.items() if not useful]

    # What keys do

    def action_order(self) -> None:
        """The next measure."""
        self._turn((self.at + 1) % len(self.survey.tables))

    def action_find(self) -> None:
        """A measure by its name."""
        names = {table.title: at for at, table in enumerate(self.survey.tables)}

        def check(text: str) -> int:
            hits = [at for title, at in names.items() if text.strip().casefold() in title.casefold()]
            if not hits:
                raise InputError(f"no measure here is called {text.strip()[:40]!r}")
            return hits[0]

        def answered(text: str | None) -> None:
            if text is not None:
                self._turn(check(text))

        self.open(PromptScreen("Measure", check=check, suggestions=tuple(names)), answered)

    def action_part(self) -> None:
        """The first measure of the next part of the model."""
        tables = self.survey.tables
        others = (at % len(tables) for at in range(self.at + 1, self.at + len(tables)))
        self._turn(next((at for at in others if tables[at].part != self.table.part), self.at))

    def action_reverse(self) -> None:
        """The other end first."""
        self.reverse = not self.reverse
        self.show_table()

    def _turn(self, at: int) -> None:
        self.at, self.reverse = at, False
        self.show_table()

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        examples = self.survey.examples(self.selected)
        if examples:
            self.open(ExamplesScreen(self, examples))
        else:
            self.say("no examples are kept of it: the survey was made with --top 0, or without the file beside it")


class ExamplesScreen(Overview):
    """The texts in which something is strongest."""

    ACTIONS = EXAMPLES
    DEFAULT_CSS = "ExamplesScreen #examples { height: 1fr; }"
    HELP_TOPIC, KIND = "survey", "example"

    def __init__(self, before: SurveyScreen, examples: Sequence[Example]) -> None:
        super().__init__(before.port)
        self.before, self.examples = before, examples

    def content(self) -> ComposeResult:
        """The list."""
        yield LineList(id="examples")

    def on_mount(self) -> None:
        """Show it."""
        lines = self.query_one(LineList)
        lines.show(len(self.examples), lambda index: example_line(self.examples[index], lines.size.width))
        lines.focus()
        self.show_lines()

    @property
    def selected(self) -> Example:
        """The example under the cursor."""
        return self.examples[self.query_one(LineList).index]

    def about(self) -> str:
        """As that of the survey."""
        return self.before.about()

    def heading(self) -> str:
        """The row that they are examples of."""
        return f"strongest of {name(self.examples[0])} · {self.before.table.title}"

    def note(self) -> str:
        """How a text is measured."""
        return "a text by its strongest token"

    def detail(self) -> tuple[str, str]:
        """Where the selected one is, and its text."""
        return said(self.selected), self.selected.text

    @on(LineList.Moved)
    def _moved(self) -> None:
        self.show_lines()

    @on(LineList.Chosen)
    def _chosen(self) -> None:
        def leave() -> None:
            self.action_leave()
            self.before.action_leave()

        open_example(self.port, self.selected, leave)


def said(example: Example) -> str:
    """`0.9812 at token 5 of corpus.txt line 3`."""
    where = visible(f"{example.file} line {example.line:,}")
    return f"{number(example.value)} at token {example.position} of {where}"
