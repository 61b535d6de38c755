"""A thread that waits for the screen ends with it."""

from __future__ import annotations

import threading

import pytest
from driving import exploring


async def test_what_a_thread_asks_of_the_screen_is_done_and_answered() -> None:
    answers: list[object] = []
    async with exploring() as explorer:

        def ask() -> None:
            answers.append(explorer.app.call_from_thread(lambda: explorer.app.screen is explorer.main))
            with pytest.raises(ZeroDivisionError):
                explorer.app.call_from_thread(lambda: 1 // 0)

        thread = threading.Thread(target=ask)
        thread.start()
        await explorer.until(lambda: not thread.is_alive())
    assert answers == [True]


async def test_a_thread_that_asks_as_the_app_ends_does_not_wait_for_good() -> None:
    async with exploring() as explorer:
        app = explorer.app
    thread = threading.Thread(target=app.call_from_thread, args=(lambda: None,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
