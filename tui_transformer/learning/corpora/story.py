"""Very short stories, made by a grammar: somebody wants something, something is in the way, it ends well.

Names, places and things return within a story, so that a model has something to remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

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


def lines(count: int, seed: int = 0) -> Iterator[str]:
    """One story a line, of five to eight sentences."""
    random = Random(seed)  # noqa: S311 - the same lines for the same seed, nothing secret
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
