"""The screen that shows a tool about a whole model: title, content, two lines on what is selected, keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.tools import OVERVIEW, TOOLS
from tui_transformer.explorer.shell.base import ExplorerScreen, Port
from tui_transformer.explorer.shell.keymap import key_line
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.requests import Pieces, Requests
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.widgets.cursor import CursorMessage, GridWidget
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.labels import Written
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.records import dataclass, field
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.text.display import cells, visible
from tui_transformer.text.known_words import unknown_named
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import Scale, View

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Texts:
    """What a tool says of itself as it is now.

    Attributes:
        heading: Text of the border.
        note: Remark on all that is shown; in the lower border.
        detail: Two lines on what is selected; more of them where a screen has room.
        progress: How much is there already; at the right of the title.
        columns: Titles of columns, above the content; before them, a line each, what one looks at and what to do next.
        useful: Whether an action is of use now, by its name; one that is not is not in the line of keys.
        about: Subject of the screen, where that is not what is explored; in the title.
    """

    heading: str = ""
    note: str = ""
    detail: tuple[str, str] | Content = ("", "")
    progress: str = ""
    columns: str = ""
    useful: Mapping[str, object] = field(default_factory=dict)
    about: str = ""


class Overview(ExplorerScreen[None]):
    """A tool beside the main screen, about every layer of what is explored there.

    A tool names its row in the table of keys, `class LensScreen(Overview, tool="lens")`, and its `WIDGETS`; `begin`
    says what it computes, `texts` what there is to read, `chosen` where it leads, and an `action_…` what a key does.

    Attributes:
        session: What was explored when this was opened: a change that was under way then comes later.
    """

    BINDINGS = bindings(OVERVIEW)

    DEFAULT_CSS = """
    Overview {
        layout: vertical;
        background: $background;
        #overview-title, #overview-keys { height: 1; width: 1fr; background: $surface; }
        #overview-content { height: 1fr; width: 1fr; border: round $primary; border-title-color: $primary; }
        #overview-content { border-title-style: bold; border-subtitle-color: $foreground 70%; }
        #overview-columns { height: 1; width: 1fr; color: $foreground 65%; text-wrap: nowrap; text-overflow: ellipsis; }
        #overview-detail { height: 2; width: 1fr; padding: 0 1; }
        LineList { height: 1fr; }
        #overview-content.-stale { opacity: 45%; }
        &.-narrow #overview-detail { height: 4; }
        &.-edited #overview-detail { height: 2; }
        &.-short #overview-detail { height: 1; padding: 0; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - the base class has them so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall")]  # noqa: RUF012 - the base class has them so
    KIND = ""
    """As what its work is asked for."""

    WIDGETS: ClassVar[tuple[type[Widget], ...]] = (LineList,)
    """What is shown, from top to bottom; the first has the keys."""

    HAS_COLUMNS = False
    """Whether there are titles of columns above it."""

    pieces: Pieces[Any, Any]
    """The work that is done bit by bit; `work_on` says what it is."""

    ended = False
    """Whether that was ended by hand."""

    def __init_subclass__(cls, tool: str = "", topic: str = "", **options: Any) -> None:
        """A tool: its row in the table of keys, and its page of help, where that has another name."""
        if tool:
            cls.ACTIONS, cls.KIND, cls.HELP_TOPIC = TOOLS[tool], tool, topic or tool
        super().__init_subclass__(**options)

    def __init__(self, port: Port) -> None:
        super().__init__()
        self.port, self.worker, self.session = port, port.worker, port.session
        self.requests = Requests(self, port.worker, self.show_lines, lambda: self.session.model.backend.device == "cpu")
        work_on(self, lambda: None, lambda *_: None, lambda *_: None)
        self._written = Written(self)

    def compose(self) -> ComposeResult:
        yield Static(id="overview-title", markup=False)
        with Vertical(id="overview-content"):
            if self.HAS_COLUMNS:
                yield Static(id="overview-columns", markup=False)
            yield from self.content()
        yield Static(id="overview-detail", markup=False)
        yield Static(id="overview-keys", markup=False)

    def content(self) -> ComposeResult:
        """The widgets that are shown."""
        yield from (widget() for widget in self.WIDGETS)

    def on_mount(self) -> None:
        if self.WIDGETS:
            self.query_one(self.WIDGETS[0]).focus()
        self.begin()

    # What a tool says and does

    def begin(self) -> None:
        """Show what is known, and ask for the rest."""

    def texts(self) -> Texts:
        """What is said of what is shown, and of what is selected."""
        return Texts()

    def moved(self) -> None:
        """The cursor was moved by hand."""
        self.show_lines()

    def chosen(self) -> None:
        """What is under the cursor was chosen."""

    @on(CursorMessage)
    def _cursor(self, event: CursorMessage) -> None:
        if isinstance(event, GridWidget.Moved):
            self.moved()
        else:
            self.chosen()

    # Work

    @property
    def settled(self) -> bool:
        """Whether no piece of work is about to be done, and the screen says so."""
        return self.requests.settled and self.pieces.idle

    def compute(self, work: Callable[[Task], Result], take: Callable[[Result], None], cost: int = AT_ONCE + 1) -> None:
        """Work something out, on the worker where it costs much, and take it unless something else is asked for."""

        def done(result: Result) -> None:
            take(result)
            self.show_lines()

        self.requests.ask(self.KIND, work, done, cost)
        self.show_lines()

    def action_go_on(self) -> None:
        """Go on with the work that was ended."""
        if self.ended:
            self.ended = False
            self.pieces.go_on()
            self.show_lines()

    def action_end(self) -> None:
        """End the work that is done bit by bit; where none is, leave."""
        if self.pieces.idle:
            self.action_leave()
            return
        self.ended = True
        self.pieces.halt()
        self.requests.doing = ""
        self.show_lines()

    def change(self, changed: Callable[[Session], Session], says: str = "") -> None:
        """Change what is explored, here and on the main screen, where it may be another sentence or model by now."""
        same = self.port.session is self.session
        self.session = changed(self.session)
        try:
            self.port.change(self.session if same else changed(self.port.session))
        except InputError as error:
            says = f"here alone, as the main screen is at another model: {error}"
        if says:
            self.say(says)

    # What is shown

    @property
    def lines(self) -> LineList:
        """The list of a tool that has one."""
        return self.query_one(LineList)

    def show_lines(self) -> None:
        """Title, borders, titles of columns, detail and keys: those of them that say something else."""
        if not self.is_mounted:
            return
        texts, content = self.texts(), self.query_one("#overview-content")
        for border, text in {"border_title": texts.heading, "border_subtitle": texts.note}.items():
            if self._written.is_new(border, text):
                setattr(content, border, Content(visible(text)))
        progress = f"{texts.progress} · ended" if self.ended else texts.progress
        right, detail = f"{self.requests.doing or progress} ", texts.detail
        about = texts.about or self.session.cache.tokens.made("explored", partial(_explored, self.session))
        left = Text(f" {visible(about)}")
        left.truncate(max(self.size.width - cells(right) - 1, 0), overflow="ellipsis", pad=True)
        if not isinstance(detail, Content):
            first, second = map(visible, detail)
            detail = Content.assemble((first, "bold"), "\n", (second, "$foreground 75%"))
        every = (*self.ACTIONS, *OVERVIEW)
        actions = [each for each in every if texts.useful.get(each.id, self.ended or each.action != "go_on")]
        title = Content.assemble((left.plain, "$foreground 70%"), " ", (visible(right), "bold"))
        self._written.write("overview-title", title)
        if self.HAS_COLUMNS:
            self._written.write("overview-columns", texts.columns)
        self._written.write("overview-detail", detail)
        self._written.write("overview-keys", key_line(actions, self.app, self.size.width))

    def on_resize(self) -> None:
        """Say as much as there is room for, which its classes say once it is laid out."""
        self.show_lines()
        self.call_after_refresh(self.show_lines)

    # Ways out

    def action_leave(self) -> None:
        self.worker.cancel(self.KIND)
        self.dismiss(None)


def _explored(session: Session) -> str:
    unknown = ", ".join(filter(None, map(unknown_named, session.sequences.values())))
    also = f" · not in the vocabulary: {unknown}" if unknown else ""
    return f"tui-transformer   {session.model.name} · {session.model.config.summary}{also}"


def work_on(
    screen: Overview,
    following: Callable[[], Piece | None],
    work: Callable[[Piece, Task], Result],
    take: Callable[[Piece, Result], None],
    cost: Callable[[Piece], int] = lambda _: AT_ONCE + 1,
    leave_out: Callable[[Piece], bool] = lambda _: False,
) -> None:
    """Let a screen work bit by bit from now on, as `Pieces` does, until that is ended by hand."""

    def wanted() -> Piece | None:
        return None if screen.ended else following()

    screen.pieces = Pieces(screen.requests, screen.KIND, wanted, work, take, cost, leave_out)


def leave_to(screen: Overview, stop: str, head: int = 0, row: int | None = None, column: int | None = None) -> None:
    """Back to the main screen, at a cell of a step; where no cell is named it stays where it was."""
    place = screen.port.position.place
    cell = Place(head, place.row if row is None else row, place.column if column is None else column)
    screen.action_leave()
    screen.port.visit(Position(stop, cell))


def show_map(screen: Overview, view: View, scale: Scale, note: str) -> None:
    """Show a whole matrix, and what its colours mean; the cursor stays where it is."""
    screen.query_one(HeatMap).show(view, scale, view.tile(range(view.rows.size), range(view.columns.size)))
    screen.query_one(Legend).show(scale, note=note)


def value_at(view: View, row: int, column: int) -> float:
    """The number of a cell."""
    return float(view.window(range(row, row + 1), range(column, column + 1))[0, 0])


def following(choices: Sequence[Result], current: Result, by: int = 1) -> Result:
    """The next of some choices, round and round."""
    return choices[(choices.index(current) + by) % len(choices)]


def part_shown(what: str, shown: range, count: int) -> str:
    """The part of so many things that is on screen, in words."""
    if not shown:
        return f"none of {count:,} {what}{'s' * (count != 1)}"
    if len(shown) >= count:
        return f"all {count:,} {what}s" if count > 1 else f"1 {what}"
    return f"{what}s {shown.start:,} to {shown.stop - 1:,} of {count:,}"
