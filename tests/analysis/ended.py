"""Work that is ended by what it reports to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def ended(call: Callable[[Callable[[Any], None]], object], when: Callable[[Any], bool] = lambda _: True) -> list[Any]:
    """What is reported until then."""
    told = []

    def report(what: Any) -> None:
        told.append(what)
        if when(what):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(report)
    return told
