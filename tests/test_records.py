"""Dataclasses of this program are those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
import pytest

from tui_transformer import records

BOTH = {"own": records.dataclass, "usual": dataclasses.dataclass}
OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"eq": False},
    {"frozen": True, "eq": False},
    {"repr": False},
    {"kw_only": True},
    {"frozen": True, "order": True},
    {"frozen": True, "slots": True},
]


def classes(decorate: Any, **options: bool) -> dict[str, Any]:
    """Classes as the program has them."""

    @decorate(**options)
    class Point:
        x: int = 1
        y: Any = None
        hidden: int = records.field(default=3, repr=False, compare=False)
        made: list[int] = records.field(default_factory=list, hash=False)
        total: int = records.field(init=False, default=0)
        KIND: ClassVar[str] = "point"

    @decorate(**options)
    class Further(Point):
        z: int = 7

    class Plain(Point):
        more = 5

    @decorate(**options)
    class Own:
        x: int = 1

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 11

    @decorate(**options)
    class One:
        x: Any = float("nan")

    @decorate(**options)
    class Nothing:
        pass

    @decorate(**options)
    class Begun(Further):
        w: int = 2

        def __post_init__(self) -> None:
            self.made.append(1)

    class Calls(Begun):
        def __init__(self, more: int = 4) -> None:
            super().__init__(x=more)

    return {each.__name__: each for each in (Point, Further, Plain, Own, One, Nothing, Begun, Calls)}


def tried(function: Any) -> Any:
    """What a call gives, or the name and the words of what it raises."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - it is compared
        return type(error).__name__, str(error)


def described(kinds: dict[str, Any]) -> Any:
    """All that can be seen of the classes, as far as it has no addresses."""
    found: dict[str, Any] = {}
    nan = float("nan")
    for name, kind in kinds.items():
        one, other = kind(), kind()
        found[name] = [
            (each.name, each.compare, each.repr, each.hash, each.init) for each in dataclasses.fields(kind)
        ] + [
            one == other,
            one != other,
            one == 3,
            tried(lambda: hash(one) == hash(other)),  # noqa: B023 - called at once
            repr(one),
            kind.__match_args__,
            str(inspect.signature(kind)),
            (kind.__init__.__qualname__, kind.__init__.__annotations__, kind.__doc__),
            tried(lambda: setattr(one, "x", 9)),  # noqa: B023 - the text is compared
            tried(lambda: setattr(one, "new", 9)),  # noqa: B023
            tried(lambda: delattr(one, "x")),  # noqa: B023
            tried(lambda: one < other),  # noqa: B023
            tried(lambda: dataclasses.asdict(one)),  # noqa: B023
            tried(lambda: kind(3, 4, 5, [6], 7)),  # noqa: B023
            tried(lambda: kind(x=nan) == kind(x=nan)),  # noqa: B023
            tried(lambda: copy.deepcopy(one) == one),  # noqa: B023
            tried(lambda: dataclasses.replace(one, x=8).x),  # noqa: B023
        ]
    return found


def without_addresses(found: Any) -> str:
    """In words, of which those differ that say where an object lies."""
    return re.sub(r" at 0x\w+", "", str(found))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_behave_as_those_of_the_standard_library(options: dict[str, bool]) -> None:
    own, usual = (described(classes(decorate, **options)) for decorate in BOTH.values())
    for name in usual:
        assert without_addresses(own[name]) == without_addresses(usual[name]), name


@records.dataclass(frozen=True)
class Kept:
    """A class that a file can name."""

    values: tuple[int, ...]


def test_they_are_kept_and_shown_also_where_they_hold_themselves() -> None:
    assert pickle.loads(pickle.dumps(Kept((1, 2)))) == Kept((1, 2))  # noqa: S301 - of this test
    within: list[Any] = []
    within.append(Kept(within))  # type: ignore[arg-type]
    assert repr(within[0]) == "Kept(values=[...])" or "Kept(values=[Kept(" in repr(within[0])
    array = np.zeros(3)
    assert Kept(array) == Kept(array), "the same object is equal, as in a tuple"  # type: ignore[arg-type]


def test_what_makes_an_object_is_compiled_once_where_the_first_is_made() -> None:
    @records.dataclass(frozen=True)
    class Point:
        """Without a description its signature is one, which has to be found."""

        x: int = 1

    class Calls(Point):
        def __init__(self) -> None:
            super().__init__(3)

    before = vars(Point)["__init__"]
    with ThreadPoolExecutor(4) as threads:
        assert {point.x for point in threads.map(lambda kind: kind(), (Calls, Calls, Calls, Calls))} == {3}
    assert isinstance(vars(Point)["__init__"], FunctionType)
    assert isinstance(before, FunctionType) == (not records.USUAL)
    assert Point(2).x == 2
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) got an unexpected keyword argument 'y'"):
        Point(y=2)  # type: ignore[call-arg]


def test_the_standard_library_is_as_it_was_afterwards() -> None:
    assert {name: getattr(dataclasses, name) for name in records.USUAL} == records.USUAL
    assert not {getattr(dataclasses, name, None) for name in records.OWN} & {*records.OWN.values()}
