"""textual-serve with bounds: who comes in, how many sessions there are, when they end, how large a screen may be.

Private names of textual-serve are used here alone, `_make_app`, `_build_environment`, `_process`, `_task` and the
download manager's `_active_downloads`: 1.1.3 gives no other way to choose its routes and the environment of a session,
and does not wait for its processes nor forget downloads that nobody fetched.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp_jinja2
import jinja2
from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from tui_transformer.cli.visit import HEADERS, TOKEN, Admission, Visit, environment, minutes, own_folder

SMALLEST, LARGEST = (20, 6), (400, 150)
"""Columns and lines of a screen."""

LONGEST = 1 << 16
"""Bytes of a message of a visitor."""

PATIENCE = 10.0
"""Seconds that a session has to end in."""

HEARTBEAT = 15.0
"""Seconds after which a page that does not answer is taken for lost."""

TITLE = "tui-transformer"
PAGE = Path(__file__).parent / "served"
_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Process(AppService):
    """The process of a session."""

    def __init__(self, command: str, server: BoundedServer, visit: Visit) -> None:
        """The process of a visit; it does not run yet."""
        super().__init__(
            command,
            write_bytes=visit.write,
            write_str=visit.tell,
            close=_soon,
            download_manager=server.download_manager,
        )
        self._downloads = server.download_manager
        self._given = environment(visit.own, server.files)

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
            await self.send_meta({"type": "quit"})
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


async def _soon() -> None:
    """The process ends, which is seen."""


class BoundedServer(Server):
    """Serves the explorer to so many visitors at a time.

    Attributes:
        free: Sessions that can still begin.
        files: The folder below which visitors open and write; None where they do neither.
    """

    def __init__(
        self,
        command: str,
        host: str,
        port: int,
        url: str,
        visitors: int,
        *,
        token: str | None = None,
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
            files: The folder below which visitors open and write.
            idle: Seconds without a key after which a session ends; 0 for never.
        """
        super().__init__(command, host=host, port=port, title=TITLE, public_url=url, templates_path=PAGE)
        self.free, self.files = visitors, files
        self._idle, self._visitors = idle, visitors
        self._admission = Admission(token, host, port, url)
        self._entry = f"{url}/?{TOKEN}={token}" if token else f"{url}/"
        self._visits: dict[str, Visit] = {}

    def initialize_logging(self) -> None:
        """Mistakes alone are said, and no local variables."""
        logging.basicConfig(level=logging.ERROR, format="tui-transformer: %(message)s")

    async def _make_app(self) -> web.Application:
        """The routes, behind the admission; no folder is listed."""
        app = web.Application(middlewares=[self._admitted])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(PAGE), autoescape=True)
        app.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/ws", self.handle_websocket),
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

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002 - as the library calls it
        """Say where to look."""
        print(f"{self._entry} shows the explorer; ctrl+c ends it", flush=True)  # noqa: T201 - the answer of the command

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - as the library calls it
        """End every session; pages try to come back, in case the server does."""
        await asyncio.gather(*(visit.end(1012, "the server ends") for visit in [*self._visits.values()]))

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page; its links are without a host, so that it can be called by any name."""
        size = max(6, min(to_int(request.query.get("fontsize", "16"), 16), 64))
        scheme = "wss" if self.public_url.startswith("https") else "ws"
        path = self.public_url.split("//", 1)[1].partition("/")[2]
        root = f"/{path}/" if path else "/"
        context = {
            "title": TITLE,
            "root": root,
            "size": size,
            "socket": f"{scheme}://{request.host}{root}ws",
            "idle": minutes(self._idle) if self._idle else "",
        }
        response = aiohttp_jinja2.render_template("index.html", request, context)
        self._admission.remember(request, response)
        return response

    async def handle_free(self, request: web.Request) -> web.Response:  # noqa: ARG002 - as the library calls it
        """Whether a session can begin, for a page that could not open one."""
        return web.json_response({"free": self.free + len(self._forsaken()), "of": self._visitors})

    async def handle_icon(self, request: web.Request) -> web.Response:  # noqa: ARG002 - as the library calls it
        """There is no icon, and that is no mistake."""
        return web.Response(status=204)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A session of its own for every visitor, as far as there is room; a page that was away has its own again."""
        self._admission.check_page(request)
        key = request.query.get("session", "")
        key = key if _KEY.fullmatch(key) else ""
        visit = self._visits.get(key)
        is_new = visit is None
        if visit is None:
            visit = await self._new_visit(key)
        page = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=LONGEST)
        try:
            await page.prepare(request)
            if key:
                await page.send_json(["session", "new" if is_new else "resumed"])
            await visit.show(page, _size(request.query.get("width"), request.query.get("height")))
            await self._process_messages(page, visit)
        except asyncio.CancelledError:
            await page.close()
        finally:
            await visit.lose(page)
        return page

    async def _new_visit(self, key: str) -> Visit:
        """A session that nobody sees yet, in place of one whose page is lost where there is no other room.

        Raises:
            HTTPServiceUnavailable: There is none at all.
        """
        for forsaken in self._forsaken()[: self.free < 1]:
            await forsaken.end()
        if self.free < 1:
            raise web.HTTPServiceUnavailable(text="all sessions are taken: try again later")
        self.free -= 1
        own = own_folder()
        key = key or own.name

        def ended() -> None:
            self.free += 1
            del self._visits[key]

        self._visits[key] = Visit(lambda visit: Process(self.command, self, visit), self._idle, own, ended)
        return self._visits[key]

    def _forsaken(self) -> list[Visit]:
        return sorted((visit for visit in self._visits.values() if visit.lost), key=lambda visit: visit.lost)

    async def _process_messages(self, page: web.WebSocketResponse, visit: Visit) -> None:  # type: ignore[override]
        """Hand on what a visitor types; what is no message is left out, and no size is too large."""
        async for message in page:
            if message.type == WSMsgType.TEXT:
                with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
                    await self._take(message.json(), page, visit)

    async def _take(self, envelope: Any, page: web.WebSocketResponse, visit: Visit) -> None:
        kind, *given = envelope
        if kind == "stdin":
            data = given[0].encode("utf-8")
            visit.typed()
            await visit.process.send_bytes(data)
        elif kind == "resize":
            await visit.process.set_terminal_size(*_size(given[0]["width"], given[0]["height"]))
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
