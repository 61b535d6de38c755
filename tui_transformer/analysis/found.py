"""Results as a table: in order, found as they are asked for, and flat for pandas and polars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar, overload

T = TypeVar("T")
P = ParamSpec("P")
Cells = Mapping[str, Any]


class Found(Sequence[T]):
    """Results in order. What was found stays; the rest is found when it is asked for.

    `rows()` gives them as flat dictionaries: `pandas.DataFrame(found.rows())`, `polars.DataFrame(found.rows())`.
    """

    def __init__(self, results: Iterable[T], cells: Callable[[T], Iterable[Cells]]) -> None:
        self._coming, self._there, self._cells = iter(results), list[T](), cells

    def __iter__(self) -> Iterator[T]:
        at = 0
        while at < len(self._there) or self._more():
            yield self._there[at]
            at += 1

    def _more(self) -> bool:
        found = list(islice(self._coming, 1))
        self._there += found
        return bool(found)

    def _all(self) -> list[T]:
        self._there += self._coming
        return self._there

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        return self._all()[at]

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for every row."""
        return [dict(cells) for result in self for cells in self._cells(result)]

    def __repr__(self) -> str:
        there = ", ".join(map(repr, self._there[:3]))
        more = "" if len(self._there) <= 3 else f" … {len(self._there)} so far"
        return f"<Found [{there}{more}]>"


def found(cells: Callable[[T], Iterable[Cells]]) -> Callable[[Callable[P, Iterable[T]]], Callable[P, Found[T]]]:
    """A function whose results are a table: `cells` are the rows of one result."""

    def of(function: Callable[P, Iterable[T]]) -> Callable[P, Found[T]]:
        @wraps(function)
        def table(*args: P.args, **given: P.kwargs) -> Found[T]:
            return Found(function(*args, **given), cells)

        return table

    return of
