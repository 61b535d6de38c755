"""The terminal as Textual drives it, where anything at all may come from it, and left as it was found."""

from __future__ import annotations

import os
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from textual import events
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tui_transformer.explorer.guard.line import MeasuringDriver, Output
from tui_transformer.text.guarded import end_awaited, is_awaited

NO_ESCAPE = "[Ofb\t\x7f"
"""What makes one key or a sequence with an escape right before it; before all else that is a key of its own."""

PASTED = "\x1b[200~", "\x1b[201~"
"""What comes before and behind a text that is pasted."""

LARGEST = 10_000
"""Columns or lines that a terminal may say it has."""

HUNG_UP = 128 + signal.SIGHUP
"""The exit code where the terminal is gone."""

AT_ONCE = 256
OFTEN = ESCAPE_DELAY
"""Seconds after which it is looked whether reading is to end, and whether an escape was a key: as ESCDELAY says."""

MOST_WAITING = 200
"""Events that wait to be handled before no more are read: the terminal keeps what is typed further ahead."""

SOON = 0.005
"""Seconds after which it is looked whether fewer wait."""


@runtime_checkable
class Waits(Protocol):
    """An app that says how many events wait to be handled."""

    @property
    def waiting(self) -> int:
        """How many."""


class Parser(XTermParser):
    """Textual's parser, for which a sequence that means nothing is nothing, and an escape before a key is not lost."""

    _pastes, _before = False, ""

    def feed(self, data: str) -> Iterable[Message]:
        """Parse what was read; in what is pasted, an escape is a character as any other, and nothing is a key."""
        mark, text = PASTED[self._pastes], self._before + data
        part, found, rest = text.partition(mark)
        if not self._pastes:
            part, self._before = data.removesuffix(rest) if found else data, text[1 - len(mark) :]
        else:
            at = part.rfind("\x1b") if not found else -1
            at = at if at >= 0 and mark.startswith(part[at:]) else len(part)  # the mark may come in parts
            part, self._before = part[:at].replace("\x1b", "␛") + found, part[at:]
        if part:
            yield from super().feed(part)
        if found:
            self._pastes, self._before = not self._pastes, ""
            yield from self.feed(rest) if rest else ()

    def parse_mouse_code(self, code: str) -> Message | None:
        """A mouse event; None for numbers that no terminal sends."""
        with suppress(ArithmeticError, ValueError):
            return super().parse_mouse_code(code)
        return None

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:  # noqa: FBT001, FBT002 - Textual's signature
        if alt or (len(sequence) == len("\x1b?") and sequence[-1] not in NO_ESCAPE):
            return [events.Key("escape", "\x1b"), *self._sequence_to_key_events(sequence[-1])]
        with suppress(ArithmeticError, ValueError):
            return list(super()._sequence_to_key_events(sequence))
        return []


class TerminalDriver(MeasuringDriver, LinuxDriver):
    """A driver whose reading goes on whatever is read, and which turns off every way in which the mouse reports."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._file: Any = Output(self._file)
        self._sent = Future[bool]()
        self._sent.set_result(True)

    def _sigcont_application(self, *arguments: Any) -> None:
        """Go on after a stop; one that could not be seen coming is made good first, else all would be there twice."""
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application(*arguments)

    def _run_input_thread(self) -> None:
        """Read; a mistake ends the program as any other does, and so does a terminal that is gone."""
        try:
            self.run_input_thread()
        except OSError:
            self._app.call_later(self._app.exit, None, HUNG_UP)
        except Exception as error:  # noqa: BLE001 - it would end unseen in this thread
            self._app.call_later(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        parser, decode = Parser(self._debug), getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(OFTEN):
                    data = os.read(self.fileno, AT_ONCE)
                    if not data:
                        return
                    if text := decode(data):  # a character may come in parts; "" would be the end of everything
                        self._hand_on(parser.feed(text))
                self._hand_on(parser.tick())
                # as long as very many events wait; where the screen itself waits, escape may be among those to come
                while self._too_many and not is_awaited() and not self.exit_event.wait(SOON):
                    pass

    def send_message(self, message: Message) -> None:
        self._sent = sent = Future[bool]()
        self._loop.call_soon_threadsafe(lambda: sent.set_result(self._app.post_message(message)))

    @property
    def _too_many(self) -> bool:
        return not self._sent.done() or (isinstance(self._app, Waits) and self._app.waiting > MOST_WAITING)

    def _hand_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, events.Key) and message.key == "escape":
                end_awaited()
            if not isinstance(message, events.Resize) or _can_be(message):
                self.process_message(message)

    def _disable_mouse_support(self) -> None:
        super()._disable_mouse_support()
        if self._mouse:
            self.write("\x1b[?1016l")
            self.flush()


def _can_be(resize: events.Resize) -> bool:
    return 0 < resize.size.width <= LARGEST and 0 < resize.size.height <= LARGEST


def driver_for(driver: type[Any]) -> type[Any]:
    """Our driver in place of Textual's own for a terminal; any other as it is."""
    return TerminalDriver if driver is LinuxDriver else driver
