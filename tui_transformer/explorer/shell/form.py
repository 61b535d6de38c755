"""A form: fields with labels, the help of the one that has the focus, and a line on what the values give."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Click, DescendantFocus
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Static

from tui_transformer.explorer.guard.failures import careful
from tui_transformer.explorer.shell.actions.dialogs import CHOICE
from tui_transformer.explorer.shell.dialog import plain
from tui_transformer.explorer.shell.keys import bindings
from tui_transformer.explorer.shell.line_input import LineInput
from tui_transformer.records import dataclass
from tui_transformer.text.display import cells, visible

Values = Mapping[str, str]

NUMBER, TEXT = 20, 4096
"""Characters of what is typed, at most."""

OFF_ON = ("off", "on")


@careful
class Choice(Widget, can_focus=True):
    """All values side by side where there is room, the chosen one in brackets; else only that one."""

    BINDINGS = bindings(CHOICE)

    DEFAULT_CSS = """
    Choice {
        height: 1;
        width: 1fr;
        background: $background;
        &:focus { background: $panel; }
        &:disabled { color: $foreground 60%; }
    }
    """

    index: var[int] = var(0, init=False)
    """Which value is chosen."""

    @dataclass
    class Changed(Message):
        """Another value was chosen."""

        choice: Choice
        value: str

    def __init__(self, values: Sequence[str], value: str, *, id: str | None = None, disabled: bool = False) -> None:
        super().__init__(id=id, disabled=disabled)
        self.values = tuple(values)
        self.set_reactive(Choice.index, self.values.index(value))

    @property
    def value(self) -> str:
        return self.values[self.index]

    def watch_index(self) -> None:
        self.refresh()
        self.post_message(self.Changed(self, self.value))

    def render(self) -> Content:
        if self._ends:
            return Content("").join(self._part(value) for value in self.values)
        return self._part(self.value) + Content.styled(f" {self.index + 1} of {len(self.values)}", "$foreground 60%")

    @property
    def _ends(self) -> tuple[int, ...]:
        """The column behind each value, where there is room for all of them; else none."""
        ends = tuple(accumulate(cells(visible(value)) + 2 for value in self.values))
        return ends if ends[-1] <= self.content_size.width else ()

    def _part(self, value: str) -> Content:
        chosen = value == self.value
        color = "$foreground 60%" if self.disabled or not chosen else "bold $accent"
        return Content.styled(f"[{visible(value)}]" if chosen else f" {visible(value)} ", color)

    def action_turn(self, step: int) -> None:
        self.index = (self.index + step) % len(self.values)

    def on_click(self, event: Click) -> None:
        """Choose the value that is clicked; where it stands alone, the next."""
        if not self._ends:
            self.action_turn(1)
        elif (index := bisect_right(self._ends, event.x)) < len(self.values):
            self.index = index


@dataclass(frozen=True)
class Field:
    """One line of a form.

    Attributes:
        key: What its value is called.
        help: A sentence for whoever is on the field.
        choices: What can be chosen; where there is none, a text is typed.
        longest: Characters of that.
        locked: Whether it only shows its value.
    """

    key: str
    label: str
    help: str
    choices: tuple[str, ...] = ()
    longest: int = NUMBER
    locked: bool = False


class Form(Vertical):
    """The fields of a dialog, which takes over their values in its `action_submit`.

    Attributes:
        values: What the fields hold.
    """

    DEFAULT_CSS = """
    Form {
        height: auto;
        #note, #status { display: none; }
        #note.-said, #status.-said { display: block; }
        #fields { height: auto; overflow-y: auto; scrollbar-size-vertical: 1; layout: vertical; }
        .column { height: auto; }
        .field {
            height: 1;
            padding: 0 1 0 0;
            Label { width: 16; padding: 0 1; color: $foreground 75%; }
            &.-here Label { color: $accent; text-style: bold; }
            &.-absent { display: none; }
            LineInput { width: 1fr; }
        }
        #buttons { height: 1; padding: 0 1; }
        #buttons Button { margin: 0 1 0 0; min-width: 9; background: $panel; color: $foreground; }
    }
    """

    def __init__(
        self,
        columns: Sequence[Sequence[Field]],
        values: Values,
        changed: Callable[[str], None],
        *,
        apply: str = "apply",
        first: str = "",
        note: str = "",
    ) -> None:
        """Show values in columns of fields.

        Args:
            columns: Side by side where there is room; else one below the other.
            values: By the keys of the fields.
            changed: Called with the key of a field whose value the user has changed.
            apply: A word for taking over the values.
            first: The field to begin on, by default the first that is not locked.
            note: What is to be known of all of them.
        """
        super().__init__()
        self.values = dict(values)
        self._columns, self._changed = columns, changed
        self._apply, self._first, self._note = apply, first, note

    def compose(self) -> ComposeResult:
        yield Static(plain(self._note), id="note", classes="quiet -said" if self._note else "quiet")
        with Vertical(id="fields"):
            for column in self._columns:
                with Vertical(classes="column"):
                    yield from map(self._row, column)
        yield Static(id="help", classes="quiet")
        yield Static(id="status")
        with Horizontal(id="buttons"):
            for name, action in ((self._apply, "submit"), ("leave", "leave")):
                button = Button(name.capitalize(), action=f"screen.{action}", compact=True)
                button.can_focus = False  # for the mouse: the arrows go through the fields
                yield button

    def _row(self, field: Field) -> Horizontal:
        value, key = self.values[field.key], field.key
        control: Choice | LineInput
        if field.choices:
            control = Choice(field.choices, value, id=key, disabled=field.locked)
        else:
            control = LineInput(value, id=key, max_length=field.longest, disabled=field.locked)
        return Horizontal(Label(field.label, markup=False), control, id=f"{key}-field", classes="field")

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._fit())
        keys = (field.key for column in self._columns for field in column if not field.locked)
        self.query_one(f"#{self._first or next(keys)}").focus()

    def _fit(self) -> None:
        fields, screen = self.query_one("#fields"), self.screen
        others = sum(widget.outer_size.height for widget in self.children if widget.display and widget is not fields)
        fields.styles.max_height = max(screen.size.height - screen.query_one("#box").gutter.height - others, 2)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        for row in self.query(".field"):
            row.set_class(row is event.widget.parent, "-here")
        texts = {field.key: field.help for column in self._columns for field in column}
        self.query_one("#help", Static).update(plain(texts.get(event.widget.id or "", "")))

    # Values

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take(self, event: Input.Changed | Choice.Changed) -> None:
        key = str((event.choice if isinstance(event, Choice.Changed) else event.input).id)
        if self.values[key] != event.value:
            self.values[key] = event.value
            self._changed(key)

    def put(self, key: str, value: str) -> None:
        """Set a value."""
        self.values[key] = value
        control = self.query_one(f"#{key}")
        if isinstance(control, Choice):
            control.index = control.values.index(value)
        elif isinstance(control, LineInput):
            control.value = value

    def show_field(self, key: str, *, shown: bool) -> None:
        """Show a field that is of use now, or hide it."""
        for row in self.query(f"#{key}-field"):
            row.set_class(not shown, "-absent")

    def show_status(self, text: str, *, wrong: bool = False) -> None:
        """Say what the values give, or what is wrong with them."""
        status = self.query_one("#status", Static)
        status.update(plain(text))
        status.set_classes(" ".join(name for name, there in {"-said": text, "problem": wrong}.items() if there))

    @on(Input.Submitted)
    async def _entered(self) -> None:
        await self.run_action("screen.submit")
