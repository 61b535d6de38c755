"""Patches from another sentence: tables of them as heat maps; and one, of the step that is shown, or of a part."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui_transformer.analysis.patching import kinds_of
from tui_transformer.engine.axis import cells, shape_text, within
from tui_transformer.engine.number_format import spoken
from tui_transformer.errors import InputError
from tui_transformer.explorer.shell.actions.dialogs import PATCH
from tui_transformer.explorer.shell.base import Port, ask_of_now, copy_line
from tui_transformer.explorer.shell.dialog import Dialog
from tui_transformer.explorer.shell.form import TEXT, Field, Form
from tui_transformer.explorer.shell.keymap import hint
from tui_transformer.explorer.shell.overview import Overview, Texts, leave_to, show_map, work_on
from tui_transformer.explorer.shell.prompt import asking
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.explorer.tools.ablation import perform
from tui_transformer.explorer.tools.measure import FIELDS, TOKENS, choose, read, takes_words, values_of
from tui_transformer.explorer.tools.patch_tables import PatchTable, PathTable, receivers_of
from tui_transformer.explorer.widgets.heat_map import HeatMap
from tui_transformer.explorer.widgets.legend import Legend
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import on_targets
from tui_transformer.session.edit_format import FromSentence
from tui_transformer.session.open_session import shell_line, unwritten
from tui_transformer.session.other_sentences import counterpart
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.session.view_state import NOTHING, Measure

PATHS = "path"
AnyTable = PatchTable | PathTable


class PatchingScreen(Overview, tool="patching"):
    """The effect of every position, head or layer that is brought over from another sentence, and of every path."""

    WIDGETS = (HeatMap, Legend)
    DEFAULT_CSS = """
    PatchingScreen {
        #maps { height: 1fr; Vertical { width: 1fr; } HeatMap { height: 1fr; } }
        #estimate, .map-title { display: none; }
        &.-estimated #estimate, &.-estimated .map-title { display: block; }
        #estimate { padding: 0 0 0 2; }
        .map-title { height: 1; color: $foreground 65%; }
    }
    """

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        program = self.session.trace.program
        self.receivers, self.to = receivers_of(program), 0
        self.kinds = (*kinds_of(program), *(((PATHS, ""),) if self.receivers else ()))
        self.at = 0
        self.table: AnyTable | None = None
        self.suggested = ""

        def following() -> Any:
            return self.table if self.table is not None and self.table.missing else None

        work_on(self, following, lambda table, task: table.measure(task), self._take)

    def content(self) -> ComposeResult:
        with Horizontal(id="maps"):
            with Vertical():
                yield Static("patched alone", classes="map-title")
                yield HeatMap()
            with Vertical(id="estimate"):
                yield Static("estimated: gradient × difference", classes="map-title")
                estimate = HeatMap(id="estimates")
                estimate.can_focus = False
                yield estimate
        yield Legend()

    def begin(self) -> None:
        """The counterpart of the sentence; where none is found it is asked for."""
        self.suggested = counterpart(self.session)
        try:
            other = self._read(self.suggested) if self.suggested else None
        except InputError:
            other = None
        if other is not None:
            self._begin(other)
            return
        self.show_lines()
        self.call_after_refresh(self.action_sentence)

    def _read(self, text: str) -> Session:
        here = self.session.with_overlay(NOTHING)
        other = replace(here, edits=()).with_text(text)
        tokens = len(here.encoding.tokens), len(other.encoding.tokens)
        if tokens[0] != tokens[1]:
            raise InputError(f"it has {tokens[1]} tokens and this sentence {tokens[0]}: a table needs as many")
        return other.with_edits(*here.edits)  # as the shell has it

    def action_sentence(self) -> None:
        value = (self.session if self.table is None else self.table.other).sentence
        self.open(*asking("Patch from", self._read, self._begin, value=value, hint="a sentence of as many tokens"))

    def _begin(self, other: Session) -> None:
        self.ended = False
        kind, of = self.kinds[self.at]
        if kind == PATHS:
            self.table = PathTable(self.session, other, self.receivers[self.to])
        else:
            self.table = PatchTable(self.session, other, kind, of)
        self._show(self.table)
        self.pieces.again()

    def _take(self, table: AnyTable, found: Any) -> None:
        table.take(found)
        self._show(table)

    def _show(self, table: AnyTable) -> None:
        change, what, estimate = "", "cell", None
        if isinstance(table, PathTable):
            change, what, estimate = "change of ", "path", table.estimate
        show_map(self, table.view, table.scale, f"{change}{table.metric}, with the {what} patched")
        self.set_class(estimate is not None, "-estimated")
        if estimate is not None:
            tile = estimate.tile(range(estimate.rows.size), range(estimate.columns.size))
            cursor = self.query_one(HeatMap).cursor
            self.query_one("#estimates", HeatMap).show(estimate, table.scale, tile, cursor=cursor)
        self.show_lines()

    def moved(self) -> None:
        self.query_one("#estimates", HeatMap).cursor = self.query_one(HeatMap).cursor
        self.show_lines()

    def texts(self) -> Texts:
        table = self.table
        if table is None:
            asks = self.port.hint("{sentence.edit} asks for the other sentence")
            useful: dict[str, object] = {"layer.next": False, "copy.cell": False}
            return Texts("Tables of patches", "", ("nothing is patched yet", asks), useful=useful)
        other, note = table.other, ""
        if table.ends is not None:
            was, becomes = (spoken(end, 4) for end in table.ends)
            note = f"{table.metric}: {was} as it is, {becomes} of the other sentence"
        suggested = "the suggested " * (other.sentence == self.suggested)
        first, second = table.cell(*self.query_one(HeatMap).cursor)
        return Texts(
            f"Patch · each {table.title} from {suggested}“{other.sentence}”",
            note,
            (first, hint(self.app, second, direct=True)),
            table.progress,
            useful={"layer.next": isinstance(table, PathTable) and len(self.receivers) > 1},
        )

    # What keys do

    def action_kind(self) -> None:
        self.at = (self.at + 1) % len(self.kinds)
        self._begin_again()

    def action_receivers(self, by: int) -> None:
        if isinstance(self.table, PathTable):
            self.to = (self.to + by) % len(self.receivers)
            self._begin_again()
        else:
            self.say(self.port.hint("these are no paths: {kind} goes on to them"))

    def action_copy_line(self) -> None:
        table, measure, session = self.table, self.session.measure, self.session
        if table is None:
            return
        other = table.other
        read = ("--from-text", other.text) if other.text else ("--from-ids", ",".join(map(str, other.encoding.ids)))
        metric = () if measure is None else ("--metric", measure.name)
        tokens = () if measure is None or not measure.tokens else ("--tokens", ",".join(map(str, measure.tokens)))
        right = ("--targets", ",".join(map(str, session.loss_targets))) if on_targets(measure) else ()
        place = () if session.masked is None else ("--position", str(table.positions.start))
        each = ("--receivers",) if isinstance(table, PathTable) else ("--each",)
        of = ("--of", table.of) if isinstance(table, PatchTable) and table.of else ()
        line = shell_line(session, "patch", *read, *each, table.kind, *of, *metric, *tokens, *right, *place)
        copy_line(self, line, unwritten(session), "what is broken" if session.breaks else "")

    def action_measure(self) -> None:
        choose(self.port, self._begin_again, self)

    def _begin_again(self) -> None:
        if self.table is not None:
            self._begin(self.table.other)

    def chosen(self) -> None:
        table, (row, column) = self.table, self.query_one(HeatMap).cursor
        if isinstance(table, PathTable):
            part = table.senders[row].parts[0]
            leave_to(self, part.steps[0], head=part.number or 0)
            return
        if table is None or (place := table.place(row, column)) is None:
            return
        other, port = table.other, self.port
        patch = FromSentence.between(self.session.base, other.trace, place.step, place.rows, place.heads)
        draft = Draft(other, replace(patch, sentence=other.sentence))
        self.action_leave()
        ask_of_now(port, "patch", draft.build, lambda made: perform(port, (made,)))


# One patch


WHOLE, HEAD, ROW = "whole step", "head", "row"


@dataclass(frozen=True, eq=False)
class Draft:
    """A patch before its values are there.

    Attributes:
        patch: Which part of the step, read from the other trace when it is made.
    """

    other: Session
    patch: FromSentence
    measure: Measure | None = None

    def build(self, task: Task) -> FromSentence:
        """On the worker: the patch with its values, so that the other trace can go; a very large one stays lazy."""
        trace, region = self.other.trace, self.patch.region
        if cells(region) > trace.block:
            return self.patch
        trace.compute((self.patch.name,), before=lambda step: task.report(step.name))
        values = trace.window(self.patch.name, region)
        return replace(self.patch, read=lambda part: values[None][within(part, region)])


def open_patch(port: Port) -> None:
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
            ask_of_now(port, "patch", draft.build, lambda patch: perform(port, (patch,), measured))

    port.open(PatchScreen(session, position), finish)


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
        values = {"sentence": counterpart(session) or session.sentence, "part": WHOLE} | values_of(session)
        self._session, self._position = session, position
        self._form = Form((fields,), values, lambda _: self._show(), apply="patch")
        super().__init__(f"Patch {position.stop}", self._form)
        self._draft: Draft | None = None

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        form, values, session = self._form, self._form.values, self._session
        name, place, part = self._position.stop, self._position.place, self._parts[values["part"]]
        form.show_field(TOKENS, shown=takes_words(values))
        try:
            other = replace(session, overlay=NOTHING).with_text(values["sentence"])
            here, there = (each.base.program.shape(name) for each in (session, other))
            common = None if here[-2] == there[-2] else range(min(here[-2], there[-2]))
            rows = range(place.row, place.row + 1) if part == ROW else common
            heads = range(place.head, place.head + 1) if part == HEAD else None
            patch = FromSentence.between(session.base, other.trace, name, rows, heads)
            self._draft = Draft(other, replace(patch, sentence=values["sentence"].strip()), read(session, values))
        except InputError as error:
            self._draft = None
            form.show_status(str(error), wrong=True)
            return
        lengths = len(other.encoding.tokens), len(session.encoding.tokens)
        tokens = f"{lengths[0]} token{'s' if lengths[0] != 1 else ''}"
        lines = [f"{tokens}, here {lengths[1]}" if lengths[0] != lengths[1] else f"{tokens}, as many as here"]
        first, last = there[-2], here[-2] - 1
        if part != ROW and first <= last:  # the other sentence is shorter
            rest = f"{first} to {last} stay" if last > first else f"{first} stays"
            lines.append(f"rows 0 to {first - 1} are patched; {rest} as before")
        elif here[-2] < there[-2]:
            shapes = f"the step is {shape_text(here)} here and {shape_text(there)} there"
            lines.append(f"{shapes}: the common rows are patched")
        lines.append("what depends on it is computed again; {undo} takes it back")
        form.show_status(hint(self.app, "\n".join(lines)))

    def action_submit(self) -> None:
        if self._draft is not None:
            self.dismiss(self._draft)
