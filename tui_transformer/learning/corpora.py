"""Texts made by rules of the program's own, for models that train in minutes; all in the public domain.

Each has a function of `(count, seed)` that gives the same lines for the same seed on every computer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from random import Random

from tui_transformer.errors import UsageError


def lines_of(name: str, count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a text by its name; UsageError where there is none."""
    if name not in _TEXTS:
        raise UsageError(f"no text is called {name!r}: there are {', '.join(CORPORA)}")
    return _TEXTS[name](count, Random(seed))  # noqa: S311 - the same lines for the same seed, nothing secret


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
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}

Style = Callable[[date], str]
STYLES: tuple[Style, ...] = (
    lambda day: f"the {_ordinal(day)} of {_month(day)} {day.year}",
    lambda day: f"{_ordinal(day)} {_month(day)} {day.year}",
    lambda day: f"{_month(day)} {day.day}, {day.year}",
    lambda day: f"{_month(day)} {day.day}, {day.year % 100:02d}",
    lambda day: f"{_month(day)[:3]} {day.day} {day.year}",
    lambda day: f"{day.day} {_month(day)[:3]} {day.year % 100:02d}",
    lambda day: f"{DAYS[day.weekday()]}, {_month(day)} {day.day}, {day.year}",
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
    return MONTHS[day.month - 1]


def _ordinal(day: date) -> str:
    return f"{day.day}{ENDINGS.get(day.day, 'th')}"


# Questions and statements

QUESTION, STATEMENT = "question", "statement"

PEOPLE = (
    "the teacher", "my sister", "the old sailor", "a child", "the doctor", "our neighbour", "the farmer", "the pilot",
    "her brother", "the baker", "the captain", "a stranger",
)  # fmt: skip
OBJECTS = (
    "the boat", "the letter", "a red hat", "the key", "the window", "a small lamp", "the bridge", "the garden",
    "the map", "the bread", "the old clock", "a heavy box",
)  # fmt: skip
PLACES = (
    "near the shore", "in the kitchen", "behind the house", "at the station", "under the tree", "on the hill",
    "in the harbour", "across the river",
)  # fmt: skip
TIMES = ("today", "in the morning", "last winter", "every evening", "after the storm", "on monday", "at night")
VERBS = (
    ("find", "finds", "found"), ("carry", "carries", "carried"), ("sell", "sells", "sold"),
    ("paint", "paints", "painted"), ("hide", "hides", "hid"), ("repair", "repairs", "repaired"),
    ("lose", "loses", "lost"), ("watch", "watches", "watched"), ("want", "wants", "wanted"),
    ("remember", "remembers", "remembered"),
)  # fmt: skip
"""Plain form, third person, past."""

QUESTIONS = (
    "where did {who} {plain} {what}", "when does {who} {plain} {what}", "why did {who} {plain} {what} {where}",
    "how did {who} {plain} {what} {when}", "who {past} {what} {where}", "what does {who} {plain} {when}",
    "which of them {third} {what}", "did {who} {plain} {what} {when}", "does {who} {plain} {what} {where}",
    "can {who} {plain} {what} {when}", "is {who} {where} {when}", "will {who} {plain} {what}",
    "do you know where {who} {past} {what}",
)  # fmt: skip
STATEMENTS = (
    "{who} {past} {what} {where}", "{who} {third} {what} {when}", "{who} did not {plain} {what}",
    "{who} can {plain} {what} {where}", "{who} is {where} {when}", "{who} will {plain} {what} {when}",
    "i know where {who} {past} {what}", "nobody asked why {who} {past} {what}", "that is how {who} {third} {what}",
    "we saw who {past} {what} {where}", "{when} {who} {past} {what}", "{what} is {where}",
    "{who} told me what {other} {past}",
)  # fmt: skip
"""Sentences, in which forms of a verb, people, objects, places and times are filled in."""

UNMARKED = 0.5
"""Share of lines without punctuation."""
SPOKEN = 0.08
"""Share of questions that are statements with a question mark."""


def questions(count: int, random: Random) -> Iterator[str]:
    """Lines of a sentence, a tab, and `question` or `statement`.

    No single sign decides: some lines have no punctuation, statements speak of who and where, questions can be spoken
    without a question word.
    """
    for _ in range(count):
        asked = random.random() < 0.5
        spoken = asked and random.random() < SPOKEN
        parts = dict(zip(("plain", "third", "past"), random.choice(VERBS), strict=True))
        parts |= {"who": random.choice(PEOPLE), "what": random.choice(OBJECTS)}
        parts |= {"where": random.choice(PLACES), "when": random.choice(TIMES)}
        is_question = asked and not spoken
        parts |= {} if is_question else {"other": random.choice(PEOPLE)}
        sentence = random.choice(QUESTIONS if is_question else STATEMENTS).format(**parts)
        marked = spoken or random.random() >= UNMARKED
        end = (" ?" if asked else random.choice((" .", " .", " !"))) if marked else ""
        yield f"{sentence}{end}\t{QUESTION if asked else STATEMENT}"


# Stories

HEROES = (
    ("Mira", "she", "her"), ("Tom", "he", "his"), ("Anna", "she", "her"), ("Ben", "he", "his"), ("Lila", "she", "her"),
    ("Otto", "he", "his"), ("Nora", "she", "her"), ("Finn", "he", "his"), ("Ida", "she", "her"), ("Leo", "he", "his"),
)  # fmt: skip
"""Name, pronoun, possessive."""
KINDS = ("a small girl", "a brave child", "a quiet child", "a curious child", "a kind child", "a sleepy child")
HOMES = ("by the sea", "near a dark wood", "on a green hill", "in a little town", "beside the river", "in an old mill")
FRIENDS = ("dog", "cat", "goat", "duck", "pony", "mouse", "crow", "hen")
THINGS = ("a red kite", "a silver key", "a round stone", "a blue hat", "a paper boat", "a warm coat", "a golden bell")
TROUBLES = (
    "the wind took {it} away", "{it} fell into the water", "a fox ran off with {it}", "{it} was lost in the snow",
    "the rain washed {it} down the road", "{it} was too high in a tree",
)  # fmt: skip
FEELINGS = ("sad", "angry", "worried", "tired", "afraid")
SEARCHES = (
    "{he} looked under the bridge", "{he} asked the old miller", "{he} walked along the shore", "{he} climbed the hill",
    "{he} went from door to door", "{he} followed the tracks in the mud",
)  # fmt: skip
HELPS = (
    "the {friend} swam out and brought {it} back", "the {friend} found {it} behind a wall",
    "the {friend} heard a sound and ran to {it}", "the {friend} pulled {it} out of the grass",
    "the {friend} carried {it} home without a sound",
)  # fmt: skip
ENDS = (
    "That night they slept very well.", "From that day on they were always together.",
    "And they laughed all the way home.",
    "{name} never let {it} go again.", "Then they had bread and honey for supper.",
)  # fmt: skip


def stories(count: int, random: Random) -> Iterator[str]:
    """One story a line, of five to eight sentences: somebody wants something, something is in the way, it ends well.

    Names, places and things return within a story, so that a model has something to remember.
    """
    for _ in range(count):
        yield " ".join(_story(random))


def _story(random: Random) -> Iterator[str]:
    """The sentences of a story."""
    name, he, his = random.choice(HEROES)
    friend, thing = random.choice(FRIENDS), random.choice(THINGS)
    the_thing = f"the {thing.split(' ', 1)[1]}"
    words = {"name": name, "he": he, "his": his, "friend": friend, "it": the_thing}
    kind = random.choice(KINDS)
    kind = kind.replace("girl", "boy") if he == "he" else kind
    yield f"Once there was {kind} called {name}, who lived {random.choice(HOMES)} with a {friend}."
    yield f"One day {name} found {thing}."
    if random.random() < 0.6:
        yield random.choice((f"{_start(he)} loved it very much.", f"{_start(he)} showed it to {his} {friend}."))
    yield f"But {random.choice(TROUBLES).format(**words)}."
    yield f"{name} was {random.choice(FEELINGS)}."
    if random.random() < 0.7:
        search = random.choice(SEARCHES).format(**words)
        yield f"{_start(search)}, but {the_thing} was not there."
    yield f"Then {random.choice(HELPS).format(**words)}."
    yield random.choice(ENDS).format(**words)


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
