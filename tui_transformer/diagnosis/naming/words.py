"""Words for steps: names in one spelling, and the phrases of headings, which `words.toml` lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from tui_transformer.files import read_toml

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
WORD = re.compile(r"[a-z]+|\d+")


def spelled(name: str) -> str:
    """A name in lower case, its words and numbers between points: `h.0.attn.c_attn` is `h.0.attn.c.attn`."""
    return ".".join(words_of(name))


def words_of(name: str) -> list[str]:
    """The words and numbers of a name, in lower case."""
    return WORD.findall(name if name.islower() else HUMP.sub(".", name).lower())


def kind(name: str) -> str:
    """The name without the number of its layer: steps of one kind come from one line of code."""
    return re.sub(r"\.\d+\.", ".*.", name)


def last(name: str) -> str:
    """The last part of a dotted name."""
    return name.rpartition(".")[2]


def read_table(name: str) -> dict[str, dict[str, str]]:
    """The sections of a TOML file beside this one."""
    return read_toml(Path(__file__).with_name(name), 1 << 20)


def phrases(text: str) -> frozenset[str]:
    """Phrases between commas, in as many lines as they need."""
    return frozenset(" ".join(each.split()) for each in text.split(","))


Phrases = Mapping[str, tuple[str, ...]]
"""Headings, and the steps that each may stand for."""

_WORDS = read_table("words.toml")


def _steps(section: str) -> Phrases:
    return {phrase: tuple(steps.split()) for steps, said in _WORDS[section].items() for phrase in phrases(said)}


ATTENTION, FEED_FORWARD, GATED = map(_steps, ("attention", "feed_forward", "gated"))
LAYER, OUTSIDE, END = map(_steps, ("layer", "embedding", "end"))
NORM: Mapping[str, str] = {phrase: step for step, said in _WORDS["norm"].items() for phrase in phrases(said)}
"""Headings → the number of a sublayer, and what is after it."""

PARTS = {part: phrases(said) for part, said in _WORDS["sections"].items()}
ROLES = {role: phrases(said) for role, said in _WORDS["inputs"].items()}
"""What goes into a model, and its names."""

_SETS = {name: phrases(said) for name, said in _WORDS["sets"].items()}
BEGINNING, RESULTS, SETTINGS, SILENT = (_SETS[each] for each in ("beginning", "results", "settings", "silent"))
OF_LAYER, AFTER_PART, LAST_NORM = (_SETS[each] for each in ("of_layer", "after_part", "last_norm"))
PLACES, COUNTED = _SETS["places"], _SETS["counted"]
OF_FEED_FORWARD, BEHIND, POSITIONS, ADDED = (
    _SETS[each] for each in ("of_feed_forward", "behind", "positions", "added")
)
OF_ATTENTION, OF_CROSS, OF_HIDDEN, OF_PROJECTIONS = (
    _SETS[f"beside_{each}"] for each in ("attention", "cross", "hidden", "projections")
)
STACKS = {"encoder": "encoder", "decoder": "decoder", "enc": "encoder", "dec": "decoder"}
ABBREVIATED = {"enc": "encoder", "dec": "decoder"}
SIZES = re.compile(r"[(\[{]?\s*\d+\s*[x×,]\s*\d+\s*[)\]}]?")


def plain(name: str) -> str:
    """A heading without sizes in it, as "3x4"."""
    return spelled(SIZES.sub(" ", name) if "x" in name or "×" in name or "," in name else name)


@lru_cache(maxsize=256)
def phrase_of(text: str) -> str:
    """The words of a heading, between spaces, numbers left out."""
    parts = [word for word in plain(text).split(".") if not word.isdigit()]
    return " ".join(ABBREVIATED.get(word, word) if len(parts) > 1 else word for word in parts)


def of_model(phrase: str) -> bool:
    """True if a heading is of the model, and not of one of its layers."""
    said = phrase.split()
    if not said or _SETS["within_heads"] & set(said) - {"weights"}:
        return False
    if phrase in BEGINNING or _SETS["of_model"] & set(said) or said[0] in _SETS["last"]:
        return True
    return phrase in ("ln f", "norm f", "token probabilities", "output probabilities", "next token")


def part_of_layer(phrase: str) -> str:
    """The part of a layer that a heading is about, and of nothing in it; "" where it is about something else."""
    bare = re.sub(r"^(?:\w )?(?:the )?|(?: (?:block|module|computation|step))$", "", phrase) if phrase else ""
    return next((part for part, spoken in PARTS.items() if phrase in spoken or bare in spoken), "")


def is_spoken(phrase: str) -> bool:
    """True if these are words for a step, whatever layer and head they are of."""
    short = " ".join(word for word in phrase.split() if word not in SILENT)
    known = phrase in every_phrase() or short in every_phrase() or of_model(phrase)
    return (len(phrase) > 1 and known) or phrase in ("q", "k", "v")


@cache
def every_phrase() -> frozenset[str]:
    """All phrases for steps and parts."""
    tables = (ATTENTION, FEED_FORWARD, GATED, NORM, LAYER, OUTSIDE, END)
    spoken = {spelled(phrase).replace(".", " ") for table in tables for phrase in table}
    return frozenset(spoken | LAST_NORM | {phrase for part in PARTS.values() for phrase in part})


@cache
def saying() -> frozenset[str]:
    """Words of which a phrase has one where it is of a step, or says something of what follows."""
    others = frozenset().union(*(_SETS[each] for each in ("beginning", "of_model", "last", "of_layer", "after_part")))
    spoken = every_phrase() | others | RESULTS | {*STACKS, "next token"}
    words = {max(phrase.split(), key=len) for phrase in spoken if not phrase.isdigit()}
    return frozenset(words | {short for short, whole in ABBREVIATED.items() if whole in words})
