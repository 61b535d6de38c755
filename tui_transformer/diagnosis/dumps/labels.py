"""What stands in front of numbers in a line: a heading, the name of a row, or its number."""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_transformer.diagnosis.dumps.numbers import LONGEST_SIZE, NUMBER, PLAIN
from tui_transformer.diagnosis.naming.name import phrases, spelled
from tui_transformer.diagnosis.naming.phrases import is_spoken, phrase_of

LONGEST_LABEL = 200
LOOKED_AT = 1 << 10
"""Letters of the numbers behind a label in which words are counted."""

SIGNS = ":=|>→,"
DIGIT = re.compile(r"\d")
LABEL_END = re.compile(rf"[{SIGNS}\s]+")
COUNTED = re.compile(r"(.*?[^\W\d].*?)(?:\s*[\[(]\s*(\d+)\s*[\])]|[\s_#]+(\d+))$", re.S)
PLACED = re.compile(
    r"(.*?[^\W\d].*?)((?:\[\s*\d+\s*\]){2,}|\(\s*\d+(?:\s*,\s*\d+)+\s*\)|\[\s*\d+(?:\s*,\s*\d+)+\s*\])$"
)
"""`Q[0]`, `Q (0)`, `Q row 0`: a row by its number; `Q[0][1]`, `Q(0, 1)`: a cell by its place."""

ROW_WORDS = re.compile(r"[\s,_-]*\b(?:row|token|tok|pos|position|word|query)$", re.I)
SIZED = re.compile(r"(.*?)[\s_.,(-]*\b(?:shape|sizes?|dims?|dimensions)\b(?:\s*is)?\s*", re.I)
PLACES = phrases(
    """
    layer, block, head, encoder, decoder, encoder layer, decoder layer, sentence, example, sample
    """
)


class Label(NamedTuple):
    """What stands in front of a row.

    Attributes:
        text: All of it.
        stem: `Q` of `Q[0]`.
        place: The number of the row, or the place of the cell; () where there is none.
        named: It is the name of a row, as of a token, under a heading.
    """

    text: str
    stem: str = ""
    place: tuple[int, ...] = ()
    named: bool = False


def numbers_from(text: str) -> int:
    """Where the numbers behind a label begin; 0 where there is no label, or no numbers are behind it."""
    if not DIGIT.search(text) and "nan" not in (small := text.lower()) and "inf" not in small:
        return 0
    for end in LABEL_END.finditer(text, 0, LONGEST_LABEL):
        rest = text[end.end() :]
        if not PLAIN.fullmatch(rest) or not (any(map(str.isdigit, rest)) or NUMBER.search(rest)):
            continue
        if any(sign in end[0] for sign in SIGNS) or ("." in rest and len(rest[:LOOKED_AT].split()) > 1) or "[" in rest:
            return end.end()
        return 0
    return 0


def label_of(words: str) -> Label:
    """A label, with the number of the row or of the cell that it says."""
    placed, counted = PLACED.fullmatch(words), COUNTED.fullmatch(words)
    if placed:
        return Label(words, placed[1].strip(), tuple(map(_size, re.findall(r"\d+", placed[2]))))
    if counted and not (counted[3] and is_spoken(spelled(words).replace(".", " "))):
        stem = ROW_WORDS.sub("", counted[1].strip())
        if phrase_of(stem).rpartition(" ")[2] not in PLACES:
            return Label(words, stem, (_size(counted[2] or counted[3]),))
    return Label(words)


def _size(digits: str) -> int:
    return int(digits[:LONGEST_SIZE])


def step_between(last: tuple[int, ...], place: tuple[int, ...]) -> int:
    """Which number of a place went on, 1 the last; 0 where it does not follow the one before it."""
    if len(last) != len(place):
        return 0
    if last == place:
        return 1
    axis = next(i for i, (a, b) in enumerate(zip(last, place, strict=True)) if a != b)
    follows = place[axis] == last[axis] + 1 and all(each in (0, 1) for each in place[axis + 1 :])
    return len(place) - axis if follows else 0
