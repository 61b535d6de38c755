"""A visitor's session: its process, the page that shows it, and when it ends.

Private names of textual-serve are used here and in `server.py` alone, `_make_app`, `_build_environment`, `_process`,
`_task` and the download manager's `_active_downloads`: 1.1.3 gives no other way to choose its routes and the
environment of a session, and does not wait for its processes nor forget downloads that nobody fetched.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from tui_transformer import gate

GRACE = 60.0
"""Seconds for which a session waits for a page whose connection was lost."""

WARNING = 60.0
"""Seconds before the end of an idle session at which it is said; a quarter of its time where that is less."""

PATIENCE = 10.0
"""Seconds that a session has to end in."""

ENDED, IDLE, ELSEWHERE = 1000, 4001, 4002
"""Codes with which a connection is closed: the visitor left, was idle, or another page shows the session."""

CLEARED = b"\x1b[0m\x1b[2J\x1b[Hthe session has ended: when another begins, it is shown here"

BEHIND = 1 << 20
"""Bytes that wait for a page, at most: one that takes less is let go, and comes back by itself."""

HEARS = 2.0
"""Seconds that a page has to hear that it is closed."""

LEFT = (0, 1000, 1001, 1005)
"""Codes of a page that was closed or left, which does not come back."""


class Looker:
    """A page that shows a session; what it is sent waits for it here, so that a slow one holds up nothing else."""

    def __init__(self, page: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.page, self._transport = page, transport
        self._waiting, self._behind = deque[bytes | str](), 0
        self._sending: asyncio.Task[None] | None = None

    def send(self, message: bytes | str) -> None:
        """Send it after what was sent before."""
        self._waiting.append(message)
        self._behind += len(message)
        if self._behind > BEHIND:
            self.let_go()
        elif self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            message = self._waiting.popleft()
            with contextlib.suppress(ConnectionError, RuntimeError):  # of a page that is gone
                await (self.page.send_bytes(message) if isinstance(message, bytes) else self.page.send_str(message))
            self._behind -= len(message)
        self._sending = None

    def let_go(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def close(self, code: int, reason: str) -> None:
        """Close it as pages are, and cut what does not hear of it."""
        with contextlib.suppress(ConnectionError, RuntimeError, asyncio.TimeoutError):
            await asyncio.wait_for(self.page.close(code=code, message=reason.encode()), HEARS)
            return
        self.let_go()


class Visit:
    """One session.

    Attributes:
        page: The connection of the page that shows it; None while that is lost.
        own: Its temporary folder, which is removed at its end.
        process: What runs the explorer.
    """

    def __init__(
        self,
        command: str,
        downloads: DownloadManager,
        files: Path | None,
        idle: float,
        ended: Callable[[], None],
        lookers: Collection[Looker] = (),
    ) -> None:
        """A session that does not run yet.

        `downloads` takes the files that it hands over, `ended` is called at its end, `lookers` are the pages that look
        on, as they are at any moment. What else it is given `BoundedServer` is given.
        """
        self.size = 0, 0
        self._lookers = lookers
        self.page: Looker | None = None
        self.own = Path(tempfile.mkdtemp(prefix="tui-transformer-visit-"))
        self.process = Process(command, self, downloads, files)
        self._idle, self._last, self._lost = idle, time.monotonic(), time.monotonic()
        self._ended, self._warned = ended, False
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def lost(self) -> float:
        """Since when no page shows it; 0 where one does."""
        return 0.0 if self.page is not None else self._lost

    async def show(self, page: Looker, size: tuple[int, int]) -> None:
        """Show the session on a page, in place of the one before; it begins with the first."""
        before, self.page = self.page, page
        await self._sized(size)
        if before is not None:
            await before.close(ELSEWHERE, "another page shows this session")
        if self._watch is None:
            await self.process.start(*size)
            self._watch = asyncio.create_task(self._watched())
        else:
            await self.process.set_terminal_size(*size)
            await self.process.send_meta({"type": gate.REDRAW})

    async def lose(self, page: Looker) -> None:
        """A page is gone: wait for it to come back, unless it was left on purpose or never there."""
        if self.page is page:
            self.page, self._lost = None, time.monotonic()
        if self._watch is None or (self.page is None and page.page.close_code in LEFT):
            await self.end()

    async def resize(self, columns: int, lines: int) -> None:
        """Draw for another size of the page."""
        await self._sized((columns, lines))
        await self.process.set_terminal_size(columns, lines)

    async def _sized(self, size: tuple[int, int]) -> None:
        if self.size != size:
            self.size = size
            for looker in self._lookers:
                looker.send(json.dumps(["look", *self.size]))

    async def look(self, looker: Looker) -> None:
        """Show the session on a page that looks on, from its next screen on, which is drawn at once."""
        looker.send(json.dumps(["look", *self.size]))
        if self._watch is not None:
            await self.process.send_meta({"type": gate.REDRAW})

    def typed(self) -> None:
        """A key came: the session is not idle."""
        self._last, self._warned = time.monotonic(), False

    async def write(self, data: bytes) -> None:
        """Bytes for the terminal of the page; while there is none they are lost, and drawn again later."""
        for page in (self.page, *self._lookers):
            if page is not None:
                page.send(data)

    async def tell(self, text: str) -> None:
        """A message for the page."""
        if self.page is not None:
            self.page.send(text)

    async def end(self, code: int = ENDED, reason: str = "") -> None:
        """End the session, its process and its folder, whatever becomes of who asks for it."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(code, reason))
        await asyncio.shield(self._ending)

    async def _end(self, code: int, reason: str) -> None:
        if self._watch is not None:
            self._watch.cancel()
        page, self.page = self.page, None
        if page is not None:
            await page.close(code, reason)
        await self.process.end()
        for looker in self._lookers:
            looker.send(CLEARED)
        await asyncio.to_thread(shutil.rmtree, self.own, ignore_errors=True)
        self._ended()

    async def _watched(self) -> None:
        """End when the process has, when nobody comes back, or when nothing is typed for too long."""
        running = asyncio.ensure_future(self.process.ended())
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=self._next())
                if self._idle and time.monotonic() - self._last >= self._idle:
                    await self.end(IDLE, f"{minutes(self._idle)} without a key")
                    return
                if self.page is None and time.monotonic() - self._lost >= GRACE:
                    break
                left = self._last + self._idle - time.monotonic()
                if self._idle and not self._warned and left <= self._warning:
                    self._warned = True
                    text = f"this session ends in {minutes(max(left, 1))} unless a key is pressed"
                    await self.process.send_meta({"type": gate.SAY, "text": text})
            await self.end()
        finally:
            running.cancel()

    def _next(self) -> float:
        now = time.monotonic()
        due = [GRACE if self.page is not None else self._lost + GRACE - now]
        if self._idle:
            left = self._last + self._idle - now
            due.append(left if self._warned else left - self._warning)
        return max(min(due), 0.05)

    @property
    def _warning(self) -> float:
        return min(WARNING, self._idle / 4)


def environment(own: Path, files: Path | None) -> dict[str, str]:
    """What a session is told: the driver that draws for a browser, and what its visitor may open."""
    driver = "tui_transformer.explorer.guard.web_driver:VisitorDriver"
    return {"TEXTUAL_DRIVER": driver, gate.VARIABLE: gate.described(files, own)}


def minutes(seconds: float) -> str:
    """A time as it is said: `30 minutes`, `45 seconds`."""
    count, unit = (round(seconds / 60), "minute") if seconds >= 60 else (round(seconds), "second")
    return f"{count} {unit}{'s' * (count != 1)}"


class Process(AppService):
    """The process of a session."""

    def __init__(self, command: str, visit: Visit, downloads: DownloadManager, files: Path | None) -> None:
        async def close() -> None:
            """The process ends, which is seen."""

        super().__init__(
            command, write_bytes=visit.write, write_str=visit.tell, close=close, download_manager=downloads
        )
        self._downloads, self._given = downloads, environment(visit.own, files)

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        return super()._build_environment(width, height) | self._given

    async def ended(self) -> None:
        """Wait until it has ended by itself."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def end(self) -> None:
        """End it, wait for it and close its pipes; where that takes too long it is killed.

        The library leaves this to the collection of garbage, and asks the process only.
        """
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ConnectionError):
            await self.send_meta({"type": gate.QUIT})
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]
        waiting = self._downloads._active_downloads
        for key in [key for key, each in waiting.items() if each.app_service is self]:
            await waiting.pop(key).incoming_chunks.put(None)
