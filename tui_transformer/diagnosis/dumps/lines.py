"""A line of a printed log: what programs write around its numbers, and what stands in front of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tui_transformer.diagnosis.dumps.numbers import LONGEST_SIZE, NUMBER, PLAIN, plain
from tui_transformer.diagnosis.naming.words import PLACES, is_spoken, phrase_of, spelled

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
PREFIX = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]?\s*)?"
    r"(?:(?:\[(?:info|debug|trace|warn(?:ing)?|log)\]|\b(?:info|debug|trace)\b\s*[:|-])\s*:?)?"
    r"(?:\[[\w./\\-]+\.rs:\d+(?::\d+)?\]\s*&?)?",
    re.I,
)
"""What loggers write in front of a line."""

CALL = re.compile(
    r"(?:\b(?:[\w.]{0,30}(?:tensor|array)|matrix|vector|tf\.Tensor)\(|\bFloat(?:16|32|64)(?=\[))\s*(?=[\[\s\d.+-]|$)",
    re.I,
)
CALL_END = re.compile(r"\)?,?\s{0,8}(?:dtype|device|grad_fn|requires_grad|size|layout|shape)\s*=.*$|\)\s*$", re.I)
"""What PyTorch, NumPy and others write around the numbers."""

NDARRAY_END = re.compile(r"(?<=\]), shape=\[[\d, ]*\], strides=.*$")
"""What Rust's ndarray writes behind them."""

TENSOR = re.compile(r"<tf\.(?:Tensor|Variable)\b[^>]{0,200}?\bnumpy=\s*|\bParameter containing:?\s*$")
TORCH_SIZE = re.compile(r"\btorch\.Size\(\[([\d,\s]*)\]\)")
ONE_NUMBER = re.compile(r"\b(?:np\.\w+|tensor|array|jnp\.\w+)\(([-+]?[\d.]+(?:e[-+]?\d+)?|[-+]?inf|nan)\)", re.I)
"""A number in a list of numbers that each say their type."""

SUFFIX = re.compile(r"(?<=[\d.])_?[fF](?:16|32|64)?(?=[\s,;\]})]|$)")
"""1.5f of C++, 1.5f32 of Rust."""

JULIA = re.compile(r"\b\d+(?:×\d+|-element)(?:×\d+)*\s+[\w.]+\{[^:=\n]{0,60}\}(?:\s+with eltype \w+)?:\s*$")
"""`2×2 Matrix{Float64}:`, above the numbers."""

JSON_NAME = re.compile(
    r'\s*\{\s*"(?:name|key|tensor|step)"\s*:\s*"([^"]{1,200})"\s*,'
    r'(?:\s*"[^"]*"\s*:\s*(?:"[^"]*"|\d+)\s*,)*\s*"[^"]*"\s*:\s*(?=\[)'
)
"""`{"name": "Q", "values":`, a line of JSON."""

TYPE = re.compile(r"\s*\[\s*\w*(?:Float|Double|Half|Long|Int|Bool)Type\s*\{[\d,\s]*\}\s*\]\s*")
SLICE = re.compile(r"\s*\(\d+(?:,\d+)*,\.,\.\)\s*=\s*")
"""What libtorch writes below a matrix, and above each matrix of an array."""

PAGE = re.compile(r"\s*+(\w*+)\s*+[(\[]:,\s*+:,\s*+(\d++)[)\]]\s*+=\s*+")
"""What MATLAB, Octave and Julia write above each matrix of an array."""

COLUMNS = re.compile(r"\s*Col(?:umn)?s?\s+(\d+)(?:\s*(?:to|through|thru|and|-)\s*(\d+))?(?:\s*:|(?=\s|$))", re.I)
"""`Columns 1 to 8`, where a wide matrix is printed in parts: libtorch, MATLAB, Octave."""

R_COLUMNS = re.compile(r"\s*\[,(\d+)\](?:\s+\[,\d+\])*?(?:\s+\[,(\d+)\])?\s*")
R_ROW = re.compile(r"\s*\[\d+,\](?=\s)")

SCALE = re.compile(r"(?:^|(?<=[\s:=]))([-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:e[-+]?\d++)?+)\s*+\*\s*+(?=$|[\[{])", re.I)
"""`1.0e-03 *`, what the numbers that follow are to be multiplied by."""

ROW = re.compile(
    r"\s*+(?:(?:row|token|tok|pos(?:ition)?|word|query|line|vector|r|i|t|n)\b[\s_#=.]*+)?[\[(]?\d++[\])]?"
    r"(?:\s*+[(\[<'\"][^\n:=|]{0,60}?[)\]>'\"])?\s*+(?::=?|=>?|->|→)"
    r"|\s*+(?:row|token|tok|pos(?:ition)?|word|query)[\s_#=.\[(]*+\d++[\])]?(?:\s*+[(\[<'\"][^\n:=|]{0,60}?[)\]>'\"])?"
    r"\s*+[|,]?(?=[\s\[{(]*[-+.\d])|\s*+\[\d++\](?=\s*+[-+.\d\[])",
    re.I,
)
"""The number of a row in front of it: `row 0:`, `Token 0 (the):`, `[3]`."""


def bare(text: str) -> str:
    """A line without colours, what a logger writes in front, and what stands around the numbers of an array."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    text = plain(text)
    if written := PREFIX.match(text):
        text = text[written.end() :]
    if "(" in text:
        text = TORCH_SIZE.sub(r"(\1)", text) if "torch.Size" in text else text
        text = ONE_NUMBER.sub(r"\1", text)
        text = CALL.sub("", text, count=1) if CALL.search(text) or text.rstrip().endswith("(") else text
    if text.lstrip().startswith("{") and (named := JSON_NAME.match(text)):
        text = f"{named[1]}: {text[named.end() :]}"
    text = TENSOR.sub("", text) if "<tf." in text or "Parameter" in text else text
    text = JULIA.sub("", text) if "×" in text or "-element" in text else text
    text = CALL.sub("", text, count=1) if "Float" in text else text
    text = SUFFIX.sub("", text) if "f" in text or "F" in text else text
    if "]" in text and "strides=" in text:
        text = NDARRAY_END.sub("", text)
    if "]" in text and (text.rstrip()[-1:] in ")>" or "=" in text) and (end := CALL_END.search(text, text.rindex("]"))):
        text = text[: end.start()]
    return text


def row_end(text: str) -> str:
    """The next part of a long row, without what stands behind the numbers of an array."""
    text = plain(text)
    return CALL_END.sub("", text) if "=" in text or ")" in text else text


def columns_of(text: str) -> tuple[int, int, str] | None:
    """The first and last column, counted from 1, that a line says that follow, and what stands behind them in it."""
    found = COLUMNS.match(text) or R_COLUMNS.fullmatch(text)
    if not found:
        return None
    first, last, rest = int(found[1][:9]), int((found[2] or found[1])[:9]), text[found.end() :]
    meant = not rest.strip() or (found[2] and (PLAIN.fullmatch(rest) or SCALE.fullmatch(rest)))
    return (first, last, rest) if meant and 1 <= first <= last else None


def with_count(text: str) -> Iterator[str]:
    """A line without the number of its row in front, and as it is."""
    if counted := ROW.match(text) or R_ROW.match(text):
        yield text[counted.end() :]
    yield text


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
