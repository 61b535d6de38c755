"""The stand-in for a GPU's arrays with a note of every call that is made on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from strict import METHODS, Array, Module


class Call(NamedTuple):
    """A function of the module, or a method of an array, with how many arguments and which keywords it was called."""

    owner: str
    name: str
    positional: int
    keywords: frozenset[str]


@contextmanager
def recorded() -> Iterator[set[Call]]:
    """The calls that are made inside."""
    calls: set[Call] = set()
    with pytest.MonkeyPatch.context() as patch:
        for name in vars(Module):
            function = getattr(Module, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                patch.setattr(Module, name, staticmethod(_noted(calls, "module", name, function)))
        for name in METHODS:
            patch.setattr(Array, name, _method(calls, name, getattr(Array, name)))
        yield calls


def _noted(calls: set[Call], owner: str, name: str, function: Any) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        calls.add(Call(owner, name, len(args), frozenset(options)))
        return function(*args, **options)

    if hasattr(function, "at"):
        call.at = _noted(calls, owner, f"{name}.at", function.at)  # type: ignore[attr-defined]
    return call


def _method(calls: set[Call], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Array, *args: Any, **options: Any) -> Any:
        calls.add(Call("array", name, len(args), frozenset(options)))
        return function(self, *args, **options)

    return call
