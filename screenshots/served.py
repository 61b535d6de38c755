"""The explorer as a browser shows it: it is served, and a headless Chromium opens the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping

from browser import PATIENCE, browser

WINDOW = (1440, 900)
SETTLED = 1.0
"""Seconds after which nothing moves."""


@contextlib.asynccontextmanager
async def served(*options: str, environment: Mapping[str, str] = os.environ, port: int = 0) -> AsyncIterator[str]:
    """The address of an explorer that is served, as it is printed; with `--watch` the one that looks on behind it."""
    command = (sys.executable, "-m", "tui_transformer", "serve", f"--port={port or free_port()}", *options)
    process = await asyncio.create_subprocess_exec(*command, env=dict(environment), stdout=asyncio.subprocess.PIPE)
    try:
        lines = list[bytes]()
        async with asyncio.timeout(PATIENCE):
            for _ in range(1 + ("--watch" in options)):
                lines.append(await process.stdout.readline() if process.stdout else b"")
        yield " ".join(line.decode().split()[0] for line in lines)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def picture() -> bytes:
    """The page after a few keys, none of which was preceded by a click."""
    async with served("--model", "question") as url, browser() as opened, opened.page(url, WINDOW) as page:
        await page.until(b"sailor")
        await asyncio.sleep(SETTLED)
        await page.press(" ", " ", " ")
        await asyncio.sleep(SETTLED)
        return await page.picture()
