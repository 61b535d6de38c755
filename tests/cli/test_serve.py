"""`serve`: one session a visitor, within bounds; who comes in, what is said first, and pages that take nothing."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

import pytest
from serving import free_port, serving, until

from tui_transformer.cli.serve import Serve, explorer_command

SIZES = {
    "?width=120&height=40": "120x40",
    "?width=99999999&height=99999999": "400x150",
    "?width=-5&height=0": "20x6",
    "?width=x&height=": "80x24",
    "": "80x24",
}


async def test_the_size_of_a_screen_is_bounded(tmp_path):
    async with serving(tmp_path, visitors=len(SIZES)) as (client, _):
        for query, wanted in SIZES.items():
            async with client.ws_connect(f"/ws{query}") as socket:
                assert (await socket.receive_bytes()).decode() == wanted


async def test_each_visitor_has_a_session_and_there_are_so_many(tmp_path):
    async with serving(tmp_path, visitors=2) as (client, server):
        from aiohttp import WSServerHandshakeError

        async with client.ws_connect("/ws") as one, client.ws_connect("/ws") as other:
            await one.receive_bytes()
            await other.receive_bytes()
            await one.send_json(["stdin", "of one"])
            await other.send_json(["stdin", "of the other"])
            assert (await one.receive_bytes()).decode() == "of one"
            assert (await other.receive_bytes()).decode() == "of the other"
            with pytest.raises(WSServerHandshakeError, match="503"):
                await client.ws_connect("/ws")
        await until(lambda: server.free == 2)


async def test_what_is_no_message_is_left_out(tmp_path):
    async with serving(tmp_path) as (client, _), client.ws_connect("/ws") as socket:
        await socket.receive_bytes()
        messages = ('["stdin"]', '["stdin", 3]', '["resize", {}]', '["what", 1]', "[" * 5000)
        for text in ("", "[]", "{}", "3", "[3]", *messages):
            await socket.send_str(text)
        await socket.send_bytes(b"\xff")
        await socket.send_json(["resize", {"width": 10**9, "height": 10**9}])
        assert '"width": 400, "height": 150' in (await socket.receive_bytes()).decode()
        await socket.send_json(["ping", "x"])
        assert await socket.receive_json() == ["pong", "x"]


def test_what_is_given_comes_through_a_shell_as_it_is_to_the_explorer():
    texts = ("it's; touch pwned", "$(touch pwned)", "`touch pwned`", "--help", "a\nb && c", "\\")
    command = explorer_command(Serve(text=texts, model="question", cut=True, bias=False, tour="my lecture.toml"))
    assert command[:4] == [sys.executable, "-P", "-m", "tui_transformer"]
    assert {f"--text={text}" for text in texts} <= set(command)
    assert {"--model=question", "--cut", "--no-bias", "--tour=my lecture.toml"} <= set(command)
    line = shlex.join([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *command])
    shown = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)  # noqa: S602 - as the library
    assert shown.stdout.strip() == ascii(command)
    from typer.main import get_command

    from tui_transformer.cli.main import app

    command = explorer_command(
        Serve(text=("a", "b"), layers=2, scale_embedding=True, bracket=True, theme="tui-light", tour="question")
    )
    assert get_command(app).make_context("x", command[4:], resilient_parsing=True).params["layers"] == 2


def test_without_the_library_a_line_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "tui_transformer.cli.server", raising=False)
    ended = run("serve", code=1)
    assert ended.err == "tui-transformer: serve needs the extra serve: pip install 'tui-transformer[serve]'\n"


def test_a_port_that_is_taken_is_said(run):
    pytest.importorskip("textual_serve")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = run("serve", "--port", str(taken.getsockname()[1]))
    assert ended.code == 1
    assert "choose another" in ended.err


@contextlib.contextmanager
def command_served(environment, *options):
    """The command in a process of its own, once it answers, and its address."""
    pytest.importorskip("textual_serve")
    command = [sys.executable, "-m", "tui_transformer", "serve", "--no-token", f"--port={free_port()}", *options]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **streams) as server:
        try:
            yield server, server.stdout.readline().split("/ ")[0]
        finally:
            server.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_its_sessions_in_order(environment, number):
    with command_served(environment) as (server, url):
        import aiohttp

        async def visit() -> int | None:
            async with aiohttp.ClientSession() as client, client.ws_connect(f"{url}/ws") as page:
                await page.receive(timeout=60)
                server.send_signal(number)
                while (await page.receive(timeout=60)).type != aiohttp.WSMsgType.CLOSE:
                    pass
                return page.close_code

        assert asyncio.run(visit()) == 1012
        _, said = server.communicate(timeout=60)
    assert server.returncode == 128 + number
    assert "Traceback" not in said


# Visitors


TOKEN = "what-nobody-guesses"  # noqa: S105 - of a test
KEY = "k" * 32


async def test_without_the_token_nothing_is_answered(tmp_path, monkeypatch):
    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append((one, other)) or one == other)
    async with serving(tmp_path, token=TOKEN) as (client, _):
        for path in ("/", "/ws", "/free", "/static/js/textual.js", "/page/page.js", "/download/x"):
            for query in ("", "?token=", "?token=wrong", f"?token={TOKEN}x", "?token=ä"):
                async with client.get(f"{path}{query}") as answer:
                    assert answer.status == 403
                    assert "needs its token" in await answer.text()
            async with client.get(path, cookies={"tui-transformer-8000": "wrong"}) as answer:
                assert answer.status == 403
    assert (b"wrong", TOKEN.encode()) in compared  # in constant time


async def test_the_token_of_the_address_is_a_cookie_from_then_on_that_no_other_page_can_use(tmp_path):
    async with serving(tmp_path, token=TOKEN) as (first, _):
        from aiohttp import CookieJar
        from aiohttp.test_utils import TestClient

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


HERE = "http://127.0.0.1:8000"
CALLED = {
    ("127.0.0.1", HERE): {
        "localhost:9000": 200,
        "[::1]:8000": 200,
        "rebound.example:8000": 403,
        "127.0.0.1.rebound.example": 403,
        "192.168.1.7:8000": 403,
        "[": 403,
    },
    ("127.0.0.1", "https://lecture.example.org"): {"lecture.example.org": 200},
    ("0.0.0.0", HERE): {"192.168.1.7:8000": 200, "rebound.example:8000": 403},  # noqa: S104 - nobody listens there
}


async def test_a_server_answers_to_its_own_names_alone(tmp_path):
    for (host, url), names in CALLED.items():
        async with serving(tmp_path, host=host, url=url) as (client, _):
            for called, status in names.items():
                async with client.get("/", headers={"Host": called}) as answer:
                    assert answer.status == status, called


async def test_a_page_of_another_address_opens_no_session(tmp_path):
    others = ("http://elsewhere.example", "http://localhost:3000", "https://127.0.0.1.example", "null", "file://", "")
    async with serving(tmp_path) as (client, server):
        for origin in others:
            headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": origin}
            async with client.get("/ws", headers=headers) as answer:
                assert answer.status == 403
            assert server.free == 2
        async with client.ws_connect("/ws", origin="http://127.0.0.1:8000") as socket:
            await socket.receive_bytes()


async def test_the_page_names_no_other_host_and_its_rules_allow_none(tmp_path):
    pytest.importorskip("textual_serve")
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
    async with serving(tmp_path) as (client, _):
        for path in re.findall(r'(?:src|href)="(/[^"]*)"', text):
            async with client.get(path) as answer:
                assert answer.status == 200


async def test_no_folder_is_listed_and_nothing_beside_it_is_given(tmp_path):
    async with serving(tmp_path) as (client, _):
        for path in ("/static/", "/static/js", "/page/", "/page/../server.py", "/page/%2e%2e/server.py"):
            async with client.get(path) as answer:
                assert answer.status in (403, 404)
        async with client.get("/favicon.ico") as answer:
            assert answer.status == 204


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
            again._response.connection.transport.abort()
            await until(lambda: server._forsaken())
        # one that nobody comes back to makes room
        async with client.ws_connect("/ws") as other:
            assert (await other.receive_bytes()).decode() == "80x24"


async def test_an_idle_session_is_warned_and_ends_with_its_folder_and_a_key_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with serving(tmp_path, idle=1.2) as (client, server), client.ws_connect("/ws") as socket:
        await socket.receive_bytes()
        assert len([*tmp_path.glob("tui-transformer-visit-*")]) == 1
        for _ in range(5):
            await asyncio.sleep(0.3)
            await socket.send_json(["stdin", "x"])
            assert (await socket.receive_bytes()).decode() == "x"
        assert server.free == 1
        assert "ends in 1 second unless a key" in (await socket.receive_bytes()).decode()
        message = await socket.receive()
        assert (message.data, message.extra) == (4001, "1 second without a key")
        await until(lambda: server.free == 2)
        assert not [*tmp_path.glob("tui-transformer-visit-*")]


SAID = {
    (): (
        "on this computer who has the address with its token",
        "open no files of their choice and write none",
        "run no code",
        "Ctrl+c ends all",
    ),
    ("--no-token",): ("There is no token: everybody on this computer can use",),
    ("--no-token", "--host", "0.0.0.0"): ("There is no token: everybody who reaches 0.0.0.0:8000",),  # noqa: S104
    ("--files", "."): ("open, write and replace files below",),
    ("--idle", "5"): ("without a key for 5 minutes it ends",),
    ("--idle", "0"): ("never ends for being idle",),
    ("--visitors", "3"): ("at most 3 visitors",),
}


def test_what_visitors_can_do_is_said_before_it_begins(run, monkeypatch):
    pytest.importorskip("textual_serve")
    from tui_transformer.cli import serve
    from tui_transformer.cli.server import BoundedServer

    monkeypatch.setattr(BoundedServer, "serve", lambda self: None)
    monkeypatch.setattr(serve, "_check_address", lambda host, port: None)
    for arguments, said in SAID.items():
        ended = run("serve", *arguments, code=0)
        assert [each for each in said if each not in ended.err] == []


# One leads, many look on: `--watch`


WATCHED = {"token": "leads-" + "a" * 30, "looks_on": "looks-" + "b" * 30, "visitors": 2}


async def test_many_look_on_at_what_one_leads_and_can_do_nothing(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, server):
        from aiohttp import WSServerHandshakeError

        leads, looks = (f"token={WATCHED[name]}" for name in ("token", "looks_on"))
        assert "ws://" in (page := await (await client.get(f"/?{leads}")).text())
        assert "/ws" in page
        async with client.ws_connect(f"/look?{looks}") as early:
            async with client.ws_connect(f"/ws?{leads}&width=90&height=30") as one:
                assert await early.receive_json() == ["look", 90, 30]
                assert (await one.receive_bytes()) == (await early.receive_bytes()) == b"90x30"
                async with client.ws_connect(f"/look?{looks}") as late:
                    assert await late.receive_json() == ["look", 90, 30]
                    assert "redraw" in (await late.receive_bytes()).decode()
                    await late.send_json(["stdin", "of nobody"])
                    await late.send_json(["resize", {"width": 20, "height": 10}])
                    await late.send_str("no message")
                    await one.send_json(["stdin", "of who leads"])
                    assert (await late.receive_bytes()) == b"of who leads"
                    with pytest.raises(WSServerHandshakeError, match="503"):
                        await client.ws_connect(f"/look?{looks}")
                await one.send_json(["resize", {"width": 100, "height": 40}])
                seen = [await early.receive() for _ in range(3)]
                assert '["look", 100, 40]' in [message.data for message in seen]
                page = await (await client.get(f"/?{looks}")).text()
                assert "/look" in page
                assert 'data-columns="100"' in page
            await until(lambda: server.free == 1)
            said = [(await early.receive()).data for _ in range(2)]
            assert b"session has ended" in said[-1]


async def test_who_looks_on_leads_nothing_and_without_watching_nobody_looks_on(tmp_path):
    async with serving(tmp_path, **WATCHED) as (client, _):
        for path in (f"/ws?token={WATCHED['looks_on']}", "/look", "/look?token=wrong", "/ws"):
            assert (await client.get(path)).status == 403
    async with serving(tmp_path) as (client, _):
        assert (await client.get("/look")).status == 404


# A page over a slow connection, or none any more, holds up nobody


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
