"""Results as a table: in order, found as they are asked for, and flat for pandas and polars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar, overload

T = TypeVar("T")
P = ParamSpec("P")
Cells = Mapping[str, Any]

SHOWN = 3
"""Results of a `repr`."""


class Found(Sequence[T]):
    """Results in order. What was found stays; the rest is found when it is asked for, one after the other.

    `rows()` gives them as flat dictionaries: `pandas.DataFrame(found.rows())`, `polars.DataFrame(found.rows())`.
    Calling it gives the same.
    """

    def __init__(self, results: Iterable[T], cells: Callable[[T], Iterable[Cells]]) -> None:
        self._whole = isinstance(results, list | tuple)
        there: list[T] = list(results) if isinstance(results, list | tuple) else []
        self._there, self._cells = there, cells
        self._coming: Iterator[T] = iter(() if there else results)
        self._failed: Exception | None = None
        self._at = 0

    def __iter__(self) -> Iterator[T]:
        at = 0
        while at < len(self._there) or self._take(1):
            yield self._there[at]
            at += 1

    def __next__(self) -> T:
        """The next one, as of an iterator, which such results were before."""
        if self._at == len(self._there) and not self._take(1):
            raise StopIteration
        self._at += 1
        return self._there[self._at - 1]

    def _take(self, count: int | None = None) -> int:
        """Find so many more, or all, and how many there were.

        An error comes each time: `list` asks for the length first, and takes no notice where that is a TypeError.
        """
        if self._failed is not None and count != 0:
            raise self._failed
        before = len(self._there)
        try:
            self._there += islice(self._coming, count)
        except Exception as error:
            self._failed = error
            raise
        more = len(self._there) - before
        self._whole = self._whole or count is None or more < count
        return more

    def __len__(self) -> int:
        self._take()
        return len(self._there)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        self._take(max(0, at + 1 - len(self._there)) if isinstance(at, int) and at >= 0 else None)
        return self._there[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for every row."""
        return [dict(cells) for result in self for cells in self._cells(result)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and written whole: what is still to be found is found first."""
        results = list(self)
        return _known, (results, [[*self._cells(result)] for result in results])

    def __call__(self) -> list[dict[str, Any]]:
        """As `rows`."""
        return self.rows()

    def __repr__(self) -> str:
        there = ", ".join(map(repr, self._there[:SHOWN]))
        more = f", … ({len(self._there)} so far)" if len(self._there) > SHOWN else ""
        return f"<Found [{there}{more}]{'' if self._whole else ', more are found when they are asked for'}>"


def _known(results: list[T], rows: Sequence[Sequence[Cells]]) -> Found[T]:
    """A table that was written, with the rows of every result."""
    own = {id(result): each for result, each in zip(results, rows, strict=True)}
    return Found(results, lambda result: own[id(result)])


class Again(Found[T]):
    """The same of so many large results, which are not kept: they are found again each time."""

    def __init__(self, count: int, find: Callable[[], Iterable[T]], cells: Callable[[T], Iterable[Cells]]) -> None:
        super().__init__((), cells)
        self._count, self._find = count, find

    def __repr__(self) -> str:
        return f"<Found {self._count}, each when it is asked for>"

    def __iter__(self) -> Iterator[T]:
        return iter(self._find())

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, int) and at >= 0:
            try:
                return next(islice(self, at, None))
            except StopIteration:
                raise IndexError(at) from None
        return list(self)[at]


def found(cells: Callable[[T], Iterable[Cells]]) -> Callable[[Callable[P, Iterable[T]]], Callable[P, Found[T]]]:
    """A function whose results are a table: `cells` are the rows of one result."""

    def of(function: Callable[P, Iterable[T]]) -> Callable[P, Found[T]]:
        @wraps(function)
        def table(*args: P.args, **given: P.kwargs) -> Found[T]:
            return Found(function(*args, **given), cells)

        return table

    return of
