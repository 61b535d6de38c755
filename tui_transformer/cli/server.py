"""textual-serve with bounds: who comes in, how many sessions there are, when they end, how large a screen may be."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import re
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp_jinja2
import jinja2
from aiohttp import WSMsgType, web
from textual_serve.server import Server, to_int

from tui_transformer.cli.visit import Looker, Visit, minutes
from tui_transformer.machine import ENDING

SMALLEST, LARGEST = (20, 6), (400, 150)
"""Columns and lines of a screen."""

LONGEST = 1 << 16
"""Bytes of a message of a visitor."""

HEARTBEAT = 15.0
"""Seconds after which a page that does not answer is taken for lost."""

NO_MESSAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What comes of reading something that is no message: it is passed over."""

TITLE = "tui-transformer"
PAGE = Path(__file__).parent / "served"
_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class BoundedServer(Server):
    """Serves the explorer to so many visitors at a time.

    Attributes:
        free: Sessions that can still begin.
        ended_by: The signal that ended it, but for ctrl+c.
    """

    ended_by: int | None = None

    def __init__(
        self,
        command: str,
        host: str,
        port: int,
        url: str,
        visitors: int,
        *,
        token: str | None = None,
        looks_on: str | None = None,
        files: Path | None = None,
        idle: float = 0.0,
    ) -> None:
        """Nobody is served yet.

        Args:
            command: Runs a session; a shell reads it, so every argument in it is quoted.
            host: The address that is listened at.
            port: Its port.
            url: How visitors see the address.
            visitors: Sessions at a time.
            token: The secret of the address; None where everybody may come in.
            looks_on: That of a second address, whose visitors see the one session of the first; None for sessions of
                their own.
            files: The folder below which visitors open and write.
            idle: Seconds without a key after which a session ends; 0 for never.
        """
        super().__init__(command, host=host, port=port, title=TITLE, public_url=url, templates_path=PAGE)
        self.free = visitors if looks_on is None else 1
        self._idle, self._visitors, self._files = idle, visitors, files
        self._admission = Admission(token, host, port, url, looks_on)
        self._entry = f"{url}/?{TOKEN}={token}" if token else f"{url}/"
        self._second = f"{url}/?{TOKEN}={looks_on}" if looks_on else ""
        self._visits: dict[str, Visit] = {}
        self._lookers: set[Looker] = set()

    def initialize_logging(self) -> None:
        logging.basicConfig(level=logging.ERROR, format="tui-transformer: %(message)s")

    async def _make_app(self) -> web.Application:
        """The routes, behind the admission; no folder is listed."""
        app = web.Application(middlewares=[self._admitted])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(PAGE), autoescape=True)
        app.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/ws", self.handle_websocket),
                web.get("/look", self.handle_look),
                web.get("/free", self.handle_free),
                web.get("/favicon.ico", self.handle_icon),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
                web.static("/page", PAGE),
            ]
        )
        app.on_response_prepare.append(_guard)
        app.on_startup.append(self.on_startup)
        app.on_shutdown.append(self.on_shutdown)
        return app

    @web.middleware
    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._admission.check(request)
        return await handler(request)

    def serve(self, debug: bool = False) -> None:  # noqa: FBT001, FBT002 - as the library calls it
        """Serve until a signal ends it; what the address is, is said once it answers."""
        self.debug = debug
        self.initialize_logging()
        web.run_app(self._make_app(), host=self.host, port=self.port, handle_signals=False, print=self._say)

    def _say(self, _: str) -> None:
        shows = "leads" if self._second else "shows the explorer; ctrl+c ends it"
        print(f"{self._entry} {shows}", flush=True)  # noqa: T201 - the answer of the command
        if self._second:
            print(f"{self._second} looks on; ctrl+c ends it", flush=True)  # noqa: T201 - the same

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002 - as the library calls it
        with contextlib.suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.request_exit)
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as behind nohup
                with contextlib.suppress(NotImplementedError):  # on Windows
                    asyncio.get_running_loop().add_signal_handler(number, self._end, number)

    def _end(self, number: int) -> None:
        self.ended_by = number
        self.request_exit()

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - as the library calls it
        # pages try to come back, in case the server does
        await asyncio.gather(*(visit.end(1012, "the server ends") for visit in [*self._visits.values()]))
        await asyncio.gather(*(looker.close(1012, "the server ends") for looker in [*self._lookers]))

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page; its links are without a host, so that it can be called by any name."""
        size = max(6, min(to_int(request.query.get("fontsize", "16"), 16), 64))
        scheme = "wss" if self.public_url.startswith("https") else "ws"
        path = self.public_url.split("//", 1)[1].partition("/")[2]
        root = f"/{path}/" if path else "/"
        looks_on = not self._admission.leads(request)
        columns, lines = self._led.size if looks_on and self._led is not None else (0, 0)
        context = {
            "title": TITLE,
            "root": root,
            "size": size,
            "socket": f"{scheme}://{request.host}{root}{'look' if looks_on else 'ws'}",
            "idle": minutes(self._idle) if self._idle and not looks_on else "",
            "looks_on": looks_on,
            "columns": columns,
            "lines": lines,
        }
        response = aiohttp_jinja2.render_template("index.html", request, context)
        self._admission.remember(request, response)
        return response

    async def handle_free(self, request: web.Request) -> web.Response:  # noqa: ARG002 - as the library calls it
        """Whether a session can begin, for a page that could not open one."""
        return web.json_response({"free": self.free + len(self._forsaken()), "of": self._visitors})

    async def handle_icon(self, request: web.Request) -> web.Response:  # noqa: ARG002 - as the library calls it
        return web.Response(status=204)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A session of its own for every visitor, as far as there is room; a page that was away has its own again."""
        self._admission.check_page(request)
        if not self._admission.leads(request):
            raise web.HTTPForbidden(text=LOOKS_ON)
        key = request.query.get("session", "")
        key = key if _KEY.fullmatch(key) else ""
        visit = self._visits.get(key)
        is_new = visit is None
        if visit is None:
            visit = await self._new_visit(key)
        page = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=LONGEST)
        shown = Looker(page, request.transport)
        try:
            await page.prepare(request)
            if key:
                await page.send_json(["session", "new" if is_new else "resumed"])
            await visit.show(shown, _size(request.query.get("width"), request.query.get("height")))
            async for message in page:
                if message.type == WSMsgType.TEXT:
                    with contextlib.suppress(*NO_MESSAGE):
                        await self._take(message.json(), page, visit)
        except asyncio.CancelledError:
            await page.close()
        finally:
            await visit.lose(shown)
        return page

    @property
    def _led(self) -> Visit | None:
        """The session that others look on."""
        return next(iter(self._visits.values()), None)

    async def handle_look(self, request: web.Request) -> web.WebSocketResponse:
        """The session of whoever leads, as long as the page looks on: what it sends is passed over."""
        self._admission.check_page(request)
        if not self._second:
            raise web.HTTPNotFound
        if len(self._lookers) >= self._visitors:
            raise web.HTTPServiceUnavailable(text="as many look on as may: try again later")
        page = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=LONGEST)
        looker = Looker(page, request.transport)
        self._lookers.add(looker)
        try:
            await page.prepare(request)
            if self._led is not None:
                await self._led.look(looker)
            async for message in page:
                with contextlib.suppress(*NO_MESSAGE):
                    kind, *given = message.json() if message.type == WSMsgType.TEXT else [""]
                    if kind == "ping":
                        await page.send_json(["pong", str(given[0])[:100]])
        finally:
            self._lookers.discard(looker)
        return page

    async def _new_visit(self, key: str) -> Visit:
        """A session that nobody sees yet, in place of one whose page is lost where there is no other room."""
        for forsaken in self._forsaken()[: self.free < 1]:
            await forsaken.end()
        if self.free < 1:
            raise web.HTTPServiceUnavailable(text="all sessions are taken: try again later")
        self.free -= 1
        key = key or secrets.token_urlsafe()

        def ended() -> None:
            self.free += 1
            del self._visits[key]

        visit = Visit(self.command, self.download_manager, self._files, self._idle, ended, self._lookers)
        self._visits[key] = visit
        return visit

    def _forsaken(self) -> list[Visit]:
        return sorted((visit for visit in self._visits.values() if visit.lost), key=lambda visit: visit.lost)

    async def _take(self, envelope: Any, page: web.WebSocketResponse, visit: Visit) -> None:
        """Hand on what a visitor types; no size is too large."""
        kind, *given = envelope
        if kind == "stdin":
            data = given[0].encode("utf-8")
            visit.typed()
            await visit.process.send_bytes(data)
        elif kind == "resize":
            await visit.resize(*_size(given[0]["width"], given[0]["height"]))
        elif kind == "ping":
            await page.send_json(["pong", str(given[0])[:100]])
        elif kind in ("blur", "focus"):
            await (visit.process.blur() if kind == "blur" else visit.process.focus())


async def _guard(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _size(width: Any, height: Any) -> tuple[int, int]:
    """Columns and lines within bounds; 80 × 24 where they are no numbers."""
    wanted = (to_int(str(width), 80), to_int(str(height), 24))
    columns, lines = (max(low, min(each, high)) for low, each, high in zip(SMALLEST, wanted, LARGEST, strict=True))
    return columns, lines


# Who comes in

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "token"  # noqa: S105 - the name of what the address has
WITHOUT_TOKEN = "this address needs its token: open the one that the server printed at its start"  # noqa: S105
LOOKS_ON = "this address looks on: the session is led from the first that the server printed"
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


class Admission:
    """Looks at every request before it is answered."""

    def __init__(self, token: str | None, host: str, port: int, url: str, looks_on: str | None = None) -> None:
        """Admit whoever has the token, or the one of those who look on; everybody where there is none."""
        self._seen = urlsplit(url)
        self._tokens = {f"tui-transformer-{port}": token, f"tui-transformer-{port}-looks-on": looks_on}
        self._loopback = host in LOOPBACK
        named = {host, self._seen.hostname or "", *LOOPBACK}
        self._names = named if self._loopback else {*named, socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, request: web.Request) -> None:
        """Refuse who came by another name, or has no token."""
        if not self._is_called(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text=OTHER_NAME)
        tokens = [(name, token) for name, token in self._tokens.items() if token is not None]
        if tokens and not any(
            _is_right(given, token)
            for name, token in tokens
            for given in (request.query.get(TOKEN), request.cookies.get(name))
        ):
            raise web.HTTPForbidden(text=WITHOUT_TOKEN)

    def check_page(self, request: web.Request) -> None:
        """Refuse a connection from another page, which could steer the explorer unseen."""
        origin = request.headers.get("Origin")
        own = (request.headers.get("Host", "").lower(), self._seen.netloc.lower())
        if origin is not None and origin.lower().partition("://")[2] not in own:
            raise web.HTTPForbidden(text=OTHER_PAGE)

    def remember(self, request: web.Request, response: web.Response) -> None:
        """Have the browser bring the token from now on, with requests of the page itself alone."""
        for name, token in self._tokens.items():
            if token is not None and _is_right(request.query.get(TOKEN), token):
                secure = self._seen.scheme == "https"
                path = f"{self._seen.path}/"
                response.set_cookie(name, token, path=path, httponly=True, samesite="Strict", secure=secure)

    def leads(self, request: web.Request) -> bool:
        """Whether a request is that of somebody who has a session: what the address says goes before a cookie."""
        (first, token), (_, looks_on) = self._tokens.items()
        if token is None or _is_right(request.query.get(TOKEN), token):
            return True
        if looks_on is not None and _is_right(request.query.get(TOKEN), looks_on):
            return False
        return _is_right(request.cookies.get(first), token)

    def _is_called(self, host: str) -> bool:
        """Whether a request names this server: a page elsewhere can give its own name the address of this computer."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            return name in self._names or (not self._loopback and bool(ipaddress.ip_address(name)))
        except ValueError:  # no name, or one that is no address
            return False


def _is_right(given: str | None, token: str) -> bool:
    """Whether a token is the right one; it takes as long for any that is wrong."""
    return given is not None and hmac.compare_digest(given.encode(errors="replace"), token.encode())
