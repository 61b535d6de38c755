"""A server of tests, whose sessions say back what they are sent."""

import asyncio
import contextlib
import shlex
import socket
import sys

import pytest

APP = """
import os, sys
out = sys.stdout.buffer
def say(text):
    data = text.encode(); out.write(b"D" + len(data).to_bytes(4, "big") + data); out.flush()
out.write(b"__GANGLION__\\n"); out.flush()
say(f"{os.environ['COLUMNS']}x{os.environ['ROWS']}")
while kind := sys.stdin.buffer.read(1):
    data = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
    if b"quit" in data:
        break
    say(data.decode())
"""


@contextlib.asynccontextmanager
async def serving(tmp_path, visitors=2, host="127.0.0.1", url="http://127.0.0.1:8000", **more):
    pytest.importorskip("textual_serve", reason="the extra serve is not installed")
    from aiohttp.test_utils import TestClient, TestServer

    from tui_transformer.cli.server import BoundedServer

    path = tmp_path / "app.py"
    path.write_text(APP)
    server = BoundedServer(shlex.join([sys.executable, str(path)]), host, 8000, url, visitors, **more)
    async with TestClient(TestServer(await server._make_app())) as client:
        yield client, server


async def until(holds) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
