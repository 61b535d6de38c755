"""A visitor's session: its process, the page that shows it, and when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web

from tui_transformer import gate
from tui_transformer.explorer.guard.driver import REDRAW, SAY

GRACE = 60.0
"""Seconds for which a session waits for a page whose connection was lost."""

WARNING = 60.0
"""Seconds before the end of an idle session at which it is said; a quarter of its time where that is less."""

ENDED, IDLE, ELSEWHERE = 1000, 4001, 4002
"""Codes with which a connection is closed: the visitor left, was idle, or another page shows the session."""

LEFT = (0, 1000, 1001, 1005)
"""Codes of a page that was closed or left, which does not come back."""


class Process(Protocol):
    """What runs the explorer of a session."""

    async def start(self, width: int, height: int) -> None:
        """Begin, on a screen of so many columns and lines."""

    async def set_terminal_size(self, width: int, height: int) -> None:
        """The screen has another size."""

    async def send_bytes(self, data: bytes) -> bool:
        """What was typed."""

    async def send_meta(self, data: dict[str, str | int | bool | None]) -> bool:
        """A packet for its driver."""

    async def blur(self) -> None:
        """The page has no longer the keys."""

    async def focus(self) -> None:
        """The page has the keys."""

    async def ended(self) -> None:
        """Wait until it has ended by itself."""

    async def end(self) -> None:
        """End it."""


class Visit:
    """One session.

    Attributes:
        page: The connection of the page that shows it; None while that is lost.
        own: Its temporary folder.
    """

    def __init__(self, process: Callable[[Visit], Process], idle: float, own: Path, ended: Callable[[], None]) -> None:
        """A session that does not run yet.

        Args:
            process: Makes its process.
            idle: Seconds without a key after which it ends; 0 for never.
            own: Its temporary folder, which is removed at its end.
            ended: Called at its end.
        """
        self.page: web.WebSocketResponse | None = None
        self.own = own
        self._process = process(self)
        self._idle, self._last, self._lost = idle, time.monotonic(), time.monotonic()
        self._ended, self._warned = ended, False
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def process(self) -> Process:
        """What runs the explorer."""
        return self._process

    @property
    def lost(self) -> float:
        """Since when no page shows it; 0 where one does."""
        return 0.0 if self.page is not None else self._lost

    async def show(self, page: web.WebSocketResponse, size: tuple[int, int]) -> None:
        """Show the session on a page, in place of the one before; it begins with the first."""
        before, self.page = self.page, page
        if before is not None:
            await _closed(before, ELSEWHERE, "another page shows this session")
        if self._watch is None:
            await self._process.start(*size)
            self._watch = asyncio.create_task(self._watched())
        else:
            await self._process.set_terminal_size(*size)
            await self._process.send_meta({"type": REDRAW})

    async def lose(self, page: web.WebSocketResponse) -> None:
        """A page is gone: wait for it to come back, unless it was left on purpose or never there."""
        if self.page is page:
            self.page, self._lost = None, time.monotonic()
        if self._watch is None or (self.page is None and page.close_code in LEFT):
            await self.end()

    def typed(self) -> None:
        """A key came: the session is not idle."""
        self._last, self._warned = time.monotonic(), False

    async def write(self, data: bytes) -> None:
        """Bytes for the terminal of the page; while there is none they are lost, and drawn again later."""
        if self.page is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self.page.send_bytes(data)

    async def tell(self, text: str) -> None:
        """A message for the page."""
        if self.page is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self.page.send_str(text)

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
            await _closed(page, code, reason)
        await self._process.end()
        await asyncio.to_thread(shutil.rmtree, self.own, ignore_errors=True)
        self._ended()

    async def _watched(self) -> None:
        """End when the process has, when nobody comes back, or when nothing is typed for too long."""
        running = asyncio.ensure_future(self._process.ended())
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=self._next())
                if self._idle and time.monotonic() - self._last >= self._idle:
                    await self.end(IDLE, f"{minutes(self._idle)} without a key")
                    return
                if self.page is None and time.monotonic() - self._lost >= GRACE:
                    break
                await self._warn()
            await self.end()
        finally:
            running.cancel()

    def _next(self) -> float:
        """Seconds until something may be due."""
        now = time.monotonic()
        due = [GRACE if self.page is not None else self._lost + GRACE - now]
        if self._idle:
            left = self._last + self._idle - now
            due.append(left if self._warned else left - self._warning)
        return max(min(due), 0.05)

    async def _warn(self) -> None:
        """Say that the session is about to end."""
        left = self._last + self._idle - time.monotonic()
        if self._idle and not self._warned and left <= self._warning:
            self._warned = True
            text = f"this session ends in {minutes(max(left, 1))} unless a key is pressed"
            await self._process.send_meta({"type": SAY, "text": text})

    @property
    def _warning(self) -> float:
        return min(WARNING, self._idle / 4)


def own_folder() -> Path:
    """A temporary folder of a session."""
    return Path(tempfile.mkdtemp(prefix="tui-transformer-visit-"))


def environment(own: Path, files: Path | None) -> dict[str, str]:
    """What a session is told: the driver that draws for a browser, and what its visitor may open."""
    driver = "tui_transformer.explorer.guard.driver:VisitorDriver"
    return {"TEXTUAL_DRIVER": driver, gate.VARIABLE: gate.described(files, own)}


def minutes(seconds: float) -> str:
    """A time as it is said: `30 minutes`, `45 seconds`."""
    count, unit = (round(seconds / 60), "minute") if seconds >= 60 else (round(seconds), "second")
    return f"{count} {unit}{'s' * (count != 1)}"


async def _closed(page: web.WebSocketResponse, code: int, reason: str) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError, asyncio.TimeoutError):
        await asyncio.wait_for(page.close(code=code, message=reason.encode()), 5)


LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "token"  # noqa: S105 - the name of what the address has
WITHOUT_TOKEN = "this address needs its token: open the one that the server printed at its start"  # noqa: S105
OTHER_NAME = "the server is not called by this name: whoever serves gives it with --url"
OTHER_PAGE = "this page may not open a session here"

HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'self'",
            "img-src 'self' data:",
            "style-src 'self' 'unsafe-inline'",  # the terminal of the page writes its own
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Of every answer: the page loads nothing from elsewhere, is in no other page, and its address is told to nobody."""


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(32)


class Admission:
    """Looks at every request before it is answered."""

    def __init__(self, token: str | None, host: str, port: int, url: str) -> None:
        """Admit whoever has a token; everybody where it is None.

        Args:
            token: The secret of the address.
            host: The address that is listened at.
            port: Its port.
            url: How visitors see the address.
        """
        self._token, self._seen = token, urlsplit(url)
        self._cookie = f"tui-transformer-{port}"
        self._loopback = host in LOOPBACK
        named = {host, self._seen.hostname or "", *LOOPBACK}
        self._names = named if self._loopback else {*named, socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, request: web.Request) -> None:
        """Refuse who came by another name, or has no token.

        Raises:
            HTTPForbidden: The request is not answered.
        """
        if not self._is_called(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text=OTHER_NAME)
        if not self._has_token(request):
            raise web.HTTPForbidden(text=WITHOUT_TOKEN)

    def check_page(self, request: web.Request) -> None:
        """Refuse a connection from another page, which could steer the explorer unseen.

        Raises:
            HTTPForbidden: The request is not answered.
        """
        origin = request.headers.get("Origin")
        own = (request.headers.get("Host", "").lower(), self._seen.netloc.lower())
        if origin is not None and origin.lower().partition("://")[2] not in own:
            raise web.HTTPForbidden(text=OTHER_PAGE)

    def remember(self, request: web.Request, response: web.Response) -> None:
        """Have the browser bring the token from now on, with requests of the page itself alone."""
        if self._token is not None and self._is_right(request.query.get(TOKEN)):
            secure = self._seen.scheme == "https"
            path = f"{self._seen.path}/"
            response.set_cookie(self._cookie, self._token, path=path, httponly=True, samesite="Strict", secure=secure)

    def _has_token(self, request: web.Request) -> bool:
        given = (request.query.get(TOKEN), request.cookies.get(self._cookie))
        return self._token is None or any(map(self._is_right, given))

    def _is_right(self, given: str | None) -> bool:
        """Whether a token is the right one; it takes as long for any that is wrong."""
        return given is not None and hmac.compare_digest(given.encode(errors="replace"), (self._token or "").encode())

    def _is_called(self, host: str) -> bool:
        """Whether a request names this server: a page elsewhere can give its own name the address of this computer."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self._names or (not self._loopback and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
