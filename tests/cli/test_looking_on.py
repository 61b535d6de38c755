"""`serve --watch`: who looks on over a slow connection holds up nobody."""

import asyncio
import contextlib
import socket

from serving import serving, until

WATCHED = {"token": "leads-" + "a" * 30, "looks_on": "looks-" + "b" * 30, "visitors": 2}
ASKS = (
    "GET /look?token={looks_on} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@contextlib.contextmanager
def reading_nothing(port: int):
    with socket.create_connection(("127.0.0.1", port)) as page:
        page.sendall(ASKS.format(**WATCHED).encode())
        yield page


async def test_a_page_that_looks_on_and_takes_nothing_is_let_go_and_holds_up_nobody(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, server):
        with reading_nothing(client.port):
            await until(lambda: len(server._lookers) == 1)
            async with client.ws_connect(f"/ws?token={WATCHED['token']}") as one, asyncio.timeout(30):
                assert await one.receive_bytes() == b"80x24"
                said = "a screen of many colours " * 2000
                for _ in range(300):
                    await one.send_json(["stdin", said])
                    heard = b""
                    while len(heard) < len(said):
                        heard += await one.receive_bytes()
                assert not server._lookers
