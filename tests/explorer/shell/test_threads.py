"""A thread that waits for the screen ends with it."""

from __future__ import annotations

import threading

import pytest
from driving import exploring


async def test_what_a_thread_asks_of_the_screen_is_answered_and_it_ends_with_that() -> None:
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
    # one that asks as the app ends does not wait for good
    thread = threading.Thread(target=explorer.app.call_from_thread, args=(lambda: None,), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
