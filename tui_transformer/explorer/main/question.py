"""Questions on a step: what can be answered, what is right, how one could have known; and which answer is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from tui_transformer.engine.axis import shape_text
from tui_transformer.engine.backend import Host
from tui_transformer.engine.explanation import Sum, Value
from tui_transformer.engine.number_format import spoken
from tui_transformer.engine.ops import Softmax
from tui_transformer.engine.trace import Trace
from tui_transformer.guide.texts import step_text
from tui_transformer.records import dataclass, replace
from tui_transformer.session.position import Position
from tui_transformer.session.session import Session
from tui_transformer.text.display import visible
from tui_transformer.views.step_view import Place, index_of, view_of
from tui_transformer.views.view import View

MOST_CHOICES = 4
"""Answers that are offered."""

NOTHING_CHOSEN = "nothing is chosen"
"""What an answer is that was not given."""


@dataclass(frozen=True)
class Question:
    """A question on a step.

    Attributes:
        text: The question.
        choices: What can be answered.
        right: Which of them is right.
        known_by: How one could have known, in a sentence.
        column: The cell of the row that the answer is in; None where it is in none.
        hides_shape: Whether how many rows and columns there are would say the answer.
    """

    text: str
    choices: tuple[str, ...]
    right: int
    known_by: str
    column: int | None = None
    hides_shape: bool = False

    def verdict(self, answer: int | None, typed: str = "") -> str:
        """Whether an answer is right, or what was typed that is none; and how one could have known."""
        given = typed if answer is None else self.choices[answer]
        said = "Right." if answer == self.right else f"You said {given}. It is {self.choices[self.right]}."
        return visible(f"{said} {self.known_by}")


Make = Callable[[Trace, View, Place], Question | None]


def question(trace: Trace, view: View, place: Place, number: int) -> Question:
    """The number-th question on a step; those that do not fit are left out, and after the last the first comes again.

    Args:
        trace: Has what the step is made from.
        view: The step's values.
        place: The row and the cell that are asked about.
        number: Which question, from 0.
    """
    fitting = [made for make in QUESTIONS.values() if (made := make(trace, view, place)) is not None]
    return fitting[number % len(fitting)]


def question_at(session: Session, position: Position, kind: str) -> Question | None:
    """The question of a kind about a cell; None where it does not fit the step."""
    view = view_of(session.trace, position.stop, session.labels, head=position.place.head)
    return QUESTIONS[kind](session.trace, view, position.place.within(view))


def _word(trace: Trace, view: View, place: Place) -> Question | None:
    """Which word a row of attention looks at, and which word is most likely."""
    if view.columns.name == "vocabulary" and not view.integer:
        return _first(trace, view, place, "Which word is most likely in {}?")
    attention = view.formula == Softmax().formula and view.columns.sequence
    return _first(trace, view, place, "Which word will {} look at most?") if attention else None


def _largest(trace: Trace, view: View, place: Place) -> Question | None:
    """Which column of the row has the largest value, where columns are no words."""
    if view.columns.name == "vocabulary" or view.columns.sequence or view.integer:
        return None
    return _first(trace, view, place, f"Which column of {{}} holds the largest value of {_step(view.name)}?")


def _first(trace: Trace, view: View, place: Place, text: str) -> Question | None:
    """A question for the column with the largest value of the row."""
    row = _row(view, place)
    if row is None or row.size < 2 or not np.isfinite(row).any():
        return None
    order = np.argsort(-np.where(np.isfinite(row), row, -np.inf), kind="stable")
    if row[order[0]] == row[order[1]]:
        return None
    offered = sorted({int(order[0]), int(order[1]), int(order[len(order) // 2]), int(order[-1])})
    named = tuple(_named(view, column) for column in offered)
    best, second = map(int, order[:2])
    known_by = _ahead(trace, view, place, best, second)
    return Question(text.format(_row_name(view, place)), named, offered.index(best), known_by, best)


def _ahead(trace: Trace, view: View, place: Place, best: int, second: int) -> str:
    """How one could have known the largest of a row: one of what it is made from is largest there, or it is a sum."""
    program, name = trace.program, view.name
    made = trace.explain_cell(name, index_of(program.axes(name), replace(place, column=best))).items
    read = (item.source.name for item in made if isinstance(item, Value) and item.source is not None)
    for each in dict.fromkeys(read):
        if each not in program.by_name or program.shape(each) != program.shape(name):
            continue
        axes = program.axes(each)
        before = tuple(range(i, i + 1) for i in index_of(axes, place)[:-1])
        row: Host = trace.window(each, (*before, range(axes[-1].size))).reshape(-1)
        if not np.isfinite(row[best]) or int(np.where(np.isfinite(row), row, -np.inf).argmax()) != best:
            continue
        if view.formula != Softmax().formula:
            return f"{step_text(each).label} is largest there too: {_number(row[best])}."
        what = f"the largest {'logit' if each == program.logits else 'score'}, {_number(row[best])}"
        others = f"before {_named(view, second)} with {_number(row[second])}"
        return f"{_named(view, best)} has {what}, {others}: a softmax keeps their order."
    return _worked_out(trace, view, replace(place, column=best))


def _worked_out(trace: Trace, view: View, place: Place) -> str:
    """What the terms of a cell add up to on either side of 0, and its equation; its value where there is neither."""
    working = trace.explain_cell(view.name, index_of(trace.program.axes(view.name), place))
    total, equation = (working.items or (None,))[0], working.equation
    if not isinstance(total, Sum) or total.unit != "product":
        value, same = _number(working.stored), len(set(equation.split(" = "))) == 1
        plainly = f"It is taken over as it is: {value}." if equation else f"It is {working.formula}: {value}."
        return plainly if same else f"{equation}."
    above, below = (float(total.contributions[total.contributions * sign > 0].sum()) for sign in (1, -1))
    terms = f"Its {len(total)} products add up to {_number(above)} above 0 and {_number(below)} below"
    return f"{terms}: {_number(working.stored)}." if len(working.items) == 1 else f"{terms}; {equation}."


def _shape(trace: Trace, view: View, _: Place) -> Question | None:
    program, shape, given = trace.program, trace.program.shape(view.name), list[str]()
    for each in made_from(trace, view.name):
        label = step_text(each).label if each in program.by_name else "a weight"
        given.append(f"{label} {shape_text(program.shape(each))}")
    others = {shape[::-1], (*shape[:-1], shape[-1] * 2), (*shape[:-1], max(shape[0], 2) * shape[-1]), shape[1:]}
    wrong = [other for other in sorted(others) if other and other != shape][: MOST_CHOICES - 1]
    if not wrong:
        return None
    offered = sorted([shape, *wrong])
    parts = [f"{view.rows.size} {view.rows.name or 'rows'}", f"{view.columns.size} {view.columns.name or 'columns'}"]
    heads = [f"{view.heads} heads"] if view.heads > 1 else []
    makes = f"{' and '.join(given)} {'give' if len(given) > 1 else 'gives'} " if given else ""
    return Question(
        f"Which shape has {_step(view.name)}{', made from ' * bool(given)}{' and '.join(given)}?",
        tuple(map(shape_text, offered)),
        offered.index(shape),
        f"{makes}{' × '.join((*heads, *parts))}.",
        hides_shape=True,
    )


def made_from(trace: Trace, name: str) -> tuple[str, ...]:
    """The first two steps and weights that a step is made from: nothing in them gives the step away."""
    program = trace.program
    inputs = program.step(name).inputs if name in program.by_name else ()
    there = [each for each in dict.fromkeys(inputs) if each in program.by_name or each in program.weights]
    return tuple(there[:2])


def _sum(_: Trace, view: View, place: Place) -> Question | None:
    row = _row(view, place)
    if row is None or row.size < 2 or view.formula != Softmax().formula:
        return None
    if not abs(float(row.sum(dtype=np.float64)) - 1) < 1e-3:  # set by hand, or nothing may be looked at
        return None
    choices = ("0", "1", f"{row.size}, the number of columns", "it depends on the sentence")
    shown = " + ".join(_number(value) for value in np.sort(row)[::-1][:MOST_CHOICES])
    more = " + …" if row.size > MOST_CHOICES else ""
    label = step_text(view.name).label
    text = f"What do the {label[:1].lower()}{label[1:]} of {_row_name(view, place)} add up to?"
    total = _number(float(row.sum(dtype=np.float64)))
    return Question(text, choices, 1, f"A softmax divides each by the sum of its row: {shown}{more} = {total}.")


def _sign(trace: Trace, view: View, place: Place) -> Question | None:
    row = _row(view, place)
    if row is None or view.integer or view.kind != "diverging" or not np.isfinite(row[place.column]):
        return None
    value = float(row[place.column])
    right = 0 if value < 0 else 2 if value > 0 else 1
    cell = f"the row of {_row_name(view, place)}, column {_named(view, place.column)}"
    text = f"Which sign has the cell of {_step(view.name)} in {cell}?"
    return Question(text, ("below 0", "exactly 0", "above 0"), right, _worked_out(trace, view, place), place.column)


QUESTIONS: Mapping[str, Make] = {"word": _word, "shape": _shape, "sum": _sum, "sign": _sign, "largest": _largest}
"""By kind, in the order in which they are asked."""


def _row(view: View, place: Place) -> Host | None:
    """The values of the row; None where there are too many to look through."""
    if view.columns.size > 1 << 16:
        return None
    row: Host = np.asarray(view.window(range(place.row, place.row + 1), range(view.columns.size))[0])
    return row


def _step(name: str) -> str:
    return f"“{step_text(name).label}”"


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
