"""Dates as people write them, and as ISO 8601 does: `the 3rd of May 2021` and `2021-05-03`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from random import Random

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


def lines(count: int, seed: int = 0) -> Iterator[str]:
    """Lines of a written date, a tab, and the date as `2021-05-03`."""
    random = Random(seed)  # noqa: S311 - the same lines for the same seed, nothing secret
    span = (LAST - FIRST).days
    for _ in range(count):
        day = FIRST + timedelta(days=random.randint(0, span))
        yield f"{random.choice(STYLES)(day)}\t{day.isoformat()}"


def _month(day: date) -> str:
    return MONTHS[day.month - 1]


def _ordinal(day: date) -> str:
    return f"{day.day}{ENDINGS.get(day.day, 'th')}"
