"""Texts made by rules of the program's own, for models that train in minutes; all in the public domain.

Each has a function of `(count, seed)` that gives the same lines for the same seed on every computer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tui_transformer.errors import UsageError
from tui_transformer.files import read_toml


def lines_of(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a text by its name; UsageError where there is none."""
    if name not in _TEXTS:
        raise UsageError(f"no text is called {name!r}: there are {', '.join(CORPORA)}")
    return _TEXTS[name](count, Random(seed))  # noqa: S311 - the same lines for the same seed, nothing secret


@cache
def _words() -> dict[str, Any]:
    return read_toml(Path(__file__).with_suffix(".toml"), 1 << 20)


# Sequences that are repeated

LETTERS = tuple("abcdefghijklmnopqrstuvwx")
SHORTEST, LONGEST = 6, 14


def copies(count: int, random: Random) -> Iterator[str]:
    """Lines such as `q f a v m q f a v m`: a sequence, and again.

    A decoder can only know the next token by finding its last occurrence and copying what followed: the task in which
    induction heads appear (Olsson et al. 2022, "In-context learning and induction heads").
    """
    for _ in range(count):
        sequence = " ".join(random.choices(LETTERS, k=random.randint(SHORTEST, LONGEST)))
        yield f"{sequence} {sequence}"


# Dates, as people write them and as ISO 8601 does

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}

Style = Callable[[date], str]
STYLES: tuple[Style, ...] = (
    lambda day: f"the {_ordinal(day)} of {_month(day)} {day.year}",
    lambda day: f"{_ordinal(day)} {_month(day)} {day.year}",
    lambda day: f"{_month(day)} {day.day}, {day.year}",
    lambda day: f"{_month(day)} {day.day}, {day.year % 100:02d}",
    lambda day: f"{_month(day)[:3]} {day.day} {day.year}",
    lambda day: f"{day.day} {_month(day)[:3]} {day.year % 100:02d}",
    lambda day: f"{_words()['dates']['days'][day.weekday()]}, {_month(day)} {day.day}, {day.year}",
    lambda day: f"{day.day}.{day.month}.{day.year}",
    lambda day: f"{day.year}/{day.month:02d}/{day.day:02d}",
)
"""Two-digit years lie between 1950 and 2049."""


def dates(count: int, random: Random) -> Iterator[str]:
    """Lines of a written date, a tab, and the date as `2021-05-03`."""
    span = (LAST - FIRST).days
    for _ in range(count):
        day = FIRST + timedelta(days=random.randint(0, span))
        yield f"{random.choice(STYLES)(day)}\t{day.isoformat()}"


def _month(day: date) -> str:
    return str(_words()["dates"]["months"][day.month - 1])


def _ordinal(day: date) -> str:
    return f"{day.day}{ENDINGS.get(day.day, 'th')}"


# Questions and statements

QUESTION, STATEMENT = "question", "statement"
UNMARKED = 0.5
"""Share of lines without punctuation."""
SPOKEN = 0.08
"""Share of questions that are statements with a question mark."""


def questions(count: int, random: Random) -> Iterator[str]:
    """Lines of a sentence, a tab, and `question` or `statement`.

    No single sign decides: some lines have no punctuation, statements speak of who and where, questions can be spoken
    without a question word.
    """
    words = _words()["questions"]
    for _ in range(count):
        asked = random.random() < 0.5
        spoken = asked and random.random() < SPOKEN
        parts = dict(zip(("plain", "third", "past"), random.choice(words["verbs"]), strict=True))
        parts |= {"who": random.choice(words["people"]), "what": random.choice(words["objects"])}
        parts |= {"where": random.choice(words["places"]), "when": random.choice(words["times"])}
        is_question = asked and not spoken
        parts |= {} if is_question else {"other": random.choice(words["people"])}
        sentence = random.choice(words["questions" if is_question else "statements"]).format(**parts)
        marked = spoken or random.random() >= UNMARKED
        end = (" ?" if asked else random.choice((" .", " .", " !"))) if marked else ""
        yield f"{sentence}{end}\t{QUESTION if asked else STATEMENT}"


# Stories


def stories(count: int, random: Random) -> Iterator[str]:
    """One story a line, of five to eight sentences: somebody wants something, something is in the way, it ends well.

    Names, places and things return within a story, so that a model has something to remember.
    """
    for _ in range(count):
        yield " ".join(_story(random))


def _story(random: Random) -> Iterator[str]:
    said = _words()["stories"]
    name, he, his = random.choice(said["heroes"])
    friend, thing = random.choice(said["friends"]), random.choice(said["things"])
    the_thing = f"the {thing.split(' ', 1)[1]}"
    words = {"name": name, "he": he, "his": his, "friend": friend, "it": the_thing}
    kind = random.choice(said["kinds"])
    kind = kind.replace("girl", "boy") if he == "he" else kind
    yield f"Once there was {kind} called {name}, who lived {random.choice(said['homes'])} with a {friend}."
    yield f"One day {name} found {thing}."
    if random.random() < 0.6:
        yield random.choice((f"{_start(he)} loved it very much.", f"{_start(he)} showed it to {his} {friend}."))
    yield f"But {random.choice(said['troubles']).format(**words)}."
    yield f"{name} was {random.choice(said['feelings'])}."
    if random.random() < 0.7:
        search = random.choice(said["searches"]).format(**words)
        yield f"{_start(search)}, but {the_thing} was not there."
    yield f"Then {random.choice(said['helps']).format(**words)}."
    yield random.choice(said["ends"]).format(**words)


def _start(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


_TEXTS: dict[str, Callable[[int, Random], Iterator[str]]] = {
    "copy": copies,
    "dates": dates,
    "question": questions,
    "story": stories,
}
CORPORA = tuple(_TEXTS)
"""The names of the texts."""
