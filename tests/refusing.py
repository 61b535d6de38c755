"""What is refused, in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tui_transformer.errors import InputError


def refuses(says: str, call: Callable[[], object], error: type[Exception] = InputError) -> str:
    """The line with which a call ends, in which this pattern is found."""
    __tracebackhide__ = True
    with pytest.raises(error, match=says or None) as ended:
        call()
    assert len(str(ended.value).splitlines()) == 1
    return str(ended.value)
