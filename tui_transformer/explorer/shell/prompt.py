"""A question that is answered with one line of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Key
from textual.geometry import Region
from textual.widget import Widget
from textual.widgets import Input, Static

from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import PICK, PROMPT
from tui_transformer.explorer.shell.dialog import Dialog, plain
from tui_transformer.explorer.shell.keys import Action
from tui_transformer.explorer.shell.line_input import LineInput, completes
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.records import dataclass
from tui_transformer.text.display import visible

Result = TypeVar("Result")
Check = Callable[[str], object]
MOST_SHOWN = 200
"""Suggestions that are listed; the completion knows them all."""


@dataclass(frozen=True)
class Advice:
    """Remarks on a text while it is typed.

    Attributes:
        said: Lines under it.
        completions: Texts that it may become.
        problem: What is wrong with it.
    """

    said: Content
    completions: Sequence[str]
    problem: str = ""


STALE = "-stale"
"""Class of what shows the sentence before, as what it shows of the one that is typed is still to come."""


class Below(Static):
    """What stands below what is typed and follows it; the box is then as high as the pane whose place it takes."""

    DEFAULT_CSS = "Below { text-wrap: nowrap; text-overflow: clip; }"

    @property
    def settled(self) -> bool:
        """Whether it shows what is typed."""
        return True


class PromptScreen(Dialog[str]):
    """One line to type in; gives the text, or None where it is left."""

    DEFAULT_CSS = """
    PromptScreen {
        #hint, #suggestions, #problem { display: none; }
        #suggestions { max-height: 4; }
        .-said { display: block !important; }
        &.-in-place {
            align: left top;
            background: transparent;
            #box { max-width: 100%; }
        }
        &.-with-below #hint, &.-with-below #suggestions { display: none !important; }
    }
    """

    def __init__(
        self,
        title: str,
        *,
        value: str = "",
        hint: str = "",
        placeholder: str = "",
        check: Check | None = None,
        suggestions: Sequence[str] = (),
        advise: Callable[[str], Advice] | None = None,
        preview: Callable[[str], None] | None = None,
        lately: Sequence[str] = (),
        replaces: bool = False,
        over: Widget | None = None,
        below: Below | None = None,
    ) -> None:
        """Make a prompt.

        Args:
            title: What is asked for.
            value: The text to start with.
            hint: A line under the input.
            placeholder: What an empty input shows.
            check: Raises InputError for a text that cannot be used; its message is shown and the prompt stays.
            suggestions: What right or tab completes to.
            advise: Asked while the text is typed; what it suggests stands in place of `suggestions`.
            preview: Called with the text while it is typed.
            lately: Texts that were given before, the last first; up and down go through them.
            replaces: What is typed first replaces the text to start with, which is selected.
            over: The pane whose place it takes, where that has one, so that all others are seen.
            below: What stands below what is typed, in place of hint and suggestions.
        """
        super().__init__(title)
        self._value, self._hint, self._placeholder = value, hint, placeholder
        self._check, self._suggestions, self._advise, self._preview = check, suggestions, advise, preview
        self._lately = tuple(text for text in lately if text != value)
        self._place, self._replaces, self._over, self._below = -1, replaces, over, below
        self.set_class(below is not None, "-with-below")

    @property
    def settled(self) -> bool:
        return self._below is None or self._below.settled

    def actions(self) -> Sequence[Action]:
        """Completion is named where there is something to complete to."""
        there = {"complete": self._suggestions or self._advise, "lately": self._lately}
        return [action for action in PROMPT if there.get(action.short, True)]

    def body(self) -> ComposeResult:
        yield LineInput(self._value, self._placeholder, self._suggestions)
        yield Static(id="problem", classes="problem")
        yield Static(id="hint", classes="quiet")
        yield Static(id="suggestions", classes="quiet")
        if self._below is not None:
            yield self._below

    def on_mount(self) -> None:
        if self._replaces:
            self.query_one(LineInput).select_all()
        self._say("hint", plain(self._hint))
        self._suggest(self._value)
        if self._over is not None:
            self._over.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._stand())
            self._stand()

    def _stand(self) -> None:
        """Take the place of the pane, or the middle where that has none."""
        box, region = self.query_one("#box"), self._over.region if self._over is not None else Region()
        self.set_class(bool(region), "-in-place")
        box.styles.width = region.width or None
        if self._below is not None:
            box.styles.height = region.height or None
        box.styles.offset = region.offset

    def on_key(self, event: Key) -> None:
        """Go through the texts that were given before; below the last is what was written."""
        step = {"up": 1, "down": -1}.get(event.key, 0) if self._lately else 0
        place = self._place + step
        if step and -1 <= place < len(self._lately):
            line = self.query_one(LineInput)
            if self._place == -1:
                self._value = line.value
            self._place = place
            line.value = self._value if place < 0 else self._lately[place]
            line.action_end()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Clear the error, which is being put right, and suggest words."""
        self._say("problem", Content())
        self._suggest(event.value)
        if self._preview is not None:
            self._preview(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            if self._check is not None:
                self._check(event.value)
        except InputError as error:
            self.refuse(error)
            return
        self.dismiss(event.value)

    def refuse(self, error: InputError) -> None:
        """Say why a text cannot be used."""
        self._say("problem", plain(str(error)))

    def _suggest(self, typed: str) -> None:
        """List the suggestions, those that complete what is typed first; or say what is advised."""
        if self._advise is not None:
            advice = self._advise(typed)
            self.query_one(LineInput).suggestions = list(advice.completions)
            self._say("problem", plain(advice.problem))
            self._say("suggestions", advice.said)
            return
        words = sorted(self.query_one(LineInput).suggestions, key=lambda word: not completes(word, typed))
        parts = [Content.styled(word, "$foreground" if typed and completes(word, typed) else "") for word in words]
        self._say("suggestions", Content("   ").join(parts[:MOST_SHOWN]))

    def _say(self, where: str, text: Content) -> None:
        line = self.query_one(f"#{where}", Static)
        line.update(text)
        line.set_class(bool(text.plain), "-said")


def asking(
    title: str, read: Callable[[str], Result], done: Callable[[Result], object], **options: Any
) -> tuple[PromptScreen, Callable[[str | None], None]]:
    """A prompt for a text that can be read, with its options, and what is done with what was read: to be opened."""
    made = list[Result]()

    def check(text: str) -> None:
        made[:] = [read(text)]

    def answered(text: str | None) -> None:
        if text is not None:
            done(made[0])

    return PromptScreen(title, check=check, **options), answered


class PickScreen(Dialog[str]):
    """Offers, each with a sentence on what it does; gives the name of the one that is picked.

    | Key | Does |
    | :- | :- |
    | enter | Picks the one under the cursor. |
    """

    ACTIONS = PICK

    def __init__(
        self, title: str, offers: Mapping[str, str], note: str = "", *, width: int = 0, shown: Sequence[Action] = PICK
    ) -> None:
        """Names of a column that is so wide at least, and a note below; `shown` is how the border writes the keys."""
        super().__init__(title, LineList(), *([Static(plain(note), classes="quiet")] if note else []))
        self._offers, self._shown = dict(offers), shown
        self._width = max(width, max(map(len, offers)) + 2)

    def actions(self) -> Sequence[Action]:
        return self._shown

    def on_mount(self) -> None:
        lines = self.query_one(LineList)
        texts = [f" {visible(name):<{self._width}}{visible(said)}" for name, said in self._offers.items()]
        lines.styles.height = len(texts)
        lines.show(len(texts), lambda index: Text(texts[index], no_wrap=True, overflow="ellipsis"))
        lines.focus()

    @on(LineList.Chosen)
    def _picked(self, event: LineList.Chosen) -> None:
        self.dismiss(list(self._offers)[event.index])
