"""Results that follow from a program alone, worked out once and kept as long as the program is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from tui_transformer.engine.program import Program

Given = ParamSpec("Given")
Result = TypeVar("Result")


def by_program(
    function: Callable[Concatenate[Program, Given], Result],
) -> Callable[Concatenate[Program, Given], Result]:
    """A function of a program, and of what can be a key, that keeps its results; they must not refer to the program.

    A cache of a fixed number of results would keep the programs of sentences that nobody looks at any more.
    """
    kept: WeakKeyDictionary[Program, dict[object, Result]] = WeakKeyDictionary()

    @wraps(function)
    def known(program: Program, /, *given: Given.args, **named: Given.kwargs) -> Result:
        results = kept.setdefault(program, {})
        key = given, tuple(named.items())
        if key not in results:
            results[key] = function(program, *given, **named)
        return results[key]

    return known
