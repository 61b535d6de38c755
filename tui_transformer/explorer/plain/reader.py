"""The explorer as it is without a screen: the same session, position and history, changed by meanings of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.engine.program import Grain
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.explorer.plain.help import help_of, only_on_the_screen
from tui_transformer.explorer.plain.keys import STOPS, Typed
from tui_transformer.explorer.plain.model_commands import broken, opened
from tui_transformer.explorer.plain.questions import Questions
from tui_transformer.explorer.plain.sentences import DIGITS, answer_changed, model_said, said, view_at, words_of
from tui_transformer.explorer.plain.tour import Touring
from tui_transformer.guide.lecture import Lecture
from tui_transformer.session.edit_format import EXAMPLES, words, written
from tui_transformer.session.exploration import Exploration
from tui_transformer.session.position import Position, destination, next_stop
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.session.softmax_row import told as softmaxes_told
from tui_transformer.session.step_scene import cell_of
from tui_transformer.session.view_state import GRADIENT, NOTHING, Shown
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import index_of
from tui_transformer.views.view import Values

SHOWN_OF_A_LINE = 12
"""Numbers of a row that are told, the largest first where there are more."""

PAGE = 10
"""Rows that a page is."""

Doing = Callable[["Reader", Typed], str]
"""Does what is typed; gives what to add to the sentence."""


class Reader:
    """Answers what is typed with a sentence."""

    def __init__(
        self,
        explored: Exploration,
        told: Lecture | None = None,
        keymap: Mapping[str, str] = MappingProxyType({}),
        *,
        by_line: bool = True,
    ) -> None:
        """Begin where the exploration is.

        Args:
            explored: The session and the position.
            told: The tour that it begins with; by default none, and that of the model is led when it is asked for.
            keymap: The keys that the user gave to meanings.
            by_line: Whether whole lines are typed, with commands in words, or single keys.
        """
        self.explored, self._keymap, self._begins = explored, keymap, told is not None
        self._touring, self._questions = Touring(explored, told, keymap, by_line=by_line), Questions(explored)
        self.ended = False

    def begin(self) -> str:
        """The model, and where one is, or the first stop of the tour."""
        where = self._touring.go(1) if self._begins else f"{said(self.explored).sentence()}."
        return f"{model_said(self.explored.session)} {where} help lists what can be typed."

    def answer(self, typed: Typed) -> str:
        """Do what is typed, and say where one is, and what changed.

        Raises:
            InputError: It cannot be done; everything is as it was.
        """
        if typed.meaning in STOPS and self._touring.goes_on:
            return self._touring.go(STOPS[typed.meaning])
        if typed.meaning in TELLING:
            return TELLING[typed.meaning](self, typed)
        if typed.meaning not in DOING:
            raise InputError(only_on_the_screen(typed.meaning))
        before = said(self.explored)
        added = DOING[typed.meaning](self, typed)
        now = said(self.explored)
        changes = "; ".join(filter(None, (added, *now.changes(before))))
        return f"{now.sentence()}; {'changed: ' + changes if changes else 'nothing changed'}."

    # Moving

    def step(self, typed: Typed, grain: Grain, direction: int) -> str:
        """So many operations, sublayers or layers on."""
        session, stop = self.explored.session, self.explored.position.stop
        for _ in range(typed.count):
            following = next_stop(session.stops, stop, session.trace.program, grain, direction)
            if following is None:
                break
            stop = following
        self._go(self.explored.position.at(stop))
        return ""

    def move(self, typed: Typed, rows: int, columns: int) -> str:
        """So many cells on."""
        place = self.explored.position.place
        self._place(row=place.row + rows * typed.count, column=place.column + columns * typed.count)
        return ""

    def turn_head(self, typed: Typed, direction: int) -> str:
        """So many heads on."""
        heads = self._heads()
        self._place(head=(self.explored.position.place.head + direction * typed.count) % heads)
        return ""

    def set_place(self, typed: Typed) -> str:
        """The head, row, column or cell that is named."""
        numbers = [int(each) for each in re.findall(r"[0-9]{1,9}", typed.words)]
        sides = {"head": ("head",), "row": ("row",), "column": ("column",), "cell": ("row", "column")}[typed.meaning]
        if len(numbers) != len(sides):
            raise InputError(f"{typed.meaning} needs {' and '.join(sides)} as numbers from 0")
        if typed.meaning == "head" and numbers[0] >= self._heads():
            raise InputError(f"there is no head {numbers[0]}: heads go from 0 to {self._heads() - 1}")
        self._place(**dict(zip(sides, numbers, strict=True)))
        return ""

    def go(self, typed: Typed) -> str:
        """The step that is named."""
        session, position = self.explored.session, self.explored.position
        self._go(position.at(destination(session, position.stop, typed.words)))
        return ""

    def largest(self, _: Typed) -> str:
        """The largest value of the row."""
        values, place = self._row(), self.explored.position.place
        if not np.isfinite(values).any():
            raise InputError("this row is masked: it has no largest value")
        self._place(row=place.row, column=int(np.nanargmax(np.where(np.isfinite(values), values, -np.inf))))
        return "to the largest of the row"

    def back(self, _: Typed) -> str:
        """Where a weight or a term was followed from; in a tour out of it."""
        if not self.explored.trail:
            if self._touring.goes_on:
                return self._touring.leave()
            raise InputError("there is nowhere to go back to")
        self._go(self.explored.trail.pop())
        return ""

    def weights(self, _: Typed) -> str:
        """The first weight that the step reads."""
        program, position = self.explored.session.trace.program, self.explored.position
        names = program.step(position.stop).inputs if position.stop in program.by_name else ()
        first = next((name for name in names if name in program.weights), None)
        if first is None:
            raise InputError("this step has no weights")
        self.explored.trail.append(position)
        self._go(Position(first))
        return ""

    def vocabulary(self, _: Typed) -> str:
        """The list of words."""
        if self.explored.session.model.vocabulary is None:
            raise InputError("this model has no vocabulary")
        self._go(self.explored.position.at(VOCABULARY))
        return ""

    # Changing

    def sentence(self, typed: Typed) -> str:
        """Another sentence."""
        if not self.explored.session.model.config.vocab_size:
            raise InputError("this model reads no sentence")
        if not typed.words:
            raise InputError("write the sentence behind it: sentence the map is hidden")
        return self._change(self.explored.session.with_text(typed.words), f"sentence to {visible(typed.words)}")

    def target(self, typed: Typed) -> str:
        """Another target of a decoder beside an encoder."""
        if self.explored.session.decoder_encoding is None:
            raise InputError("this model reads one sentence")
        return self._change(self.explored.session.with_decoder_text(typed.words), f"target to {visible(typed.words)}")

    def edit(self, typed: Typed) -> str:
        """The cell set by hand, or an edit as `--edit` takes it."""
        from tui_transformer.explorer.main.editing import read_number

        session, here = self.explored.session, self._cell()
        if "=" in typed.words:
            change = written(session.trace.program, typed.words, here).change(session.model)
            edited = session.with_edits(change)
            return self._change(edited, words(edited.edits[-1], edited.base.program))
        if here is None:
            raise InputError(f"there is no number to edit here: {EXAMPLES}")
        value = read_number(typed.words, session.model.backend.dtype)
        return self._change(session.with_edits(Edit(*here, value)), "cell set by hand")

    def _cell(self) -> tuple[str, Index] | None:
        """The step and the cell, where there is a number that can be edited."""
        session, position = self.explored.session, self.explored.position
        view = view_at(self.explored) if position.stop not in (VOCABULARY, TEXT, LOSS) else None
        if view is None or view.integer or view.name in session.trace.program.givens:
            return None
        return view.name, index_of(session.trace.program.axes(view.name), position.place)

    def ablate(self, _: Typed) -> str:
        """This head, set to 0."""
        session, position = self.explored.session, self.explored.position
        attention = position.stop.rpartition(".")[0]
        if not attention.endswith("attention") or self._heads() < 2:
            raise InputError("this step has no heads: go to a step of an attention")
        target = parse(f"head:{attention}:{position.place.head}")
        edits = target.edits(session.trace.program)
        return self._change(session.with_edits(*edits), f"head {position.place.head} of {attention} set to 0")

    def undo(self, _: Typed) -> str:
        """The last change taken back."""
        return self._turn_back(self.explored.history.undo, "undo")

    def redo(self, _: Typed) -> str:
        """The change made again."""
        return self._turn_back(self.explored.history.redo, "redo")

    def backward(self, _: Typed) -> str:
        """Back from the loss, or forward again."""
        session = self.explored.session
        if not session.has_loss:
            raise InputError("this model has no loss: it makes no predictions to compare with targets")
        turned = session.with_overlay(NOTHING if session.backward else GRADIENT)
        self._replace(turned)
        return "backward, with gradients" if turned.backward else "forward again"

    def break_it(self, typed: Typed) -> str:
        """Something computed otherwise, or as before."""
        return self._change(*broken(self.explored.session, typed.words))

    def open(self, typed: Typed) -> str:
        """Another model, at its first step."""
        changed = self._change(*opened(self.explored.session, typed.words))
        self._go(Position(self.explored.session.stops[0]))
        return changed

    def leave(self, _: Typed) -> str:
        """The end of the tour."""
        return self._touring.leave()

    # Telling

    def tour(self, typed: Typed) -> str:
        """The next stop of the tour, or the one before: what it says, and where it leads."""
        return self._touring.go(-1 if typed.words.startswith("b") else 1)

    def where(self, _: Typed) -> str:
        """Where one is."""
        return f"{said(self.explored).sentence()}."

    def explain(self, _: Typed) -> str:
        """How the cell was made."""
        if self.explored.position.stop in (VOCABULARY, TEXT, LOSS):
            return self.where(_)
        view = view_at(self.explored)
        shown: Shown = "overlay" if self.explored.session.backward else "value"
        working = cell_of(self.explored.session, view.name, self.explored.position.place, shown).working
        made = f"is {working.formula}: {working.equation}" if working.equation else f"is {working.formula}"
        again = spoken(working.recomputed, DIGITS)
        return f"{said(self.explored).sentence()}; it {visible(made)}; worked out again {again}."

    def line(self, _: Typed) -> str:
        """The numbers of the row."""
        values, view = self._row(), view_at(self.explored)
        order = np.arange(values.size)
        if values.size > SHOWN_OF_A_LINE:
            order = np.sort(
                np.argsort(-np.abs(np.where(np.isfinite(values), values, 0)), kind="stable")[:SHOWN_OF_A_LINE]
            )
        told = ", ".join(f"{view.columns.label(i) or i} {spoken(float(values[i]))}" for i in order.tolist())
        rest = f"; {values.size - order.size:,} smaller ones are left out" if order.size < values.size else ""
        sums = "; the row sums to " + spoken(float(values.sum())) if view.formula == Softmax().formula else ""
        return f"{said(self.explored).sentence()}; the row is {told}{rest}{sums}."

    def softmax(self, typed: Typed) -> str:
        """The softmax of the row, naive and safe."""
        return softmaxes_told(self.explored.session, self.explored.position, typed.words)

    def what(self, _: Typed) -> str:
        """Meaning of the step, why it is there, and what to look for."""
        words = words_of(self.explored.session, self.explored.position.stop)
        return " ".join(filter(None, (words.label + ":", words.what, words.why, words.look)))

    def help(self, _: Typed) -> str:
        """The commands that can be typed."""
        return help_of(self._keymap)

    def quit(self, _: Typed) -> str:
        """The end."""
        self.ended = True
        return "The end."

    # Inside

    def _heads(self) -> int:
        name = self.explored.position.stop
        if name in (VOCABULARY, TEXT, LOSS):
            return 1
        axes = self.explored.session.trace.program.axes(name)
        return axes[0].size if len(axes) == 3 else 1

    def _row(self) -> Values:
        if self.explored.position.stop in (VOCABULARY, TEXT, LOSS):
            raise InputError("there is no row of numbers here")
        view, row = view_at(self.explored), self.explored.position.place.row
        values: Values = view.window(range(row, row + 1), range(view.columns.size))[0]
        return values

    def _place(self, **changes: int) -> None:
        place = replace(self.explored.position.place, **{side: max(number, 0) for side, number in changes.items()})
        self.explored.position = replace(self.explored.position, place=place)

    def _go(self, position: Position) -> None:
        self.explored.position = position

    def _change(self, session: Session, what: str) -> str:
        before = self.explored.session
        self._replace(session)
        return f"{what}{answer_changed(before, session)}"

    def _replace(self, session: Session) -> None:
        self.explored.history.push(session)
        self.explored.stay()

    def _turn_back(self, turn: Callable[[], bool], what: str) -> str:
        before = self.explored.session
        if not turn():
            raise InputError(f"there is nothing to {what}")
        self.explored.stay()
        return f"{what}{answer_changed(before, self.explored.session)}"


DOING: Mapping[str, Doing] = {
    "next": lambda reader, typed: reader.step(typed, "operation", 1),
    "before": lambda reader, typed: reader.step(typed, "operation", -1),
    "step.next": lambda reader, typed: reader.step(typed, "operation", 1),
    "step.back": lambda reader, typed: reader.step(typed, "operation", -1),
    "sublayer.next": lambda reader, typed: reader.step(typed, "sublayer", 1),
    "sublayer.back": lambda reader, typed: reader.step(typed, "sublayer", -1),
    "layer.next": lambda reader, typed: reader.step(typed, "layer", 1),
    "layer.back": lambda reader, typed: reader.step(typed, "layer", -1),
    "cursor.left": lambda reader, typed: reader.move(typed, 0, -1),
    "cursor.right": lambda reader, typed: reader.move(typed, 0, 1),
    "cursor.up": lambda reader, typed: reader.move(typed, -1, 0),
    "cursor.down": lambda reader, typed: reader.move(typed, 1, 0),
    "cursor.page-up": lambda reader, typed: reader.move(typed, -PAGE, 0),
    "cursor.page-down": lambda reader, typed: reader.move(typed, PAGE, 0),
    "cursor.half-up": lambda reader, typed: reader.move(typed, -PAGE // 2, 0),
    "cursor.half-down": lambda reader, typed: reader.move(typed, PAGE // 2, 0),
    "cursor.top": lambda reader, _: reader.move(Typed("", 1 << 30), -1, 0),
    "cursor.bottom": lambda reader, _: reader.move(Typed("", 1 << 30), 1, 0),
    "cursor.row-start": lambda reader, _: reader.move(Typed("", 1 << 30), 0, -1),
    "cursor.row-end": lambda reader, _: reader.move(Typed("", 1 << 30), 0, 1),
    "head.next": lambda reader, typed: reader.turn_head(typed, 1),
    "head.back": lambda reader, typed: reader.turn_head(typed, -1),
    **dict.fromkeys(("head", "row", "column", "cell"), Reader.set_place),
    "go": Reader.go,
    "largest": Reader.largest,
    "back": Reader.back,
    "weights": Reader.weights,
    "vocabulary.open": Reader.vocabulary,
    "sentence.edit": Reader.sentence,
    "target.edit": Reader.target,
    "cell.edit": Reader.edit,
    "ablate.head": Reader.ablate,
    "undo": Reader.undo,
    "redo": Reader.redo,
    "backward": Reader.backward,
    "leave": Reader.leave,
    "breaks": Reader.break_it,
    "open": Reader.open,
}

TELLING: Mapping[str, Callable[[Reader, Typed], str]] = {
    "tour": Reader.tour,
    "where": Reader.where,
    "cursor.choose": Reader.explain,
    "line": Reader.line,
    "softmax": Reader.softmax,
    "what": Reader.what,
    "predict": lambda reader, _: reader._questions.ask(),
    "answer": lambda reader, typed: reader._questions.reveal(typed.words),
    "help": Reader.help,
    "quit": Reader.quit,
}
