"""What is called on a device: the stand-in for a GPU's arrays, with a note of every call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from strict import METHODS, Array, Module


class Call(NamedTuple):
    """A call of a function of the module, or of a method of an array."""

    owner: str
    name: str
    positional: int
    keywords: frozenset[str]


@contextmanager
def recorded() -> Iterator[set[Call]]:
    """The calls that are made inside."""
    calls: set[Call] = set()

    def noted(owner: str, name: str, function: Callable[..., Any], bound: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            calls.add(Call(owner, name, len(args) - bound, frozenset(options)))
            return function(*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in vars(Module):
            function = getattr(Module, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                patch.setattr(Module, name, staticmethod(noted("module", name, function, 0)))
        for name in METHODS:
            patch.setattr(Array, name, noted("array", name, getattr(Array, name), 1))
        yield calls
