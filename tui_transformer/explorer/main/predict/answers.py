"""Typed answers: which of the offered ones somebody meant, or none of them."""

from __future__ import annotations

import re

from tui_transformer.explorer.main.predict.question import Question

SAME = {
    "below 0": ("negative", "-", "minus", "< 0", "<0", "below"),
    "above 0": ("positive", "+", "plus", "> 0", ">0", "above"),
    "exactly 0": ("0", "zero", "none", "= 0"),
}
"""Other words for an answer."""


def chosen(question: Question, typed: str) -> int | None:
    """The place of the answer that is meant: by its words, a beginning of them, or its number from 1; None for none."""
    wanted, choices = _plain(typed), [_plain(choice) for choice in question.choices]
    for fits in (str.__eq__, _without_number, _also):
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


def _also(choice: str, wanted: str) -> bool:
    return wanted in SAME.get(choice, ())
