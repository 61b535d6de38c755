"""A model that writes on, token by token, and how it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Static

from tui_transformer.analysis.attentions import Report
from tui_transformer.engine.changes import Add, of_pass
from tui_transformer.engine.program import PROBABILITIES, Step
from tui_transformer.errors import InputError
from tui_transformer.explorer.guard.event_queue import draw_together
from tui_transformer.explorer.shell.actions.dialogs import FORM
from tui_transformer.explorer.shell.actions.tools import TOOLS
from tui_transformer.explorer.shell.base import ExplorerScreen, Port, copy_line
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import OFF_ON, Field, Form
from tui_transformer.explorer.shell.keymap import hint, key_line
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.requests import Requests
from tui_transformer.explorer.shell.user_files import path_of, recent, remember
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.generate import steering as adding
from tui_transformer.explorer.tools.generate.draft import AT_FIRST, Draft, GenerationView, sublayers
from tui_transformer.explorer.tools.generate.view import GenerateView, TokenList, title
from tui_transformer.explorer.tools.generate.writing import GATHER, Writing
from tui_transformer.explorer.tools.settings import read_number, written_number
from tui_transformer.explorer.widgets.generation import TokenText
from tui_transformer.explorer.widgets.labels import Written, inks_of
from tui_transformer.explorer.widgets.line_list import LineList
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.text import token_texts
from tui_transformer.generation.writing import Writer
from tui_transformer.records import replace
from tui_transformer.session.edit_format import as_written
from tui_transformer.session.exploration import Way
from tui_transformer.session.open_session import model_name, shell_line, unwritten
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.steering import at_strength, moved, same, steered, steering, strength_of
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place


def open_from(port: Port) -> None:
    """Write on from the sentence that is explored.

    Raises:
        InputError: The model writes nothing.
    """
    start = adding.Start.of(port.session)
    port.open(GenerateScreen(port, start))
    for note in start.remarks:
        port.say(note, severity="warning")


class GenerateScreen(ExplorerScreen[None]):
    """A text, and what can be done with it."""

    ACTIONS = TOOLS["generate"]
    HELP_TOPIC = "generate"
    DEFAULT_CSS = """
    GenerateScreen {
        layout: vertical;
        background: $background;
        #title, #keys { height: 1; width: 1fr; background: $surface; }
    }
    """

    def __init__(self, port: Port, start: adding.Start) -> None:
        super().__init__()
        self.port, self.session, self._start = port, port.session, start
        self._read: dict[object, Session] = {}  # by source and prompt
        self._begun_with = self.steering
        self.requests = Requests(self, port.worker, self.show_lines, here=lambda: False)
        self.view = GenerateView()
        self.writing = Writing(self.requests, self.view, self._show)
        self.writing.failed = self._follow
        self._written = Written(self)

    def compose(self) -> ComposeResult:
        self.view.fit(self.app.size)
        yield Static(id="title", markup=False)
        yield self.view
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        tokens = self.query_one(TokenList)
        tokens.waits = self.writing.behind
        tokens.focus()
        self._begin(self._start.writer, self.session)
        self.show_lines()
        self.app.theme_changed_signal.subscribe(self, lambda _: self._show_again())

    def on_resize(self, event: Resize) -> None:
        self.view.fit(event.size)
        self.call_after_refresh(self._show_again)

    # What is shown

    def _show(self, shown: GenerationView) -> None:
        draw_together(self)
        self._follow()
        self.view.show(shown)

    def _show_again(self) -> None:
        self.show_lines()
        self.view.show_again()

    def show_lines(self) -> None:
        width, inks, draft, doing = self.size.width, inks_of(self), self.writing.draft, self.requests.doing
        if draft is not None:
            self._written.write("title", title(draft, model_name(self.session), doing, width, inks))
        else:
            self._written.write("title", Text(" Generate", inks.accent).append(f"   {doing}", inks.plain))
        useful = {"pane.next": self.view.has_class("-one"), "cursor.wider": self.steering is not None}
        shown = [action for action in self.ACTIONS if useful.get(action.id, True)]
        self._written.write("keys", key_line(shown, self.app, width))
        self.view.show_slider(self.steering, draft.end if draft is not None else 0.0)

    def action_other_pane(self) -> None:
        self.view.turn_pane()
        self.call_after_refresh(self._show_again)

    def action_other_layer(self, by: int) -> None:
        draft = self.writing.draft
        if draft is not None:
            self.writing.layer = (self.writing.layer + by) % len(sublayers(draft.writer))
            self.writing.gather()

    # Writing

    action_forward = property(lambda self: self.writing.forward)
    action_backward = property(lambda self: self.writing.backward)
    action_write_on = property(lambda self: self.writing.write_on)

    @on(LineList.Chosen)
    def _choose(self, event: LineList.Chosen) -> None:
        shown = self.view.shown
        if shown is not None and shown.draft is self.writing.draft:
            self.writing.choose(shown.choices[event.index].token)

    @on(TokenText.Chosen)
    def _go_to(self, event: TokenText.Chosen) -> None:
        draft = self.writing.draft
        if draft is not None and event.place >= draft.state.prompt:
            self.writing.halt()
            self.writing.go(event.place - draft.state.prompt)

    # What is added

    @property
    def steering(self) -> Add | None:
        """The edit that the slider moves: one of the session, as all edits are."""
        return steering(self.session.edits, self.session.base.program)

    def _follow(self) -> None:
        """The session is that of the text: what was ended or undone is no edit of it."""
        draft = self.writing.draft
        if draft is not None:
            of = draft.writer.source, draft.states[0].ids
            self._read[of] = self.session = adding.resteered(self._read.get(of, self.session), draft.steering)
        self.show_lines()

    def action_steer(self, by: int) -> None:
        edit, draft = self.steering, self.writing.draft
        if edit is None:
            self.say(hint(self.app, "nothing is added to a step: {cell.edit} does, and then there is a slider"))
            return
        if draft is None or not draft.end:
            self.writing.waits(partial(self.action_steer, by))
            return
        strength = moved(strength_of(edit), draft.end, by)
        if strength != strength_of(edit):
            changed = at_strength(edit, strength)
            self.session = steered(self.session, changed)
            self._steer(lambda _: changed)

    def action_direction(self) -> None:
        """Ask for what is added, as edits are written; nothing ends it."""
        if self.writing.waits(self.action_direction) or self.writing.draft is None:
            return
        session, edit = self.session, self.steering
        written = None if edit is None else as_written(edit, session.base.program) or ""
        value = adding.suggested(session, self.port.position) if written is None else written

        def read(text: str) -> tuple[str, Callable[[Report], Add | None]]:
            return text, adding.read_addition(self.session, text)

        def use(given: tuple[str, Callable[[Report], Add | None]]) -> None:
            text, make = given
            if text:
                remember("edits", text)
            self._steer(lambda task: make(task.report))

        lately = [text for text in recent("edits") if "+=" in text]
        self.open(*asking("Add to a step", read, use, value=value, hint=adding.STEERS, lately=lately))

    def _steer(self, make: Callable[[Task], Add | None]) -> None:
        """Write the text anew with something added, which is made on the worker; with nothing as it is without."""
        self.writing.halt()
        draft, start = self.writing.draft, self._start
        if draft is None:
            return
        count = max(len(draft.shares), AT_FIRST)

        def work(task: Task) -> Draft:
            edit = make(task)
            return draft.steered(edit, start.beside(edit), count, lambda step: task.report(f"the text: {step.name}"))

        self.writing.write(work, push=True)
        self.show_lines()

    # Changes that can be undone

    def action_turn_back(self, way: Way) -> None:
        if self.writing.waits(partial(self.action_turn_back, way)):
            return
        if self.writing.history is not None and self.writing.history.turn(way):
            self.writing.gather()
        else:
            self.say(f"there is nothing to {way}")
        self._follow()

    def action_settings(self, field: str = "greedy") -> None:
        if self.writing.waits(partial(self.action_settings, field)) or (draft := self.writing.draft) is None:
            return

        def use(settings: Settings | None) -> None:
            now = self.writing.draft
            if settings is not None and now is not None and settings != now.state.settings:
                self.writing.change(lambda draft, _: draft.chosen_by(settings), "the distribution", push=True)

        self.open(GenerateSettings(draft.state.settings, field), use)

    def action_sentence(self) -> None:
        if self.writing.waits(self.action_sentence):
            return
        session = self.session

        def begin(read: Session) -> None:
            self.session, writer = adding.resteered(read, self.steering), self._start.writer
            if read.model.has_decoder:
                writer = Writer(read.model, None, writer.rules, read.encoding.ids, read.mask_read, writer.edits)
            self._begin(writer, read)

        title = "Source sentence" if session.model.has_decoder else "Prompt"
        note = hint(self.app, "{undo} takes it back")
        self.open(*asking(title, session.with_text, begin, value=session.sentence, hint=note))

    def _begin(self, writer: Writer, session: Session) -> None:
        """Read the prompt of a session; undo has the text back that was there."""
        draft, edit, start = self.writing.draft, self.steering, self._start
        settings, prompt = writer.settings if draft is None else draft.settings, adding.prompt_of(writer, session)
        self._read[writer.source, prompt] = session

        def work(task: Task) -> Draft:
            writer.settings = settings

            def before(step: Step) -> None:
                task.report(f"{len(prompt):,} tokens of the prompt: {step.name}")

            begun = Draft(writer, settings, (writer.begin(prompt, before),))
            return begun if edit is None else begun.steered(edit, start.beside(edit), 0, before)

        self.writing.write(work, push=True)

    # Leaving

    def action_leave(self) -> None:
        if self.writing.halt() and self.writing.draft is not None:
            self._follow()
            return
        self.requests.cancel(GATHER)
        self.dismiss()
        edit = self.steering
        if not same(edit, self._begun_with):  # one change of the explorer, however often the slider was moved
            self.port.change(adding.resteered(self.port.session, edit))

    def action_explore(self) -> None:
        """Open the text up to the place in the explorer, at the probabilities of the token that comes next."""
        if self.writing.waits(self.action_explore) or (draft := self.writing.draft) is None:
            return
        try:
            bare = adding.reading(self.session, draft.state.ids, draft.writer.source)
            session = bare.with_edits(*of_pass(draft.writer.edits, bare.base.program, 0))
            _ = session.trace
        except InputError as error:
            self.say(str(error), severity="error")
            return
        self.writing.halt()
        self.dismiss()
        self.port.change(session, Position(PROBABILITIES, Place(row=len(draft.state.ids) - 1, column=draft.marked)))

    def action_copy_line(self) -> None:
        draft = self.writing.draft
        if draft is None:
            return
        settings = draft.settings
        top_k = ("--top-k", str(settings.top_k)) if settings.top_k or draft.writer.model.folder is not None else ()
        temperature, top_p = map(written_number, (settings.temperature, settings.top_p))
        drawing = ("--temperature", temperature, "--top-p", top_p, *top_k)
        own = (*drawing, "--sample-seed", str(settings.seed)) if settings.draws else ("--greedy",)
        ends = bool(draft.writer.rules.forced_eos_token_id)  # a shorter text would end with it
        count = (not ends and len(draft.shares)) or settings.max_new_tokens
        session, model, source = self.session, draft.writer.model, draft.writer.source
        most = model.config.max_length  # as edits are written for a text that grows
        program = model.program(len(source), most) if source else model.program(most, 0)
        edits = [as_written(each.placed(program, {}), program) for each in self._start.beside(self.steering)]
        line = shell_line(session, "generate", *own, "--max-new-tokens", str(count), edits=edits)
        copy_line(self, line, unwritten(session, edits), "what was chosen otherwise" if draft.by_hand else "")

    def action_export(self) -> None:
        if self.writing.waits(self.action_export) or (draft := self.writing.draft) is None:
            return
        text = "".join(token_texts(draft.writer.model, draft.ids))

        def write(name: str) -> str:
            from tui_transformer.files import write_whole
            from tui_transformer.report.export import SUFFIXES

            path = path_of(name)
            if SUFFIXES.get(path.suffix.lower(), "text") != "text":  # its name says that it is something else
                raise InputError(f"{visible(path.name)}: a text is no {path.suffix} file: let its name end in .txt")
            write_whole(path, f"{text}\n".encode(errors="replace"))
            return name

        self.open(*asking("Write the text to", write, self.port.written, value="text.txt", replaces=True))


# How the next token is chosen


SWITCHES = ("greedy", "use_cache")
NUMBERS: Mapping[str, Callable[[str], float]] = {
    **dict.fromkeys(("temperature", "top_p"), float),
    **dict.fromkeys(("top_k", "seed", "max_new_tokens"), int),
}
"""How each number is read."""
DRAWING = ("temperature", "top_k", "top_p", "seed")
"""Fields that matter only where tokens are drawn: writing in one turns greedy off."""
FIELDS = (
    Field("greedy", "greedy", "The most likely token is taken; nothing is drawn.", OFF_ON),
    Field("temperature", "temperature", "Logits are divided by it; near 0 the most likely token wins."),
    Field("top_k", "top-k", "Only so many of the most likely tokens; 0 for all."),
    Field("top_p", "top-p", "Only the fewest tokens that make up this share; 1 for all."),
    Field("seed", "seed", "Of the draws: the same seed writes the same text."),
    Field("max_new_tokens", "at most", "New tokens after the prompt."),
    Field("use_cache", "KV cache", "Keys and values are kept; without it every token computes all rows again.", OFF_ON),
)


class GenerateSettings(Dialog[Settings]):
    """A form of the settings; gives them, or None where it is left."""

    ACTIONS = FORM
    DEFAULT_CSS = """
    GenerateSettings #box { width: 66; }
    """

    def __init__(self, settings: Settings, field: str) -> None:
        written = {key: written_number(getattr(settings, key)) for key in NUMBERS}
        switched = {key: OFF_ON[bool(getattr(settings, key))] for key in SWITCHES}
        self._settings = settings
        self._form = Form((FIELDS,), written | switched, self._changed, first=field)
        super().__init__("How the next token is chosen", self._form)

    def _changed(self, key: str) -> None:
        """Clear the error; a setting of draws is of use only where tokens are drawn."""
        self._form.show_status("")
        if key in DRAWING:
            self._form.put("greedy", OFF_ON[0])

    def action_submit(self) -> None:
        values = self._form.values
        try:
            numbers = {key: read_number(key, values[key], NUMBERS[key]) for key in NUMBERS}
            switches = {key: values[key] == OFF_ON[1] for key in SWITCHES}
            self.dismiss(replace(self._settings, **numbers, **switches))  # type: ignore[arg-type]
        except InputError as error:
            self._form.show_status(str(error), wrong=True)
