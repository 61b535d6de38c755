"""textual-serve with bounds: how many sessions there are, how large a screen may be, and who may open one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

SMALLEST, LARGEST = (20, 6), (400, 150)
"""Columns and lines of a screen."""

LONGEST = 1 << 16
"""Bytes of a message of a visitor."""

PATIENCE = 10.0
"""Seconds that a session has to end in."""

TITLE = "tui-transformer"


class BoundedServer(Server):
    """Serves the explorer to so many visitors at a time."""

    def __init__(self, command: str, host: str, port: int, url: str, visitors: int) -> None:
        """Nobody is served yet.

        Args:
            command: Runs a session; a shell reads it, so every argument in it is quoted.
            host: The address that is listened at.
            port: Its port.
            url: How visitors see the address.
            visitors: Sessions at a time.
        """
        super().__init__(command, host=host, port=port, title=TITLE, public_url=url)
        self.free = visitors

    def initialize_logging(self) -> None:
        """Mistakes alone are said, and no local variables."""
        logging.basicConfig(level=logging.ERROR, format="tui-transformer: %(message)s")

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002 - as the library calls it
        """Say where to look."""
        self.console.print(f"{self.public_url} shows the explorer; ctrl+c ends it", highlight=False, markup=False)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A session of its own for every visitor, as far as there is room."""
        if not self._is_own(request.headers.get("Origin")):
            raise web.HTTPForbidden(text="this page may not open a session here")
        if self.free < 1:
            raise web.HTTPServiceUnavailable(text="all sessions are taken: try again later")
        self.free -= 1
        try:
            return await self._session(request)
        finally:
            self.free += 1

    def _is_own(self, origin: str | None) -> bool:
        """Whether a connection is from this server's own page: any other could steer the explorer unseen."""
        return origin is None or urlsplit(origin).netloc == urlsplit(self.public_url).netloc

    async def _session(self, request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=LONGEST)
        await websocket.prepare(request)
        service = AppService(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=lambda: _close(websocket),
            download_manager=self.download_manager,
            debug=False,
        )
        await service.start(*_size(request.query.get("width"), request.query.get("height")))
        try:
            await self._process_messages(websocket, service)
        except asyncio.CancelledError:
            await websocket.close()
        finally:
            with contextlib.suppress(ConnectionError):
                await service.stop()
            await _end(service)
        return websocket

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """Hand on what a visitor types; what is no message is left out, and no size is too large."""
        async for message in websocket:
            if message.type == WSMsgType.TEXT:
                with contextlib.suppress(ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
                    await self._take(message.json(), websocket, app_service)

    async def _take(self, envelope: Any, websocket: web.WebSocketResponse, service: AppService) -> None:
        kind, *given = envelope
        if kind == "stdin":
            await service.send_bytes(given[0].encode("utf-8"))
        elif kind == "resize":
            await service.set_terminal_size(*_size(given[0]["width"], given[0]["height"]))
        elif kind == "ping":
            await websocket.send_json(["pong", str(given[0])[:100]])
        elif kind in ("blur", "focus"):
            await (service.blur() if kind == "blur" else service.focus())


async def _end(service: AppService) -> None:
    """Wait for the process of a session and close its pipes; one that does not end in time is ended.

    The library leaves both to the collection of garbage.
    """
    process = service._process
    if process is None:
        return
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    process._transport.close()  # type: ignore[attr-defined]


async def _close(websocket: web.WebSocketResponse) -> None:
    await websocket.close()


def _size(width: Any, height: Any) -> tuple[int, int]:
    """Columns and lines within bounds; 80 × 24 where they are no numbers."""
    wanted = (to_int(str(width), 80), to_int(str(height), 24))
    columns, lines = (max(low, min(each, high)) for low, each, high in zip(SMALLEST, wanted, LARGEST, strict=True))
    return columns, lines
