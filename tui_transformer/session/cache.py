"""Results of a session, kept beside it: a change that leaves it true hands it on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tui_transformer.engine.trace import Trace

Result = TypeVar("Result")
_MISSING: Any = object()


@dataclass(eq=False)
class Memo:
    """Results by name, each worked out once."""

    _results: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str, make: Callable[[], Result]) -> Result:
        """A result, worked out if it is not there."""
        result: Result = self._results.get(name, _MISSING)
        return self.put(name, make()) if result is _MISSING else result

    def put(self, name: str, result: Result) -> Result:
        """Keep a result; what another thread kept in the meantime stays, and is given back."""
        kept: Result = self._results.setdefault(name, result)
        return kept

    def find(self, name: str) -> Any:
        """A result, None where it is not there."""
        return self._results.get(name)

    @property
    def held_bytes(self) -> int:
        """Bytes that the traces among the results keep."""
        return sum(result.held_bytes for result in [*self._results.values()] if isinstance(result, Trace))

    def __contains__(self, name: str) -> bool:
        return name in self._results

    def clear(self) -> None:
        """Forget every result: it is worked out again when it is asked for."""
        self._results.clear()


@dataclass(frozen=True, eq=False)
class Cache:
    """Results of a session, by what they depend on; sessions for which that is the same share them.

    Attributes:
        tokens: What follows from the model and its tokens: encodings, the trace without edits, labels, stops.
        edited: What follows from these and the edits: the trace.
        backward: What follows from these and the targets: loss, gradients and their norms.
        compared: What follows from these and the overlay: the other session, the comparison.
    """

    tokens: Memo = field(default_factory=Memo)
    edited: Memo = field(default_factory=Memo)
    backward: Memo = field(default_factory=Memo)
    compared: Memo = field(default_factory=Memo)

    @property
    def memos(self) -> tuple[Memo, ...]:
        """All of them."""
        return self.tokens, self.edited, self.backward, self.compared

    @property
    def held_bytes(self) -> int:
        """Bytes that their traces keep."""
        return sum(memo.held_bytes for memo in self.memos)

    def for_edits(self) -> Cache:
        """The results that other edits leave true."""
        return Cache(self.tokens)

    def for_targets(self) -> Cache:
        """The results that other targets leave true."""
        return Cache(self.tokens, self.edited)

    def for_measure(self) -> Cache:
        """The results that stay true when another metric is measured, and differentiated."""
        return Cache(self.tokens, self.edited, compared=self.compared)

    def for_overlay(self) -> Cache:
        """The results that another overlay leaves true."""
        return Cache(self.tokens, self.edited, self.backward)


def let_go(far: Iterable[Cache], near: Iterable[Cache]) -> None:
    """Forget what was worked out of sessions that are far away, but for what they share with nearer ones."""
    kept = {id(memo) for cache in near for memo in cache.memos}
    for cache in far:
        for memo in cache.memos:
            if id(memo) not in kept:
                memo.clear()
