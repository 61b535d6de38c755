"""Questions and statements, told apart by question words, by the order of the words and by punctuation.

No single sign decides: some lines have no punctuation, statements speak of who and where, questions can be spoken
without a question word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

QUESTION, STATEMENT = "question", "statement"

PEOPLE = (
    "the teacher", "my sister", "the old sailor", "a child", "the doctor", "our neighbour", "the farmer", "the pilot",
    "her brother", "the baker", "the captain", "a stranger",
)  # fmt: skip
THINGS = (
    "the boat", "the letter", "a red hat", "the key", "the window", "a small lamp", "the bridge", "the garden",
    "the map", "the bread", "the old clock", "a heavy box",
)  # fmt: skip
PLACES = (
    "near the shore", "in the kitchen", "behind the house", "at the station", "under the tree", "on the hill",
    "in the harbour", "across the river",
)  # fmt: skip
TIMES = ("today", "in the morning", "last winter", "every evening", "after the storm", "on monday", "at night")
VERBS = (
    ("find", "finds", "found"),
    ("carry", "carries", "carried"),
    ("sell", "sells", "sold"),
    ("paint", "paints", "painted"),
    ("hide", "hides", "hid"),
    ("repair", "repairs", "repaired"),
    ("lose", "loses", "lost"),
    ("watch", "watches", "watched"),
    ("want", "wants", "wanted"),
    ("remember", "remembers", "remembered"),
)
"""Plain form, third person, past."""

Pick = Callable[[tuple[str, ...]], str]


def _questions(pick: Pick, verb: tuple[str, str, str]) -> tuple[str, ...]:
    plain, third, past = verb
    who, what, where, when = pick(PEOPLE), pick(THINGS), pick(PLACES), pick(TIMES)
    return (
        f"where did {who} {plain} {what}",
        f"when does {who} {plain} {what}",
        f"why did {who} {plain} {what} {where}",
        f"how did {who} {plain} {what} {when}",
        f"who {past} {what} {where}",
        f"what does {who} {plain} {when}",
        f"which of them {third} {what}",
        f"did {who} {plain} {what} {when}",
        f"does {who} {plain} {what} {where}",
        f"can {who} {plain} {what} {when}",
        f"is {who} {where} {when}",
        f"will {who} {plain} {what}",
        f"do you know where {who} {past} {what}",
    )


def _statements(pick: Pick, verb: tuple[str, str, str]) -> tuple[str, ...]:
    plain, third, past = verb
    who, what, where, when = pick(PEOPLE), pick(THINGS), pick(PLACES), pick(TIMES)
    return (
        f"{who} {past} {what} {where}",
        f"{who} {third} {what} {when}",
        f"{who} did not {plain} {what}",
        f"{who} can {plain} {what} {where}",
        f"{who} is {where} {when}",
        f"{who} will {plain} {what} {when}",
        f"i know where {who} {past} {what}",
        f"nobody asked why {who} {past} {what}",
        f"that is how {who} {third} {what}",
        f"we saw who {past} {what} {where}",
        f"{when} {who} {past} {what}",
        f"{what} is {where}",
        f"{who} told me what {pick(PEOPLE)} {past}",
    )


UNMARKED = 0.5
"""Share of lines without punctuation."""
SPOKEN = 0.08
"""Share of questions that are statements with a question mark."""


def lines(count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a sentence, a tab, and `question` or `statement`."""
    random = Random(seed)  # noqa: S311 - the same lines for the same seed, nothing secret
    for _ in range(count):
        asked = random.random() < 0.5
        spoken = asked and random.random() < SPOKEN
        make = _questions if asked and not spoken else _statements
        sentence = random.choice(make(random.choice, random.choice(VERBS)))
        marked = spoken or random.random() >= UNMARKED
        end = (" ?" if asked else random.choice((" .", " .", " !"))) if marked else ""
        yield f"{sentence}{end}\t{QUESTION if asked else STATEMENT}"
