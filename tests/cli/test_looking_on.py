"""`serve`: a page over a slow connection, or none any more, holds up nobody."""

import asyncio
import contextlib
import socket

from serving import serving, until

WATCHED = {"token": "leads-" + "a" * 30, "looks_on": "looks-" + "b" * 30, "visitors": 2}
ASKS = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@contextlib.contextmanager
def reading_nothing(port: int, path: str):
    with socket.create_connection(("127.0.0.1", port)) as page:
        page.sendall(ASKS.format(path=path).encode())
        yield page


async def test_a_page_that_looks_on_and_takes_nothing_is_let_go_and_holds_up_nobody(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, server):
        with reading_nothing(client.port, f"/look?token={WATCHED['looks_on']}"):
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


async def test_a_session_whose_page_takes_nothing_goes_on_in_another_and_the_server_ends(tmp_path):
    async with serving(tmp_path) as (client, server):
        said = f'["stdin", "{"a screen of many colours " * 2000}"]'.encode()
        path = f"/ws?session={'k' * 30}"
        with reading_nothing(client.port, path) as page:
            await until(lambda: server.free == 1)
            with contextlib.suppress(ConnectionError):  # it is let go
                for _ in range(300):
                    page.sendall(b"\x81\xfe" + len(said).to_bytes(2, "big") + bytes(4) + said)
                    await asyncio.sleep(0.01)
            async with asyncio.timeout(30), client.ws_connect(path) as one:
                assert await one.receive_json() == ["session", "resumed"]
                await one.send_json(["stdin", "here"])
                heard = b""
                while not heard.endswith(b"here"):
                    heard += await one.receive_bytes()
                await server.on_shutdown(client.app)
                await until(lambda: server.free == 2)
