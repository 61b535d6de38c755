"""What a process that runs many explorers need not do again for each of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from tui_transformer.explorer.guard.event_queue import Collecting

PARSED: dict[Any, list[RuleSet]] = {}
parse_rules = Stylesheet._parse_rules


def parsed_once(sheet: Stylesheet, css: str, *more: Any, **named: Any) -> list[RuleSet]:
    """The rules of a style sheet, parsed when it is first read: every explorer and every dialog reads it again."""
    key = css, more, frozenset(named.items()), frozenset(sheet._variables.items())
    if key not in PARSED:
        PARSED[key] = parse_rules(sheet, css, *more, **named)
    return PARSED[key]


class NeverCollecting(Collecting):
    """Collections of garbage that are left to the process: an explorer's took a third of the time."""

    def begin(self) -> None: ...


@contextmanager
def cheaper() -> Iterator[None]:
    """Parse style sheets once, and leave garbage alone.

    What a program keeps out of collections for as long as it runs would stay here for all explorers.
    """
    with (
        mock.patch.object(gc, "freeze"),
        mock.patch("tui_transformer.explorer.guard.app.Collecting", NeverCollecting),
        mock.patch.object(Stylesheet, "_parse_rules", parsed_once),
    ):
        yield
