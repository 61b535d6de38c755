"""Questions on a step: each with what can be answered, what is right, and the working; and which answer is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.views.step_view import Place
from tui_transformer.views.view import View

MOST_CHOICES = 4
"""Answers that are offered."""

CLOSE = 1e-3
"""How far the sum of a softmax may be from 1, rounded as its shares are."""

LARGEST = 1 << 16
"""Cells of a row that is looked through for a question."""


@dataclass(frozen=True)
class Question:
    """A question on a step.

    Attributes:
        text: The question.
        choices: What can be answered.
        right: Which of them is right.
        working: Why it is.
        column: The cell of the row that the answer is in; None where it is in none.
        hides_shape: Whether how many rows and columns there are would say the answer.
    """

    text: str
    choices: tuple[str, ...]
    right: int
    working: str
    column: int | None = None
    hides_shape: bool = False


Make = Callable[[View, Place, tuple[int, ...]], Question | None]


def question(view: View, place: Place, shape: tuple[int, ...], number: int) -> Question:
    """The number-th question on a step; those that do not fit are left out, and after the last the first comes again.

    Args:
        view: The step's values.
        place: The row and the cell that are asked about.
        shape: The shape of the step.
        number: Which question, from 0.
    """
    fitting = [made for make in QUESTIONS.values() if (made := make(view, place, shape)) is not None]
    return fitting[number % len(fitting)]


def _word(view: View, place: Place, _: tuple[int, ...]) -> Question | None:
    """Which word a row of attention looks at, and which word is most likely."""
    if view.columns.name == "vocabulary" and not view.integer:
        return _first(view, place, "Which word is most likely in {}?")
    attention = view.formula == Softmax().formula and view.columns.sequence
    return _first(view, place, "Which word will {} look at most?") if attention else None


def _largest(view: View, place: Place, _: tuple[int, ...]) -> Question | None:
    """Which column of the row has the largest value, where columns are no words."""
    words = view.columns.name == "vocabulary" or view.columns.sequence or view.integer
    return None if words else _first(view, place, "Which column of {} holds the largest value?")


def _first(view: View, place: Place, text: str) -> Question | None:
    """A question for the column with the largest value of the row."""
    row = _row(view, place)
    if row is None or row.size < 2 or not np.isfinite(row).any():
        return None
    order = np.argsort(-np.where(np.isfinite(row), row, -np.inf), kind="stable")
    if row[order[0]] == row[order[1]]:
        return None
    offered = sorted({int(order[0]), int(order[1]), int(order[len(order) // 2]), int(order[-1])})
    named = [_named(view, column) for column in offered]
    working = ", ".join(f"{name} {_number(row[column])}" for name, column in zip(named, offered, strict=True))
    return Question(
        text.format(_row_name(view, place)), tuple(named), offered.index(int(order[0])), working, int(order[0])
    )


def _shape(view: View, _: Place, shape: tuple[int, ...]) -> Question | None:
    """Question for the shape of the step."""
    others = {shape[::-1], (*shape[:-1], shape[-1] * 2), (*shape[:-1], max(shape[0], 2) * shape[-1]), shape[1:]}
    wrong = [other for other in sorted(others) if other and other != shape][: MOST_CHOICES - 1]
    if not wrong:
        return None
    offered = sorted([shape, *wrong])
    parts = [f"{view.rows.size} {view.rows.name or 'rows'}", f"{view.columns.size} {view.columns.name or 'columns'}"]
    heads = [f"{view.heads} heads"] if view.heads > 1 else []
    return Question(
        "Which shape has this step?",
        tuple(map(shape_text, offered)),
        offered.index(shape),
        " × ".join((*heads, *parts)),
        hides_shape=True,
    )


def _sum(view: View, place: Place, _: tuple[int, ...]) -> Question | None:
    """Question for the sum of a row of shares."""
    row = _row(view, place)
    if row is None or row.size < 2 or view.formula != Softmax().formula:
        return None
    if not abs(float(row.sum(dtype=np.float64)) - 1) < CLOSE:  # set by hand, or nothing may be looked at
        return None
    choices = ("0", "1", f"{row.size}, the number of columns", "it depends on the sentence")
    shown = " + ".join(_number(value) for value in np.sort(row)[::-1][:MOST_CHOICES])
    more = " + …" if row.size > MOST_CHOICES else ""
    text = f"What do the values in the row of {_row_name(view, place)} add up to?"
    return Question(text, choices, 1, f"{shown}{more} = {_number(float(row.sum(dtype=np.float64)))}")


def _sign(view: View, place: Place, _: tuple[int, ...]) -> Question | None:
    """Which sign the cell has."""
    row = _row(view, place)
    if row is None or view.integer or view.kind != "diverging" or not np.isfinite(row[place.column]):
        return None
    value = float(row[place.column])
    right = 0 if value < 0 else 2 if value > 0 else 1
    text = f"Which sign has the cell in the row of {_row_name(view, place)}, column {_named(view, place.column)}?"
    return Question(text, ("below 0", "exactly 0", "above 0"), right, f"the cell is {_number(value)}", place.column)


QUESTIONS: Mapping[str, Make] = {"word": _word, "shape": _shape, "sum": _sum, "sign": _sign, "largest": _largest}
"""By kind, in the order in which they are asked."""


def _row(view: View, place: Place) -> Host | None:
    """The values of the row; None where there are too many to look through."""
    if view.columns.size > LARGEST:
        return None
    row: Host = np.asarray(view.window(range(place.row, place.row + 1), range(view.columns.size))[0])
    return row


def _named(view: View, column: int) -> str:
    label = view.columns.label(column)
    if not label:
        return str(column)
    return f"{label} @{column}" if view.columns.sequence and f"@{column}" not in label else label


def _row_name(view: View, place: Place) -> str:
    label = view.rows.label(place.row)
    head = f" in head {place.head}" if view.heads > 1 else ""
    return f"“{label}”{head}" if label and label != str(place.row) else f"row {place.row}{head}"


def _number(value: float) -> str:
    return spoken(value, 4)


SAME = {
    "below 0": ("negative", "-", "minus", "< 0", "<0", "below"),
    "above 0": ("positive", "+", "plus", "> 0", ">0", "above"),
    "exactly 0": ("0", "zero", "none", "= 0"),
}
"""Other words for an answer."""


def chosen(question: Question, typed: str) -> int | None:
    """The place of the answer that is meant: by its words, a beginning of them, or its number from 1; None for none."""
    wanted, choices = _plain(typed), [_plain(choice) for choice in question.choices]
    for fits in (str.__eq__, _without_number, lambda choice, said: said in SAME.get(choice, ())):
        if (place := next((i for i, choice in enumerate(choices) if fits(choice, wanted)), None)) is not None:
            return place
    if wanted.isdecimal() and 1 <= int(wanted) <= len(choices):
        return int(wanted) - 1
    begun = [i for i, choice in enumerate(choices) if len(wanted) > 1 and choice.startswith(wanted)]
    return begun[0] if len(begun) == 1 else None


def _plain(text: str) -> str:
    """A text as it is compared: small letters, single spaces, shapes written one way."""
    text = " ".join(text.replace("−", "-").casefold().split())
    numbers = re.findall(r"\d+", text)
    return " × ".join(numbers) if len(numbers) > 1 and re.fullmatch(r"[\d\s×x*,()]+", text) else text


def _without_number(choice: str, wanted: str) -> bool:
    """`where @0` and `9, the number of columns` are also called `where`, `@0` and `9`."""
    word, _, place = choice.rpartition(" @")
    return wanted in (word, f"@{place}" if word else choice, choice.partition(", ")[0])
