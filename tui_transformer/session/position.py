"""Where one is: the stop, the cell, how to move between stops, and where something is that is looked for by a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui_transformer.engine.program import Grain, Program, by_program
from tui_transformer.errors import InputError
from tui_transformer.guide.texts import step_text
from tui_transformer.model.weight_table import TABLE
from tui_transformer.records import dataclass, replace
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place


@dataclass(frozen=True)
class Position:
    """A stop (a step, a weight, `vocabulary` or `text`) and a cell of it. Never changed, only replaced."""

    stop: str
    place: Place = Place()

    def at(self, stop: str) -> Position:
        """Another stop; the cell stays as far as the matrix reaches."""
        return replace(self, stop=stop)


def next_stop(stops: Sequence[str], stop: str, program: Program, grain: Grain, direction: int) -> str | None:
    """The stop one operation, sublayer or layer further; None at the end.

    From a step of a layer a layer further is the same step of the next layer. Else sublayers and layers are entered at
    their last step, whose matrix is the one that leaves them.
    """
    place = stops.index(stop) if stop in stops else 0
    if grain == "operation":
        target = place + direction
        return stops[target] if 0 <= target < len(stops) else None
    if grain == "layer":
        kind, *kinds = (re.sub(r"\.[0-9]+\.", ".*.", each, count=1) for each in (stop, *stops))
        same = [each for each, own in zip(stops, kinds, strict=True) if own == kind]
        beside = same.index(stop) + direction if stop in same else -1
        if 0 <= beside < len(same):
            return same[beside]
    groups = [program.step(each).group(grain) if each in program.by_name else each for each in stops]
    ends = [i for i, group in enumerate(groups) if i + 1 == len(groups) or group != groups[i + 1]]
    ahead = [stops[i] for i in ends if (i - place) * direction > 0]
    return ahead[0 if direction > 0 else -1] if ahead else None


HEAD = "head"
"""The first axis of a step that has heads."""


@by_program
def _most_heads(program: Program) -> int:
    return max((step.axes[0].size for step in program.steps if step.axes[0].name == HEAD), default=1)


def head_at(program: Program, head: int, here: str, there: str) -> int:
    """The head of one step that belongs to a head of another: that of its group, or the first of the group.

    A step without heads, and a stop that is no step, stand for the queries, of which there are most.
    """
    counts = []
    for name in (there, here):
        step = program.by_name.get(program.aliases.get(name, name))
        counts.append(_most_heads(program) if step is None or step.axes[0].name != HEAD else step.axes[0].size)
    among, of = counts
    return min(head * among // of, among - 1)


MOST_NAMED = 4
"""Steps that are named where one is not found."""


def destination(session: Session, stop: str, typed: str) -> str:
    """The stop that is meant, seen from another: `60`, `weights`, `3.weights`, `encoder.1`, or a whole name.

    A number is that of the step, from 1. The last part of a name, or its beginning, is looked for in the layer of
    `stop` first; with a number before it, in that layer.

    Raises:
        InputError: There is no such step.
    """
    wanted = typed.strip().lstrip(":").strip()
    stops = session.stops
    if re.fullmatch(r"[0-9]{1,9}", wanted):
        if not 1 <= int(wanted) <= len(stops):
            raise InputError(f"there is no step {int(wanted)}: steps go from 1 to {len(stops)}")
        return stops[int(wanted) - 1]
    program = session.trace.program
    if wanted in stops or wanted in program.weights or wanted in program.by_name:
        return wanted
    candidate = next(_candidates(session, stop, wanted.casefold()), None) if wanted else None
    if candidate is None:
        near = [name for name in stops if wanted and wanted.casefold() in name.casefold()][:MOST_NAMED]
        advice = f"do you mean {', '.join(near)}?" if near else "write a number, a name such as weights, or 0.weights"
        raise InputError(f"there is no step {wanted[:60]!r}: {advice}")
    return candidate


def names(session: Session) -> tuple[str, ...]:
    """Completions of a name: last parts, those with the number of their layer, and whole names."""
    program = session.trace.program
    steps = [name for name in session.stops if name in program.by_name]
    short = [name.rpartition(".")[2] for name in steps]
    numbered = [f"{number}.{last}" for name, last in zip(steps, short, strict=True) if (number := _layer(name))]
    return tuple(dict.fromkeys((*short, *numbered, *session.stops, *program.weights)))


def _candidates(session: Session, stop: str, wanted: str) -> Iterator[str]:
    """The best first: in the layer that is named, or that of the stop; exact names before those that begin so."""
    program = session.trace.program
    layer, _, last = wanted.rpartition(".")
    for fits in (str.__eq__, str.startswith):
        named = [name for name in session.stops if any(fits(part, last) for part in _words(name, program))]
        if re.fullmatch(r"[0-9]+", layer):
            named = [name for name in named if _layer(name) == layer]
        elif layer:
            named = [name for name in named if name.casefold().startswith(f"{layer}.")]
        here = [name for name in named if _layer(name) == _layer(stop)]
        yield from (*here, *named)
    yield from (name for name in session.stops if name.casefold().startswith(f"{wanted}."))


def _words(name: str, program: Program) -> Iterator[str]:
    """The title of a stop: the last part of its name, its title and its label."""
    yield name.rpartition(".")[2].casefold()
    if name in program.by_name or name in (LOSS, TEXT, VOCABULARY):
        words = step_text(name)
        yield from (words.title.casefold(), words.label.casefold())


def _layer(name: str) -> str:
    match = re.search(r"\.([0-9]+)\.", name)
    return match[1] if match else ""


# What is looked for by a word: tokens of what is read, steps, words of the vocabulary, one match after another

MOST_WORDS = 200
"""Words of the vocabulary that are gone through."""


@dataclass(frozen=True)
class Match:
    """One place where a text was found: a token, a step, or a word of the vocabulary.

    Attributes:
        says: What it is.
        token: The sentence, counted from 0, and the place in it.
        stop: The step.
        word: The ID of the word.
    """

    says: str
    token: tuple[int, int] | None = None
    stop: str = ""
    word: int | None = None

    def position(self, session: Session, here: Position) -> Position:
        """Where it is: a token as a row of the step, or as a column; a word in the table of embeddings.

        Where the step that one is at has no such token, it is the first step that has.
        """
        if self.token is None:
            return here.at(self.stop) if self.word is None else row_of_word(self.word)
        which, place = self.token
        name, program = list(session.sequences)[which], session.trace.program

        def sides(stop: str) -> list[str]:
            return [axis.sequence for axis in program.axes(stop)[-2:]] if stop in program.by_name else []

        stop = next((each for each in (here.stop, *session.stops) if name in sides(each)), here.stop)
        side = ("row", "column")[sides(stop).index(name)] if name in sides(stop) else "row"
        return Position(stop, replace(here.place, **{side: place}))


class Search:
    """What was looked for, and the match that is shown; of a session that became another it is looked for again."""

    def __init__(self) -> None:
        self._typed, self._place = "", -1
        self._session: Session | None = None
        self._found: tuple[Match, ...] = ()

    def begin(self, session: Session, typed: str) -> None:
        """Look for a text.

        Raises:
            InputError: It is nowhere; what was looked for before still is.
        """
        self._found, self._session, self._typed, self._place = find(session, typed), session, typed, -1

    def turn(self, session: Session, here: Position, by: int) -> tuple[Position, str]:
        """The next match or the one before, round and round, and what is said of it.

        Raises:
            InputError: Nothing was looked for, or it is nowhere in what is explored now.
        """
        if not self._typed:
            raise InputError("nothing was looked for: {find} finds a token, a step, a word")
        if session is not self._session:
            place = self._place
            self.begin(session, self._typed)
            self._place = min(place, len(self._found) - 1)
        self._place = (self._place + by) % len(self._found)
        match = self._found[self._place]
        return match.position(session, here), f"{visible(match.says)}: {self._place + 1} of {len(self._found)}"


def find(session: Session, typed: str) -> tuple[Match, ...]:
    """Everything that contains a text, whatever the case: tokens first, then steps, then words.

    Raises:
        InputError: Nothing does.
    """
    wanted = typed.strip().casefold()
    found = tuple(_found(session, wanted)) if wanted else ()
    if not found:
        what = f"{visible(typed.strip()[:40])!r} is in no token, no step and no word of the vocabulary"
        raise InputError(what if wanted else "write a part of a token, of a step's name, or of a word")
    return found


def row_of_word(token_id: int) -> Position:
    """A word in the table of embeddings."""
    return Position(TABLE, Place(row=token_id))


def _found(session: Session, wanted: str) -> Iterator[Match]:
    program, vocabulary = session.trace.program, session.model.vocabulary
    for which, encoding in enumerate(session.sequences.values()):
        for place, token in enumerate(encoding.tokens):
            if wanted in token.text.casefold():
                yield Match(f"token {place}, {token.text}", token=(which, place))
    for stop in session.stops:
        known = stop in program.by_name or stop in (LOSS, TEXT, VOCABULARY)
        words = step_text(stop) if known else None
        if wanted in stop.casefold() or (words is not None and wanted in f"{words.title} {words.label}".casefold()):
            yield Match(f"step {stop}", stop=stop)
    if vocabulary is not None and TABLE in program.weights:
        for token_id in vocabulary.search(wanted)[:MOST_WORDS]:
            yield Match(f"word {token_id} of the vocabulary, {vocabulary.words[token_id]}", word=token_id)
