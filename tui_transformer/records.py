"""Dataclasses that are the standard library's in all but what they cost: a third of the time at start-up.

Until Python 3.12 each compiles six functions from text, 0.6 ms together, and the first screen has some 350 of them.
Only `__init__` needs that: to compare, to show and to refuse are the same for all, but for the names of the fields.
And of `__init__` only every third is ever called: it is compiled where one is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, field, fields, is_dataclass, replace
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["KW_ONLY", "InitVar", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: Any) -> Any:
        """`dataclasses.dataclass`, with all of its options."""
        return (lambda kind: _made(kind, **options)) if kind is None else _made(kind, **options)


def _made(kind: type, *, eq: bool = True, repr: bool = True, **options: Any) -> type:
    if options.get("order") or options.get("slots") or options.get("unsafe_hash"):
        return dataclasses.dataclass(eq=eq, repr=repr, **options)(kind)
    own = vars(kind)
    hashes = own.get("__hash__", ...) is not ... and not (own["__hash__"] is None and "__eq__" in own)
    with _at_less():
        made: type[Any] = dataclasses.dataclass(eq=False, repr=False, **options)(kind)
    if repr:
        _add(made, "__repr__", _shows(each.name for each in fields(made) if each.repr))
    if eq:
        _add(made, "__eq__", _compares(each.name for each in fields(made) if each.compare))
        if not hashes:
            hashed = (each.name for each in fields(made) if (each.compare if each.hash is None else each.hash))
            setattr(made, "__hash__", _hashes(hashed) if options.get("frozen") else None)  # noqa: B010 - not a method
    return made


def _add(kind: type, name: str, function: Callable[..., Any]) -> None:
    if name not in vars(kind):
        function.__name__, function.__qualname__ = name, f"{kind.__qualname__}.{name}"
        setattr(kind, name, function)


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of attributes."""
    match tuple(names):
        case ():
            return lambda _: ()
        case (name,):
            one = attrgetter(name)
            return lambda each: (one(each),)
        case several:
            return attrgetter(*several)


def _shows(names: Iterable[str]) -> Callable[[Any], str]:
    each_shown = tuple(names)

    @recursive_repr()
    def shown_as(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in each_shown)})"

    return shown_as


def _compares(names: Iterable[str]) -> Callable[[Any, object], bool]:
    values = _values(names)

    def is_equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return is_equal


def _hashes(names: Iterable[str]) -> Callable[[Any], int]:
    values = _values(names)

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _refuse(kind: Any, own: Iterable[dataclasses.Field[Any]], _: object) -> tuple[Callable[..., None], ...]:
    names = frozenset(each.name for each in own)

    def set_it(self: Any, name: str, value: object) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete_it(self: Any, name: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    set_it.__name__, delete_it.__name__ = "__setattr__", "__delattr__"  # they are put where their names say
    return set_it, delete_it


class _Compiled:
    """The `__init__` of a class until somebody calls it or looks at it: then it is compiled and stands there itself."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled

    def __get__(self, instance: object, owner: type) -> Any:
        function = self._compiled()
        for kind in owner.__mro__:
            if vars(kind).get("__init__") is self:
                function.__qualname__ = f"{kind.__qualname__}.__init__"
                setattr(kind, "__init__", function)  # noqa: B010 - not a method
        return function.__get__(instance, owner)


OWN = {"_frozen_get_del_attr": _refuse, "_init_fn": lambda *what: _Compiled(partial(USUAL["_init_fn"], *what))}
"""What makes the two functions that refuse, and `__init__`, of Python 3.11 and 3.12; later ones make all at once."""

USUAL: dict[str, Any] = {name: getattr(dataclasses, name) for name in OWN if hasattr(dataclasses, "_create_fn")}


@contextmanager
def _at_less() -> Iterator[None]:
    """Let the standard library take the functions above; another thread that makes a class meanwhile may have them."""
    for name in USUAL:
        setattr(dataclasses, name, OWN[name])
    try:
        yield
    finally:
        for name, function in USUAL.items():
            setattr(dataclasses, name, function)
