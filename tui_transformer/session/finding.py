"""What is looked for by a word: tokens of what is read, steps, words of the vocabulary, one match after another."""

from __future__ import annotations

from collections.abc import Iterator

from tui_transformer.errors import InputError
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass, replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import LOSS, TEXT, VOCABULARY, Session
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place

MOST_WORDS = 200
"""Words of the vocabulary that are gone through."""

WORD_VECTORS = "embedding.tokens.weight"
"""The weight with a row for each word."""


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
        """Where it is: a token in the step that one is at, if that has it; a word in the table of embeddings."""
        if self.token is not None:
            return at_token(session, here, *self.token)
        return here.at(self.stop) if self.word is None else row_of_word(self.word)


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
    return Position(WORD_VECTORS, Place(row=token_id))


def at_token(session: Session, position: Position, which: int, place: int) -> Position:
    """A token of a sentence as a row of the step, or as a column; where the step has neither, the first that has."""
    name, program = list(session.sequences)[which], session.trace.program

    def sides(stop: str) -> list[str]:
        return [axis.sequence for axis in program.axes(stop)[-2:]] if stop in program.by_name else []

    stop = next((each for each in (position.stop, *session.stops) if name in sides(each)), position.stop)
    side = ("row", "column")[sides(stop).index(name)] if name in sides(stop) else "row"
    return Position(stop, replace(position.place, **{side: place}))


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
    if vocabulary is not None and WORD_VECTORS in program.weights:
        for token_id in vocabulary.search(wanted)[:MOST_WORDS]:
            yield Match(f"word {token_id} of the vocabulary, {vocabulary.words[token_id]}", word=token_id)
