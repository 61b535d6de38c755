"""The explorer as it is without a screen: the same session, position and history, changed by meanings of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from tui_transformer.engine.edits import Edit
from tui_transformer.engine.explanation import Index
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.program import Grain
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.explorer.plain import effects
from tui_transformer.explorer.plain.keys import STOPS, Typed, help_of, menu_of, only_on_the_screen
from tui_transformer.explorer.plain.sentences import (
    DIGITS,
    answer_changed,
    describe,
    describe_model,
    heads_at,
    line_of,
    matrix_of,
    row_of,
    sentence_changed,
    sizes_at,
)
from tui_transformer.explorer.plain.tour import Touring
from tui_transformer.explorer.shell.keymap import hint_in
from tui_transformer.explorer.shell.keys import MENUS
from tui_transformer.guide.lecture import Lecture
from tui_transformer.guide.texts import step_text, tours
from tui_transformer.model.local_models import named_alike
from tui_transformer.model.options import ModelOptions
from tui_transformer.records import replace
from tui_transformer.session import softmax_row
from tui_transformer.session.edit_format import active, read_number, words, written
from tui_transformer.session.edit_values import EXAMPLES
from tui_transformer.session.exploration import Exploration, Way
from tui_transformer.session.open_session import open_session
from tui_transformer.session.position import Position, Search, destination, next_stop
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.step_scene import cell_of
from tui_transformer.session.tour_stop import ANY_MODEL, backwards, model_of, own_tours, suitable
from tui_transformer.session.view_state import GRADIENT, NOTHING
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import index_of

PAGE = 10
"""Rows that a page is."""

FAR = 1 << 30
"""Rows or columns beyond every matrix."""

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
        self._touring = Touring(explored, told, keymap, by_line=by_line)
        self.ended = False
        self._search = Search()

    def begin(self) -> str:
        """The model, and where one is, or the first stop of the tour."""
        where = self._touring.go(1) if self._begins else f"{describe(self.explored).sentence()}."
        return f"{describe_model(self.explored.session)} {where} help lists what can be typed."

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
        before = describe(self.explored)
        added = DOING[typed.meaning](self, typed)
        now = describe(self.explored)
        changes = "; ".join(filter(None, (added, *now.changes(before))))
        return f"{now.sentence()}; {'changed: ' + changes if changes else 'nothing changed'}."

    # Moving

    def _step(self, typed: Typed, grain: Grain, direction: int) -> str:
        session, stop = self.explored.session, self.explored.position.stop
        for _ in range(typed.count):
            following = next_stop(session.stops, stop, session.trace.program, grain, direction)
            if following is None:
                break
            stop = following
        return self._go(self.explored.position.at(stop))

    def _move(self, typed: Typed, rows: int, columns: int) -> str:
        place = self.explored.position.place
        return self._place(row=place.row + rows * typed.count, column=place.column + columns * typed.count)

    def _turn_head(self, typed: Typed, direction: int) -> str:
        return self._place(head=(self.explored.position.place.head + direction * typed.count) % heads_at(self.explored))

    def _set_place(self, typed: Typed) -> str:
        sides = ("row", "column") if typed.meaning == "cell" else (typed.meaning,)
        words = typed.words.replace(",", " ").split()
        numbers = [int(each) for each in words if re.fullmatch("[0-9]{1,9}", each)]
        if not len(words) == len(numbers) == len(sides):
            raise InputError(f"{typed.meaning} needs {' and '.join(sides)} as numbers from 0")
        sizes, wanted = sizes_at(self.explored), dict(zip(sides, numbers, strict=True))
        for side, number in wanted.items():
            if number >= sizes[side]:
                raise InputError(f"there is no {side} {number}: {side}s go from 0 to {sizes[side] - 1}")
        return self._place(**wanted)

    def _go_to(self, typed: Typed) -> str:
        session, position = self.explored.session, self.explored.position
        return self._go(position.at(destination(session, position.stop, typed.words)))

    def _find(self, typed: Typed) -> str:
        self._search.begin(self.explored.session, typed.words)
        return self._go_to_match(typed, 1)

    def _go_to_match(self, _: Typed, by: int) -> str:
        try:
            position, says = self._search.turn(self.explored.session, self.explored.position, by)
        except InputError as error:
            raise InputError(hint_in(self._keymap, str(error))) from error
        self.explored.follow(position)
        return says

    def _to_largest(self, _: Typed) -> str:
        values, place = row_of(self.explored)[1], self.explored.position.place
        if not np.isfinite(values).any():
            raise InputError("this row is masked: it has no largest value")
        self._place(row=place.row, column=int(np.nanargmax(np.where(np.isfinite(values), values, -np.inf))))
        return "to the largest of the row"

    def _back(self, _: Typed) -> str:
        """Where a weight or a term was followed from; in a tour out of it."""
        if self.explored.trail:
            return self._go(self.explored.trail.pop())
        if self._touring.goes_on:
            return self._touring.leave()
        raise InputError("there is nowhere to go back to")

    def _weights(self, _: Typed) -> str:
        first = self.explored.first_weight
        if first is None:
            raise InputError("this step has no weights")
        self.explored.follow(Position(first))
        return ""

    def _vocabulary(self, _: Typed) -> str:
        if self.explored.session.model.vocabulary is None:
            raise InputError("this model has no vocabulary")
        return self._go(self.explored.position.at(VOCABULARY))

    # Changing

    def _sentence(self, typed: Typed) -> str:
        if not self.explored.session.model.config.vocab_size:
            raise InputError("this model reads no sentence")
        if not typed.words:
            raise InputError("write the sentence behind it: sentence the map is hidden")
        return self._write("sentence", typed.words, self.explored.session.with_text(typed.words))

    def _target(self, typed: Typed) -> str:
        if self.explored.session.decoder_encoding is None:
            raise InputError("this model reads one sentence")
        return self._write("target", typed.words, self.explored.session.with_decoder_text(typed.words))

    def _write(self, what: str, text: str, changed: Session) -> str:
        told = sentence_changed(self.explored.session, changed)
        return self._change(changed, f"{what} to {visible(text)}{told}")

    def _edit(self, typed: Typed) -> str:
        """The cell set by hand, or an edit as `--edit` takes it."""
        session, view, here = self.explored.session, matrix_of(self.explored), None
        if view is not None and not view.integer and view.name not in session.trace.program.givens:
            axes = session.trace.program.axes(view.name)
            here = tuple[str, Index]((view.name, index_of(axes, self.explored.position.place)))
        if "=" in typed.words:
            change = written(session.trace.program, typed.words, here).change(session.model)
            edited = session.with_edits(change)
            return self._change(edited, words(edited.edits[-1], edited.base.program))
        if here is None:
            raise InputError(f"there is no number to edit here: {EXAMPLES}")
        value = read_number(typed.words, session.model.backend.dtype)
        return self._change(session.with_edits(Edit(*here, value)), "cell set by hand")

    def _ablate(self, _: Typed) -> str:
        session, position = self.explored.session, self.explored.position
        attention = position.stop.rpartition(".")[0]
        if not attention.endswith("attention") or heads_at(self.explored) < 2:
            raise InputError("this step has no heads: go to a step of an attention")
        edits = parse(f"head:{attention}:{position.place.head}").edits(session.trace.program)
        return self._change(session.with_edits(*edits), f"head {position.place.head} of {attention} set to 0")

    def _turn_back(self, _: Typed, way: Way) -> str:
        before = self.explored.session
        if not self.explored.history.turn(way):
            raise InputError(f"there is nothing to {way}")
        self.explored.stay()
        return f"{way}{answer_changed(before, self.explored.session)}"

    def _turn_around(self, _: Typed) -> str:
        session = self.explored.session
        if not session.has_loss:
            raise InputError("this model has no loss: it makes no predictions to compare with targets")
        found = session.targets is None and session.scalar is None and not session.backward
        back = backwards(session, lambda _: None) if found else session.with_overlay(GRADIENT)
        if not session.backward:
            self.explored.position = self.explored.beginning_back or self.explored.position
        self._replace(session.with_overlay(NOTHING) if session.backward else back)
        of = " of the second most likely answer" if found else ""
        return "forward again" if session.backward else f"backward, with gradients{of}"

    def _slide(self, typed: Typed, by: int = 0) -> str:
        """What is added to a step more or fewer times; and what the model writes by that."""
        session = self.explored.session
        changed = effects.slid(session, typed.words, by * typed.count if by else None)
        if changed is session:
            return ""
        told = self._change(changed, active(changed.edits, changed.base.program))
        try:
            return f"{told}; {effects.written(changed)}"
        except InputError as error:  # it is slid all the same
            return f"{told}; nothing is written: {error}"

    def _open(self, typed: Typed) -> str:
        """Another model with its own sentence, at its first step."""
        if not typed.words:
            raise InputError("write the model behind it: open story")
        other = open_session(ModelOptions(model=typed.words, budget=self.explored.session.budget))
        what = f"model to {visible(other.model.name)}, sentence to {visible(other.text)}"
        changed = self._change(other, what)
        self._go(Position(other.stops[0]))
        return changed

    def _tour(self, typed: Typed) -> str:
        """The next stop of a tour, or the one before; another tour by its name, on its model."""
        name = named_alike(typed.words, tours())
        if name is None:
            if typed.words not in ("", "next", "back"):
                named = visible(typed.words[:40])
                there = f"tour alone goes on, tour back goes back, and there are {', '.join(tours())}"
                raise InputError(f"there is no tour {named!r}: {there}")
            return self._touring.go(-1 if typed.words == "back" else 1)
        if self._touring.goes_on:
            self._touring.leave()
        if name not in (*ANY_MODEL, *own_tours(self.explored.session.model)):
            self._open(Typed("open", words=model_of(name) or ""))
        return self._touring.begin(suitable(self.explored.session, name))

    # Telling

    def _explain(self, _: Typed) -> str:
        where, view = describe(self.explored).sentence(), matrix_of(self.explored)
        if view is None:
            return f"{where}."
        session, place = self.explored.session, self.explored.position.place
        working = cell_of(session, view.name, place, "overlay" if session.backward else "value").working
        made = f"is {working.formula}: {working.equation}" if working.equation else f"is {working.formula}"
        return f"{where}; it {visible(made)}; worked out again {spoken(working.recomputed, DIGITS)}."

    def _what(self, _: Typed) -> str:
        stop = self.explored.position.stop
        told = step_text("weight" if stop in self.explored.session.trace.program.weights else stop)
        return " ".join(filter(None, (told.label + ":", told.what, told.why, told.look)))

    def _quit(self, _: Typed) -> str:
        self.ended = True
        return "The end."

    # Inside

    def _place(self, **changes: int) -> str:
        place = replace(self.explored.position.place, **{side: max(number, 0) for side, number in changes.items()})
        return self._go(replace(self.explored.position, place=place))

    def _go(self, position: Position) -> str:
        self.explored.go(position)
        return ""

    def _change(self, session: Session, what: str) -> str:
        before = self.explored.session
        self._replace(session)
        return f"{what}{answer_changed(before, session)}"

    def _replace(self, session: Session) -> None:
        self.explored.history.push(session)
        self.explored.stay()


STEPS: Mapping[str, tuple[Grain, int]] = {
    "next": ("operation", 1),
    "before": ("operation", -1),
    "step.next": ("operation", 1),
    "step.back": ("operation", -1),
    "sublayer.next": ("sublayer", 1),
    "sublayer.back": ("sublayer", -1),
    "layer.next": ("layer", 1),
    "layer.back": ("layer", -1),
}
CELLS: Mapping[str, tuple[int, int]] = {
    "cursor.left": (0, -1),
    "cursor.right": (0, 1),
    "cursor.up": (-1, 0),
    "cursor.down": (1, 0),
    "cursor.page-up": (-PAGE, 0),
    "cursor.page-down": (PAGE, 0),
    "cursor.half-up": (-PAGE // 2, 0),
    "cursor.half-down": (PAGE // 2, 0),
    "cursor.top": (-FAR, 0),
    "cursor.bottom": (FAR, 0),
    "cursor.row-start": (0, -FAR),
    "cursor.row-end": (0, FAR),
}
"""Moves from step to step, and from cell to cell: rows and columns."""

DOING: Mapping[str, Doing] = {
    **{name: partial(Reader._step, grain=grain, direction=way) for name, (grain, way) in STEPS.items()},
    **{name: partial(Reader._move, rows=rows, columns=columns) for name, (rows, columns) in CELLS.items()},
    "head.next": partial(Reader._turn_head, direction=1),
    "head.back": partial(Reader._turn_head, direction=-1),
    **dict.fromkeys(("head", "row", "column", "cell"), Reader._set_place),
    "go": Reader._go_to,
    "find": Reader._find,
    "match.next": partial(Reader._go_to_match, by=1),
    "match.back": partial(Reader._go_to_match, by=-1),
    "largest": Reader._to_largest,
    "back": Reader._back,
    "weights": Reader._weights,
    "vocabulary.open": Reader._vocabulary,
    "sentence.edit": Reader._sentence,
    "target.edit": Reader._target,
    "cell.edit": Reader._edit,
    "ablate.head": Reader._ablate,
    "undo": partial(Reader._turn_back, way="undo"),
    "redo": partial(Reader._turn_back, way="redo"),
    "backward": Reader._turn_around,
    "leave": lambda reader, _: reader._touring.leave(),
    "breaks": lambda reader, typed: reader._change(*effects.with_break(reader.explored.session, typed.words)),
    "strength": Reader._slide,
    "cursor.wider": partial(Reader._slide, by=1),
    "cursor.narrower": partial(Reader._slide, by=-1),
    "open": Reader._open,
}

TELLING: Mapping[str, Doing] = {
    "tour": Reader._tour,
    "where": lambda reader, _: f"{describe(reader.explored).sentence()}.",
    "cursor.choose": Reader._explain,
    "line": lambda reader, _: f"{describe(reader.explored).sentence()}; {line_of(reader.explored)}.",
    "softmax": lambda reader, typed: softmax_row.describe(
        reader.explored.session, reader.explored.position, typed.words
    ),
    "what": Reader._what,
    "breaks.told": lambda reader, typed: effects.breaks_told(reader.explored.session, typed.words),
    "predict": lambda reader, _: reader._touring.predict(),
    "answer": lambda reader, typed: reader._touring.answer(typed.words),
    "generate": lambda reader, typed: f"{effects.written(reader.explored.session, typed.words)}.",
    "help": lambda reader, _: help_of(reader._keymap),
    "menu": lambda reader, typed: menu_of(typed.words, reader._keymap),
    **{name: lambda reader, typed: menu_of(typed.meaning, reader._keymap) for name in MENUS},
    "quit": Reader._quit,
}
