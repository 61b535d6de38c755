"""What is worked out for a tool of the main screen while keys go on there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tui_transformer.explorer.shell.base import Port
from tui_transformer.explorer.shell.worker import Task
from tui_transformer.session.store import AT_ONCE

Result = TypeVar("Result")


def ask_of_now(
    port: Port, kind: str, work: Callable[[Task], Result], done: Callable[[Result], None], cost: int = AT_ONCE + 1
) -> None:
    """Ask for what follows from what is explored now; where that is another once it is there, say so instead."""
    session = port.session

    def use(result: Result) -> None:
        if port.session is session:
            done(result)
        else:
            port.say("what is explored became another meanwhile, and stays: ask for it again here")

    port.ask(kind, work, use, cost)
