"""`serve`: who comes in, what the page may load, when a session ends, and what is said of all that before."""

import asyncio
import re

import pytest
from serving import needs_library, serving, until

TOKEN = "what-nobody-guesses"  # noqa: S105 - of a test
KEY = "k" * 32


@needs_library
@pytest.mark.parametrize("path", ["/", "/ws", "/free", "/static/js/textual.js", "/page/page.js", "/download/x"])
async def test_without_the_token_nothing_is_answered(path, tmp_path):
    async with serving(tmp_path, token=TOKEN) as (client, _):
        for query in ("", "?token=", "?token=wrong", f"?token={TOKEN}x", "?token=ä"):
            async with client.get(f"{path}{query}") as answer:
                assert answer.status == 403
                assert "needs its token" in await answer.text()
        async with client.get(path, cookies={"tui-transformer-8000": "wrong"}) as answer:
            assert answer.status == 403


@needs_library
async def test_the_token_of_the_address_is_a_cookie_from_then_on_that_no_other_page_can_use(tmp_path):
    from aiohttp import CookieJar
    from aiohttp.test_utils import TestClient

    async with serving(tmp_path, token=TOKEN) as (first, _):
        client = TestClient(first.server, cookie_jar=CookieJar(unsafe=True))
        async with client.get(f"/?token={TOKEN}") as answer:
            assert answer.status == 200
            cookie = answer.cookies["tui-transformer-8000"]
            assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
        async with client.get("/static/js/textual.js") as answer:
            assert answer.status == 200
        async with client.ws_connect("/ws") as socket:
            assert await socket.receive_bytes()
        await client.session.close()


@needs_library
async def test_tokens_are_compared_in_constant_time(tmp_path, monkeypatch):
    import hmac

    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append((one, other)) or one == other)
    async with serving(tmp_path, token=TOKEN) as (client, _), client.get("/?token=wrong") as answer:
        assert answer.status == 403
    assert compared == [(b"wrong", TOKEN.encode())]


@needs_library
@pytest.mark.parametrize(
    ("host", "url", "called", "status"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000", "localhost:9000", 200),
        ("127.0.0.1", "http://127.0.0.1:8000", "[::1]:8000", 200),
        ("127.0.0.1", "http://127.0.0.1:8000", "rebound.example:8000", 403),
        ("127.0.0.1", "http://127.0.0.1:8000", "127.0.0.1.rebound.example", 403),
        ("127.0.0.1", "http://127.0.0.1:8000", "192.168.1.7:8000", 403),
        ("127.0.0.1", "http://127.0.0.1:8000", "[", 403),
        ("127.0.0.1", "https://lecture.example.org", "lecture.example.org", 200),
        ("0.0.0.0", "http://127.0.0.1:8000", "192.168.1.7:8000", 200),  # noqa: S104 - nobody listens there
        ("0.0.0.0", "http://127.0.0.1:8000", "rebound.example:8000", 403),  # noqa: S104
    ],
)
async def test_a_server_answers_to_its_own_names_alone(host, url, called, status, tmp_path):
    headers = {"Host": called}
    async with serving(tmp_path, host=host, url=url) as (client, _), client.get("/", headers=headers) as answer:
        assert answer.status == status


@needs_library
@pytest.mark.parametrize("origin", ["null", "http://localhost:3000", "https://127.0.0.1.example", "file://", ""])
async def test_a_page_of_another_address_opens_no_session(origin, tmp_path):
    async with serving(tmp_path) as (client, server):
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": origin}
        async with client.get("/ws", headers=headers) as answer:
            assert answer.status == 403
        assert server.free == 2


@needs_library
async def test_the_page_names_no_other_host_and_its_rules_allow_none(tmp_path):
    from tui_transformer.cli.server import PAGE

    async with serving(tmp_path) as (client, _), client.get("/") as answer:
        text, rules = await answer.text(), answer.headers["Content-Security-Policy"]
        own = f"ws://127.0.0.1:{client.port}/ws"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert rules.startswith("default-src 'self';")
    assert "http" not in rules
    assert "unsafe-inline" not in rules.replace("style-src 'self' 'unsafe-inline'", "")
    for written in (text.replace(own, ""), *(path.read_text(encoding="utf-8") for path in PAGE.iterdir())):
        assert "://" not in written
        assert "onclick" not in written.lower()
    for path in re.findall(r'(?:src|href)="(/[^"]*)"', text):
        async with serving(tmp_path) as (client, _), client.get(path) as answer:
            assert answer.status == 200


@needs_library
async def test_no_folder_is_listed_and_nothing_beside_it_is_given(tmp_path):
    async with serving(tmp_path) as (client, _):
        for path in ("/static/", "/static/js", "/page/", "/page/../server.py", "/page/%2e%2e/server.py"):
            async with client.get(path) as answer:
                assert answer.status in (403, 404)
        async with client.get("/favicon.ico") as answer:
            assert answer.status == 204


@needs_library
async def test_a_session_whose_connection_is_lost_waits_for_its_page(tmp_path):
    async with serving(tmp_path, visitors=1) as (client, server):
        socket = await client.ws_connect(f"/ws?session={KEY}")
        assert await socket.receive_json() == ["session", "new"]
        await socket.receive_bytes()
        socket._response.connection.transport.abort()
        await until(lambda: server._forsaken())
        async with client.ws_connect(f"/ws?session={KEY}&width=90&height=30") as again:
            assert await again.receive_json() == ["session", "resumed"]
            assert '"width": 90' in (await again.receive_bytes()).decode()
            assert "redraw" in (await again.receive_bytes()).decode()


@needs_library
async def test_a_session_that_nobody_comes_back_to_makes_room(tmp_path):
    async with serving(tmp_path, visitors=1) as (client, server):
        socket = await client.ws_connect(f"/ws?session={KEY}")
        await socket.receive_json()
        await socket.receive_bytes()
        socket._response.connection.transport.abort()
        await until(lambda: server._forsaken())
        async with client.ws_connect("/ws") as other:
            assert (await other.receive_bytes()).decode() == "80x24"


@needs_library
async def test_an_idle_session_is_warned_and_ends(tmp_path):
    async with serving(tmp_path, idle=1.2) as (client, server), client.ws_connect("/ws") as socket:
        await socket.receive_bytes()
        assert "ends in 1 second unless a key" in (await socket.receive_bytes()).decode()
        message = await socket.receive()
        assert (message.data, message.extra) == (4001, "1 second without a key")
        await until(lambda: server.free == 2)


@needs_library
async def test_a_key_keeps_a_session_from_being_idle(tmp_path):
    async with serving(tmp_path, idle=1.5) as (client, server), client.ws_connect("/ws") as socket:
        await socket.receive_bytes()
        for _ in range(6):
            await asyncio.sleep(0.4)
            await socket.send_json(["stdin", "x"])
            assert (await socket.receive_bytes()).decode() == "x"
        assert server.free == 1


@needs_library
async def test_the_folder_of_a_session_ends_with_it(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with serving(tmp_path) as (client, server):
        async with client.ws_connect("/ws") as socket:
            await socket.receive_bytes()
            assert len([*tmp_path.glob("tui-transformer-visit-*")]) == 1
        await until(lambda: server.free == 2)
        assert not [*tmp_path.glob("tui-transformer-visit-*")]


@needs_library
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "on this computer who has the address with its token"),
        (("--no-token",), "There is no token: everybody on this computer can use"),
        (("--no-token", "--host", "0.0.0.0"), "There is no token: everybody who reaches 0.0.0.0:8000"),  # noqa: S104
        ((), "open no files of their choice and write none"),
        (("--files", "."), "open, write and replace files below"),
        ((), "run no code"),
        (("--idle", "5"), "without a key for 5 minutes it ends"),
        (("--idle", "0"), "never ends for being idle"),
        (("--visitors", "3"), "at most 3 visitors"),
        ((), "Ctrl+c ends all"),
    ],
)
def test_what_visitors_can_do_is_said_before_it_begins(run, monkeypatch, arguments, says):
    from tui_transformer.cli import serve
    from tui_transformer.cli.server import BoundedServer

    monkeypatch.setattr(BoundedServer, "serve", lambda self: None)
    monkeypatch.setattr(serve, "_check_address", lambda host, port: None)
    ended = run("serve", *arguments)
    assert ended.code == 0
    assert says in ended.err
