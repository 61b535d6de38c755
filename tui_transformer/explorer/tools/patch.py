"""Patching: the step that is shown, or a head or row of it, with the values that another sentence gives it."""

from __future__ import annotations

from textual.app import ComposeResult

from tui_transformer.engine.axis import cells, shape_text, within
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import PATCH
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import TEXT, Field, Form
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.port import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation import perform
from tui_transformer.explorer.tools.measure import FIELDS, TOKENS, read, takes_words, values_of
from tui_transformer.records import dataclass, replace
from tui_transformer.session.edit_format import FromSentence
from tui_transformer.session.other_sentences import counterpart
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.store import AT_ONCE
from tui_transformer.session.view_state import NOTHING, Measure

WHOLE, HEAD, ROW = "whole step", "head", "row"


@dataclass(frozen=True, eq=False)
class Draft:
    """A patch before its values are there.

    Attributes:
        patch: Which part of the step, read from the other trace when it is made.
        left: Rows of the step that stay as they are, as the other sentence is shorter.
    """

    other: Session
    patch: FromSentence
    left: range = range(0)
    measure: Measure | None = None

    def build(self, task: Task) -> FromSentence:
        """On the worker: the patch with its values, so that the other trace can go; a very large one stays lazy."""
        trace, region = self.other.trace, self.patch.region
        if cells(region) > trace.block:
            return self.patch
        trace.compute((self.patch.name,), before=lambda step: task.report(step.name))
        values = trace.window(self.patch.name, region)
        return replace(self.patch, read=lambda part: values[None][within(part, region)])


def open_from(port: Port) -> None:
    """Ask for the other sentence.

    Raises:
        InputError: There is nothing to patch: no sentence, no step, whole numbers.
    """
    session, position = port.session, port.position
    program, name = session.trace.program, position.stop
    if not session.model.config.vocab_size:
        raise InputError("this model reads no sentence that values could come from")
    if name not in program.by_name:
        raise InputError("go to a step: its values are patched")
    if program.step(name).op.integer:
        raise InputError(f"{name} holds whole numbers: edit the sentence instead")
    if len(program.shape(name)) < 2:
        raise InputError(f"{name} has no rows and columns: go to another step")

    def finish(draft: Draft | None) -> None:
        if draft is not None:
            measured = port.session.with_measure(draft.measure)
            port.ask("patch", AT_ONCE + 1, draft.build, lambda patch: perform(port, (patch,), measured))

    port.open(PatchScreen(session, position), finish)


def draft(session: Session, position: Position, text: str, part: str) -> Draft:
    """Draft of a patch of a step from another sentence, or its token IDs; `part` is `WHOLE`, `HEAD` or `ROW`.

    Raises:
        InputError: The sentence cannot be read, or its trace has no such cells.
    """
    other = replace(session, overlay=NOTHING).with_text(text)
    name, place = position.stop, position.place
    here, there = (each.base.program.shape(name)[-2] for each in (session, other))
    common = min(here, there)
    rows = range(place.row, place.row + 1) if part == ROW else None if here == there else range(common)
    heads = range(place.head, place.head + 1) if part == HEAD else None
    patch = FromSentence.between(session.base, other.trace, name, rows, heads)
    left = range(common, here) if part != ROW else range(0)
    return Draft(other, replace(patch, sentence=text.strip()), left)


def note(session: Session, name: str, drafted: Draft) -> str:
    """How long both sentences are, and which rows are patched and which stay."""
    here, there = len(session.encoding.tokens), len(drafted.other.encoding.tokens)
    tokens = f"{there} token{'s' if there != 1 else ''}"
    lines = [f"{tokens}, here {here}" if there != here else f"{tokens}, as many as here"]
    mine, other = (each.base.program.shape(name) for each in (session, drafted.other))
    if drafted.left:
        first, last = drafted.left.start, drafted.left.stop - 1
        rest = f"{first} to {last} stay" if last > first else f"{first} stays"
        lines.append(f"rows 0 to {first - 1} are patched; {rest} as before")
    elif mine[-2] < other[-2]:
        lines.append(f"the step is {shape_text(mine)} here and {shape_text(other)} there: the common rows are patched")
    return "\n".join(lines)


class PatchScreen(Dialog[Draft]):
    """The other sentence, and which part of the step is taken from it."""

    ACTIONS = PATCH
    HELP_TOPIC = "patch"

    def __init__(self, session: Session, position: Position) -> None:
        program, place = session.trace.program, position.place
        heads = program.shape(position.stop)[:-2]
        head = {f"head {place.head}": HEAD} if heads and heads[0] > 1 else {}
        self._parts = {WHOLE: WHOLE, **head, f"row {place.row}": ROW}
        what = "sentence" if session.model.vocabulary is not None else "token IDs"
        fields = (
            Field("sentence", what, "The values of the step come from it.", longest=TEXT),
            Field("part", "in place of", "Which part of the step is patched.", tuple(self._parts)),
            *(FIELDS if program.logits else ()),
        )
        own = session.text or session.encoding.text
        values = {"sentence": counterpart(session) or own, "part": WHOLE} | values_of(session)
        super().__init__(f"Patch {position.stop}")
        self._session, self._position = session, position
        self._form = Form((fields,), values, lambda _: self._show(), apply="patch")
        self._draft: Draft | None = None

    def body(self) -> ComposeResult:
        yield self._form

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        form, values = self._form, self._form.values
        form.show_field(TOKENS, shown=takes_words(values))
        try:
            drafted = draft(self._session, self._position, values["sentence"], self._parts[values["part"]])
            self._draft = replace(drafted, measure=read(self._session, values))
        except InputError as error:
            self._draft = None
            form.show_status(str(error), wrong=True)
        else:
            rows = note(self._session, self._position.stop, self._draft)
            form.show_status(hint(self.app, f"{rows}\nwhat depends on it is computed again; {{undo}} takes it back"))

    def action_submit(self) -> None:
        if self._draft is not None:
            self.dismiss(self._draft)
